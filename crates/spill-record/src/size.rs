/// Reads a size in bytes: `131072`, `128KiB`, `1MiB` or `2GiB`; `None` for anything else.
///
/// Spaces around it are allowed, signs, fractions and other units are not.
#[must_use]
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, unit) = if let Some(digits) = text.strip_suffix("KiB") {
        (digits, 1024)
    } else if let Some(digits) = text.strip_suffix("MiB") {
        (digits, 1024 * 1024)
    } else if let Some(digits) = text.strip_suffix("GiB") {
        (digits, 1024 * 1024 * 1024)
    } else {
        (text, 1)
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_size(text: &str, expected: Option<u64>) {
        assert_eq!(parse_size(text), expected, "{text:?}");
    }

    #[test]
    fn sizes() {
        check_size("0", Some(0));
        check_size("131072", Some(131_072));
        check_size("128KiB", Some(131_072));
        check_size(" 1MiB ", Some(1_048_576));
        check_size("2GiB", Some(2_147_483_648));
        check_size("17179869184GiB", None);
        check_size("18446744073709551615", Some(u64::MAX));
        check_size("18446744073709551616", None);
        check_size("18446744073709551615KiB", None);
        check_size("", None);
        check_size("KiB", None);
        check_size("128 KiB", None);
        check_size("128kB", None);
        check_size("-1", None);
        check_size("+1", None);
        check_size("1.5KiB", None);
    }
}
