#[cfg(feature = "s3")]
use std::error::Error;
use std::path::PathBuf;

#[cfg(feature = "s3")]
use object_store::client::{HttpError, HttpErrorKind};

/// A run folder on an object store that could not be published or fetched.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The store, or the way to it, failed.
    #[error("cannot {action} {url}: {fact} ({way_out})")]
    Store {
        /// What was tried.
        action: &'static str,
        /// On what.
        url: String,
        /// What came of it.
        fact: String,
        /// What to do about it.
        way_out: &'static str,
    },
    /// No manifest stands there.
    #[error(
        "{url} holds no manifest.json, so it is no run folder (name one that `spillgate accept --out` made there)"
    )]
    NoFolder {
        /// The place.
        url: String,
    },
    /// The folder is of another acceptance.
    #[error("{url} holds another acceptance (publish under another prefix)")]
    Other {
        /// The place.
        url: String,
    },
    /// Somebody else writes the same part.
    #[error(
        "{url} was written by another process meanwhile: two publish the same folder (end one of them, and go on with --resume)"
    )]
    Taken {
        /// The part.
        url: String,
    },
    /// What is there is not what was published.
    #[error("{url} is not as it was published: {fact} (restore the objects, or run it again)")]
    Damaged {
        /// The folder.
        url: String,
        /// In what.
        fact: String,
    },
    /// A local file cannot be read or written.
    #[error("cannot {action} {path}: {source}", path = .path.display())]
    Local {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The refusal.
        source: std::io::Error,
    },
    /// The variables that say how to reach the store do not.
    #[error("{0}")]
    Settings(String),
}

/// Codes that speak of the key, whatever the request was.
const REFUSALS: [&str; 8] = [
    "AccessDenied",
    "AuthorizationHeaderMalformed",
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidToken",
    "RequestExpired",
    "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
];

impl RemoteError {
    pub(crate) fn store(action: &'static str, url: String, error: &object_store::Error) -> Self {
        let (fact, way_out) = told(error);
        Self::Store {
            action,
            url,
            fact,
            way_out,
        }
    }
}

/// What an error of the store says, without what the store's answer may hold.
fn told(error: &object_store::Error) -> (String, &'static str) {
    const KEYS: &str =
        "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, the region, and what the key may do there";
    const WAY: &str = "check AWS_ENDPOINT_URL and the network, and try again";
    let code = code(error);
    if code.as_deref() == Some("NoSuchBucket") {
        return (
            "there is no such bucket".to_owned(),
            "make it, or name another",
        );
    }
    if code.as_deref().is_some_and(|code| REFUSALS.contains(&code)) {
        let code = code.unwrap_or_default();
        return (format!("the store refuses: {code}"), KEYS);
    }
    let refused = |what: &str| match &code {
        Some(code) => format!("{what}: {code}"),
        None => what.to_owned(),
    };
    match error {
        object_store::Error::PermissionDenied { .. }
        | object_store::Error::Unauthenticated { .. } => (refused("the store refuses"), KEYS),
        object_store::Error::NotFound { .. } => (
            refused("it is not there"),
            "name an object that is there, or publish it again",
        ),
        _ => match (http_error(error), code) {
            (Some((kind, cause)), _) => (format!("{kind}{cause}"), WAY),
            (None, Some(code)) => (format!("the store answered {code}"), WAY),
            (None, None) => (status(error), WAY),
        },
    }
}

#[cfg(feature = "s3")]
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// The code of an S3 error document: letters and digits alone.
fn code(error: &object_store::Error) -> Option<String> {
    let text = error.to_string();
    let (_, rest) = text.split_once("<Code>")?;
    let (code, _) = rest.split_once("</Code>")?;
    let plain = !code.is_empty()
        && code.len() <= 64
        && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    plain.then(|| code.to_owned())
}

/// Without a store that is reached over HTTP, nothing goes wrong below it.
#[cfg(not(feature = "s3"))]
fn http_error(_: &object_store::Error) -> Option<(&'static str, String)> {
    None
}

/// What went wrong below HTTP, and the system's word for it.
#[cfg(feature = "s3")]
fn http_error(error: &object_store::Error) -> Option<(&'static str, String)> {
    let http = chain(error).find_map(|error| error.downcast_ref::<HttpError>())?;
    let kind = match http.kind() {
        HttpErrorKind::Connect => "its endpoint cannot be reached",
        HttpErrorKind::Timeout => "its endpoint did not answer in time",
        _ => "the connection to its endpoint broke",
    };
    let cause = chain(http)
        .filter_map(|error| error.downcast_ref::<std::io::Error>())
        .last()
        .map(|error| format!(": {}", error.kind()))
        .unwrap_or_default();
    Some((kind, cause))
}

/// The status of an answer without a code.
fn status(error: &object_store::Error) -> String {
    let text = error.to_string();
    let number = text
        .split_once("status code: ")
        .and_then(|(_, rest)| rest.get(..3))
        .filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    match number {
        Some(number) => format!("the store answered with status {number}"),
        None => "the request failed".to_owned(),
    }
}
