//! Names of stored results: `spillover://<stepId>/i<iteration>c<index>.json`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

const SCHEME: &str = "spillover://";
const SUFFIX: &str = ".json";
const MAX_SEGMENT_BYTES: usize = 128;
const MAX_REFERENCE_BYTES: usize =
    SCHEME.len() + MAX_SEGMENT_BYTES + 1 + MAX_SEGMENT_BYTES + SUFFIX.len();

/// The name of a step: 1 to 128 characters of `A-Z a-z 0-9 _ -`. Cloning is cheap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId(Arc<str>);

impl StepId {
    /// Checks `id`.
    ///
    /// # Errors
    /// [`StepIdError`] when it is empty, too long or has another character.
    pub fn new(id: &str) -> Result<Self, StepIdError> {
        if is_segment(id) {
            return Ok(Self(Arc::from(id)));
        }
        Err(StepIdError {
            id: id.chars().take(MAX_SEGMENT_BYTES).collect(),
            bytes: id.len(),
        })
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Not a step id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "step id {id:?} ({bytes} bytes) is not 1 to {MAX_SEGMENT_BYTES} characters of A-Z a-z 0-9 _ - (rename the step)"
)]
pub struct StepIdError {
    /// The rejected id, cut to 128 characters.
    pub id: String,
    /// Its whole length.
    pub bytes: usize,
}

/// One tool call of a step execution, written `i<iteration>c<index>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId {
    /// The iteration as the step loop counts it.
    pub iteration: u32,
    /// The place among the iteration's tool calls, from 0. Not the order of completion.
    pub index: u32,
}

impl fmt::Display for CallId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "i{}c{}", self.iteration, self.index)
    }
}

/// The name under which a stored result is read back. Parsing accepts exactly what printing writes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// The step that stored it.
    pub step: StepId,
    /// The call whose result it is.
    pub call: CallId,
}

impl fmt::Display for Reference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{SCHEME}{}/{}{SUFFIX}", self.step, self.call)
    }
}

/// Not a reference: another scheme, number of segments, suffix, character or spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not of the form spillover://<stepId>/i<iteration>c<index>.json (copy it from the summary)"
)]
pub struct MalformedReference;

impl FromStr for Reference {
    type Err = MalformedReference;

    fn from_str(text: &str) -> Result<Self, MalformedReference> {
        parse(text).ok_or(MalformedReference)
    }
}

fn parse(text: &str) -> Option<Reference> {
    if text.len() > MAX_REFERENCE_BYTES {
        return None;
    }
    let (step, call) = text
        .strip_prefix(SCHEME)?
        .strip_suffix(SUFFIX)?
        .split_once('/')?;
    let (iteration, index) = call.strip_prefix('i')?.split_once('c')?;
    let call = CallId {
        iteration: canonical(iteration)?,
        index: canonical(index)?,
    };
    Some(Reference {
        step: StepId::new(step).ok()?,
        call,
    })
}

/// A number without sign or leading zeros, so that no two spellings name one result.
fn canonical(digits: &str) -> Option<u32> {
    let plain = digits == "0" || !digits.starts_with(['0', '+']);
    if plain { digits.parse().ok() } else { None }
}

fn is_segment(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=MAX_SEGMENT_BYTES).contains(&text.len()) && text.bytes().all(allowed)
}
