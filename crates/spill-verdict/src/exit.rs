//! Exit codes of the program, and which one wins when several apply.

/// The shipped default is accepted.
pub const ACCEPTED: u8 = 0;
/// The program itself is at fault.
pub const INTERNAL: u8 = 1;
/// The command line or an input is not usable.
pub const USAGE: u8 = 2;
/// The default must change; the verdict says to what.
pub const REJECTED: u8 = 3;
/// The evidence does not reach a decision.
pub const NOT_PROVEN: u8 = 4;
/// The runs do not cover the plan.
pub const INCOMPLETE: u8 = 5;
/// A leak was found.
pub const LEAK: u8 = 6;
/// The gate did not catch a planted fault.
pub const SELF_TEST: u8 = 7;

/// All codes; of those that apply, the first in this order is returned.
pub const PRECEDENCE: [u8; 8] = [
    USAGE, INTERNAL, LEAK, SELF_TEST, INCOMPLETE, REJECTED, NOT_PROVEN, ACCEPTED,
];

/// The code that wins among those that apply; [`INTERNAL`] when none does, since a judgement
/// without any outcome is a fault of ours and never a pass.
#[must_use]
pub fn first_that_applies(codes: &[u8]) -> u8 {
    PRECEDENCE
        .into_iter()
        .find(|code| codes.contains(code))
        .unwrap_or(INTERNAL)
}
