//! S3 by the usual variables.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::{BackoffConfig, ClientConfigKey, RetryConfig};

use crate::error::RemoteError;
use crate::http::Connector;
use crate::remote::Remote;
use crate::url::StoreUrl;

/// Tries of one request, and how long they take together at most.
const RETRIES: usize = 4;
const RETRY_FOR: Duration = Duration::from_secs(20);

/// The place `url` on S3, by the variables of the environment whose names begin with `AWS_`. Nothing is sent yet.
///
/// # Errors
///
/// Fails without credentials, and when a variable's value is none that it can have.
pub fn connect(
    url: &StoreUrl,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<Remote, RemoteError> {
    let mut builder = AmazonS3Builder::new();
    let mut has_credentials = false;
    for (name, value) in variables {
        let key = name.starts_with("AWS_").then(|| name.to_ascii_lowercase());
        let key = key.and_then(|key| key.parse::<AmazonS3ConfigKey>().ok());
        let Some(key) = key.filter(|_| !value.is_empty()) else {
            continue;
        };
        has_credentials |= matches!(
            key,
            AmazonS3ConfigKey::SecretAccessKey
                | AmazonS3ConfigKey::WebIdentityTokenFile
                | AmazonS3ConfigKey::ContainerCredentialsRelativeUri
                | AmazonS3ConfigKey::ContainerCredentialsFullUri
                | AmazonS3ConfigKey::SkipSignature
        );
        builder = builder.with_config(key, value);
    }
    if !has_credentials {
        return Err(RemoteError::Settings(format!(
            "{url} needs credentials and none are set (set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the variables \
             that the container's service sets for a role)"
        )));
    }
    let needs_http = |endpoint: &str| endpoint.starts_with("http://");
    let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
    let allowed = builder.get_config_value(&AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp));
    if endpoint.as_deref().is_some_and(needs_http) && allowed.as_deref() != Some("true") {
        return Err(RemoteError::Settings(
            "AWS_ENDPOINT_URL is plain HTTP, which everybody on the way can read (set AWS_ALLOW_HTTP=true if that is meant, or \
             an https endpoint)"
                .to_owned(),
        ));
    }
    if endpoint.as_deref().is_some_and(names_no_port) {
        return Err(RemoteError::Settings(
            "AWS_ENDPOINT_URL names no port from 1 to 65535 behind its host's colon".to_owned(),
        ));
    }
    let store = builder
        .with_bucket_name(&url.bucket)
        .with_http_connector(Connector)
        .with_retry(RetryConfig {
            backoff: BackoffConfig::default(),
            max_retries: RETRIES,
            retry_timeout: RETRY_FOR,
        })
        .build()
        // The error can quote a variable's value.
        .map_err(|_| {
            RemoteError::Settings(
                "the AWS_ variables do not describe a store (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY go together; \
                 AWS_REGION and AWS_ENDPOINT_URL say where; flags are true or false)"
                    .to_owned(),
            )
        })?;
    Ok(Remote::new(Arc::new(store), &url.prefix, url.to_string()))
}

/// Whether what stands behind the host's colon is no port. A client would leave it out, and ask another server.
fn names_no_port(endpoint: &str) -> bool {
    let authority = endpoint
        .split_once("://")
        .map_or(endpoint, |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    let behind = authority
        .rsplit_once(']')
        .map_or(authority, |(_, behind)| behind);
    let port = behind.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    port.is_some_and(|port| port.is_err() || port == Ok(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_names_a_port_or_none() {
        for host in ["127.0.0.1", "s3.example", "[::1]"] {
            for port in ["", ":1", ":9000", ":65535"] {
                let endpoint = format!("http://{host}{port}/x:y");
                assert!(!names_no_port(&endpoint), "{endpoint}");
            }
            for port in [":", ":0", ":-1", ":12x4", ":65536", ":99999"] {
                let endpoint = format!("http://{host}{port}/");
                assert!(names_no_port(&endpoint), "{endpoint}");
            }
        }
    }

    #[test]
    fn a_store_behind_no_port_is_refused() {
        let url = StoreUrl::parse("s3://bucket/p")
            .expect("a URL")
            .expect("of a store");
        let variables = [
            ("AWS_ACCESS_KEY_ID", "a"),
            ("AWS_SECRET_ACCESS_KEY", "b"),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_ENDPOINT_URL", "http://127.0.0.1:99999"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let error = connect(&url, variables).expect_err("no port");
        assert!(
            error.to_string().contains("port from 1 to 65535"),
            "{error}"
        );
    }
}
