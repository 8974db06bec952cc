//! The key of a real endpoint.

use std::fmt;

use axum::http::HeaderValue;

/// A key, which can be sent and nothing else: it has no text form.
#[derive(Clone)]
pub struct EndpointKey(String);

/// A text that cannot be a key. It is not quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It is empty.
    #[error("is empty")]
    Empty,
    /// It cannot stand in a header.
    #[error("holds spaces, line breaks or other characters that no key has")]
    Characters,
    /// It is too short to be searched for.
    #[error(
        "has fewer than {} characters: so short a key cannot be kept out of what the endpoint says (give a longer one; where the endpoint takes none, any word will do, such as not-needed)",
        EndpointKey::LEAST_CHARACTERS
    )]
    Short,
}

impl EndpointKey {
    /// What is shorter stands in many texts that quote no key, and whoever sees what was cut out knows it.
    pub(crate) const LEAST_CHARACTERS: usize = 8;

    /// Takes a key; what surrounds it goes.
    ///
    /// # Errors
    ///
    /// Fails when it is empty, could not be sent, or is too short to be kept secret.
    pub fn new(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(KeyError::Empty);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(KeyError::Characters);
        }
        if text.len() < Self::LEAST_CHARACTERS {
            return Err(KeyError::Short);
        }
        Ok(Self(text.to_owned()))
    }

    /// A header's value with the key behind `before`.
    pub(crate) fn header(&self, before: &str) -> HeaderValue {
        let text = format!("{before}{}", self.0);
        let mut value = HeaderValue::try_from(text).expect("a key has visible ASCII alone");
        value.set_sensitive(true);
        value
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for EndpointKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EndpointKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_shows_nowhere_but_in_its_header() {
        let key = EndpointKey::new(" sk-canary\n").expect("a key");
        assert_eq!(format!("{key:?}"), "EndpointKey(…)");
        let header = key.header("Bearer ");
        assert_eq!(header.as_bytes(), b"Bearer sk-canary");
        assert_eq!(format!("{header:?}"), "Sensitive");
        EndpointKey::new("8-long..").expect("long enough");
        for (text, error) in [
            ("", KeyError::Empty),
            (" \t", KeyError::Empty),
            ("k", KeyError::Short),
            (" 7-long. ", KeyError::Short),
            ("a b", KeyError::Characters),
            ("a\nb", KeyError::Characters),
            ("schlüssel", KeyError::Characters),
        ] {
            assert_eq!(EndpointKey::new(text).expect_err(text), error);
        }
    }
}
