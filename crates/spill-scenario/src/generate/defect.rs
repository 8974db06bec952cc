use super::block::Language;
use super::rng::Rng;
use super::words::two_nouns;

/// A line that one review rule finds, with the lines around it that make it read like code.
pub(super) struct Defect {
    pub(super) rule: &'static str,
    pub(super) lines: Vec<String>,
}

/// Returns the `number`-th kind of defect of a language, planted under `name`.
pub(super) fn defect(language: Language, number: usize, name: &str, rng: &mut Rng) -> Defect {
    let (a, b) = two_nouns(rng);
    let (rule, text) = match language {
        Language::Rust => match number % 4 {
            0 => (
                "unwrap-on-input",
                format!("let {name} = raw_{a}.trim().parse::<u64>().unwrap();"),
            ),
            1 => (
                "swallowed-error",
                format!("let _{name} = self.{a}_writer.flush().ok();"),
            ),
            2 => (
                "off-by-one",
                format!(
                    "let mut {name} = 0;\nwhile {name} <= {a}s.len() {{\n    \
                     total += {a}s[{name}].{b};\n    {name} += 1;\n}}"
                ),
            ),
            _ => (
                "todo-left",
                format!("// TODO: {name} ignores the {a} when the {b} is locked"),
            ),
        },
        Language::Python => match number % 6 {
            0 => (
                "sql-from-input",
                format!("{name} = f\"SELECT id, total FROM {a}s WHERE owner = '{{owner}}'\""),
            ),
            1 => (
                "shell-injection",
                format!("{name} = subprocess.run(\"sync-{a} \" + target, shell=True, check=False)"),
            ),
            2 => (
                "hard-coded-secret",
                format!("{name} = \"key_{}\"", rng.alphanumeric(24)),
            ),
            3 => (
                "weak-hash",
                format!("{name} = hashlib.md5({a}_bytes).hexdigest()"),
            ),
            4 => (
                "tls-verify-off",
                format!("{name} = requests.get({a}_url, timeout=5, verify=False)"),
            ),
            _ => (
                "todo-left",
                format!("# FIXME: {name} forgets the {a} after a {b} change"),
            ),
        },
    };
    Defect {
        rule,
        lines: text.lines().map(str::to_owned).collect(),
    }
}
