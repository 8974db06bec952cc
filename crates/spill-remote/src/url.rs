/// A place on an object store: `s3://bucket/prefix`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreUrl {
    /// The bucket.
    pub bucket: String,
    /// Names between slashes, without one at either end; empty for the bucket's root.
    pub prefix: String,
}

/// A URL that names no place on a store. Its words do not repeat the URL, which may hold a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Another scheme.
    #[error(
        "a URL with this scheme is no place for run folders (write s3://bucket/prefix, or a path)"
    )]
    Scheme,
    /// No bucket, or one that cannot be.
    #[error(
        "an s3 URL names a bucket of 3 to 63 lower-case letters, digits, hyphens and dots (write s3://bucket/prefix; keys \
         belong into the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)"
    )]
    Bucket,
    /// A prefix that is no list of plain names.
    #[error(
        "the names behind the bucket of an s3 URL hold letters, digits, '-', '_', '.', '=' and '+' alone, and are not '.' or '..'"
    )]
    Prefix,
}

impl StoreUrl {
    /// Reads a place; `None` for what is a path of the file system.
    ///
    /// # Errors
    ///
    /// See [`UrlError`].
    pub fn parse(text: &str) -> Result<Option<Self>, UrlError> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Ok(None);
        };
        let is_scheme = |scheme: &str| {
            scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
        };
        if !is_scheme(scheme) {
            return Ok(None);
        }
        if scheme != "s3" {
            return Err(UrlError::Scheme);
        }
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let plain = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.')
        };
        if !(3..=63).contains(&bucket.len()) || !bucket.bytes().all(plain) {
            return Err(UrlError::Bucket);
        }
        let prefix = prefix.trim_matches('/');
        let is_name = |name: &str| {
            let plain = |byte: u8| {
                byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'=' | b'+')
            };
            !matches!(name, "" | "." | "..") && name.bytes().all(plain)
        };
        if !prefix.is_empty() && !prefix.split('/').all(is_name) {
            return Err(UrlError::Prefix);
        }
        Ok(Some(Self {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
        }))
    }
}

impl std::fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &*self.prefix {
            "" => write!(f, "s3://{}", self.bucket),
            prefix => write!(f, "s3://{}/{prefix}", self.bucket),
        }
    }
}
