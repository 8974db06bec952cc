use std::fmt;
use std::str::FromStr;

/// How much of a replaced result the model reads back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// Nothing.
    None,
    /// This share of its bytes, above 0 and below 1, from its start on.
    Share(f64),
    /// All of it.
    Whole,
}

/// When it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Before the first call that was sent the result.
    AtOnce,
    /// Before the first call whose answer repeats a hidden part of it; never, when none does.
    Used,
}

/// What the model is assumed to read back. Written `none`, `0.25`, `whole`, `used`, `used:0.25`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadBack {
    /// How much.
    pub amount: Amount,
    /// When.
    pub when: When,
}

/// A read-back assumption that is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the read-back {0:?} is not understood (use none, whole, a share above 0 and below 1 such as 0.25, used, or used:0.25)"
)]
pub struct ReadBackError(String);

impl ReadBack {
    /// Nothing is read back.
    pub const NONE: Self = Self {
        amount: Amount::None,
        when: When::AtOnce,
    };

    /// Everything is read back at once.
    pub const WHOLE: Self = Self {
        amount: Amount::Whole,
        when: When::AtOnce,
    };

    /// What the model used later is read back whole, when it is used.
    pub const USED: Self = Self {
        amount: Amount::Whole,
        when: When::Used,
    };
}

impl FromStr for ReadBack {
    type Err = ReadBackError;

    fn from_str(text: &str) -> Result<Self, ReadBackError> {
        let amount = |text: &str| match text {
            "whole" => Some(Amount::Whole),
            share => {
                let share: f64 = share.parse().ok()?;
                (share > 0.0 && share < 1.0).then_some(Amount::Share(share))
            }
        };
        let read_back = match (text, text.split_once(':')) {
            ("none", _) => Some(Self::NONE),
            ("used", _) => Some(Self::USED),
            (_, Some(("used", rest))) => amount(rest).map(|amount| Self {
                amount,
                when: When::Used,
            }),
            (at_once, _) => amount(at_once).map(|amount| Self {
                amount,
                when: When::AtOnce,
            }),
        };
        read_back.ok_or_else(|| ReadBackError(text.chars().take(40).collect()))
    }
}

impl fmt::Display for ReadBack {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.when, self.amount) {
            (_, Amount::None) => out.write_str("none"),
            (When::AtOnce, Amount::Whole) => out.write_str("whole"),
            (When::AtOnce, Amount::Share(share)) => write!(out, "{share}"),
            (When::Used, Amount::Whole) => out.write_str("used"),
            (When::Used, Amount::Share(share)) => write!(out, "used:{share}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<ReadBack>) {
        assert_eq!(text.parse().ok(), expected, "{text}");
        if let Some(read_back) = expected {
            assert_eq!(read_back.to_string().parse(), Ok(read_back));
        }
    }

    #[test]
    fn assumptions_as_they_are_written() {
        let share = |when| ReadBack {
            amount: Amount::Share(0.25),
            when,
        };
        check("none", Some(ReadBack::NONE));
        check("whole", Some(ReadBack::WHOLE));
        check("used", Some(ReadBack::USED));
        check("used:whole", Some(ReadBack::USED));
        check("0.25", Some(share(When::AtOnce)));
        check("used:0.25", Some(share(When::Used)));
        for refused in [
            "",
            "0",
            "1",
            "1.5",
            "-0.1",
            "NaN",
            "25%",
            "used:",
            "used:none",
            "whole:0.5",
            "None",
        ] {
            check(refused, None);
        }
    }
}
