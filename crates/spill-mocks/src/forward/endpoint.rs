//! The address of a real endpoint.

use std::fmt;

use axum::http::Uri;

use crate::dialect::Dialect;

/// The API that an endpoint speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointApi {
    /// OpenAI's chat completions and responses.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
}

impl EndpointApi {
    /// Its name as a flag spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        }
    }
}

/// A real endpoint: an API and the base address that clients of it are given.
///
/// The address holds no credentials and no query, so it can be shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    api: EndpointApi,
    scheme: Scheme,
    authority: String,
    /// Without a slash at its end.
    path: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

/// An address that is none of an endpoint. It is not quoted: it might hold a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// No known API stands before the address.
    #[error(
        "it does not begin with openai: or anthropic: (write openai:https://api.openai.com/v1)"
    )]
    Api,
    /// What follows is no address.
    #[error(
        "what follows the API is no http:// or https:// address (write openai:https://HOST/v1)"
    )]
    Address,
    /// It holds a name or a password.
    #[error("the address holds credentials (leave them out: the key comes from the environment)")]
    Credentials,
    /// It holds a query or a fragment.
    #[error(
        "the address holds a query or a fragment (leave it out: the key comes from the environment)"
    )]
    Query,
    /// What stands behind the host's colon is no port.
    #[error("the address names no port from 1 to 65535 behind its host's colon")]
    Port,
    /// The program was built without TLS.
    #[error(
        "this program was built without TLS, so it cannot reach an https:// address (build it with the feature `tls`, which is on by default, or name a proxy on http://127.0.0.1)"
    )]
    NoTls,
}

impl Endpoint {
    /// Reads `openai:BASE_URL` or `anthropic:BASE_URL`: the base address as the vendors' own clients take
    /// it, with `/v1` at its end for OpenAI and without for Anthropic, where one is taken off.
    ///
    /// # Errors
    ///
    /// Fails when the text is no such address, holds credentials or a query, or needs TLS in a build
    /// without.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        let (api, address) = text.split_once(':').ok_or(EndpointError::Api)?;
        let api = match api {
            "openai" => EndpointApi::OpenAi,
            "anthropic" => EndpointApi::Anthropic,
            _ => return Err(EndpointError::Api),
        };
        if address.contains(['?', '#']) {
            return Err(EndpointError::Query);
        }
        let uri: Uri = address.parse().map_err(|_| EndpointError::Address)?;
        let authority = uri.authority().ok_or(EndpointError::Address)?;
        if authority.as_str().contains('@') {
            return Err(EndpointError::Credentials);
        }
        if authority.host().is_empty() {
            return Err(EndpointError::Address);
        }
        // A port that is none would be left out of the connection, and the key go to another server.
        let behind = authority.as_str().strip_prefix(authority.host());
        let names_a_port = behind.is_none_or(|rest| !rest.is_empty());
        if names_a_port && authority.port_u16().is_none_or(|port| port == 0) {
            return Err(EndpointError::Port);
        }
        let scheme = match uri.scheme_str() {
            Some("http") => Scheme::Http,
            Some("https") if cfg!(feature = "tls") => Scheme::Https,
            Some("https") => return Err(EndpointError::NoTls),
            Some(_) | None => return Err(EndpointError::Address),
        };
        let path = uri.path().trim_end_matches('/');
        let path = match api {
            EndpointApi::OpenAi => path,
            EndpointApi::Anthropic => path.strip_suffix("/v1").unwrap_or(path),
        };
        Ok(Self {
            api,
            scheme,
            authority: authority.as_str().to_owned(),
            path: path.to_owned(),
        })
    }

    /// What it speaks.
    #[must_use]
    pub fn api(&self) -> EndpointApi {
        self.api
    }

    /// Host and, where the address names one, port.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.authority
    }

    /// Whether what is sent there can be read on the way: neither encrypted nor on this machine.
    #[must_use]
    pub fn is_in_the_clear(&self) -> bool {
        let host = self.authority.rsplit_once(':');
        let host = host.map_or(&*self.authority, |(host, _)| host);
        let is_local = host == "localhost" || host == "[::1]" || host.starts_with("127.");
        self.scheme == Scheme::Http && !is_local
    }

    /// Where a request of `dialect` goes; `None` when the endpoint does not speak it.
    pub(crate) fn turn(&self, dialect: Dialect) -> Option<String> {
        let path = match (self.api, dialect) {
            (EndpointApi::OpenAi, Dialect::Chat) => "/chat/completions",
            (EndpointApi::OpenAi, Dialect::Responses) => "/responses",
            (EndpointApi::Anthropic, Dialect::Messages) => "/v1/messages",
            (EndpointApi::OpenAi, Dialect::Messages | Dialect::Gemini)
            | (EndpointApi::Anthropic, Dialect::Chat | Dialect::Responses | Dialect::Gemini) => {
                return None;
            }
        };
        Some(self.at(path))
    }

    /// Where turns go, in each dialect that it speaks.
    pub(crate) fn turns(&self) -> impl Iterator<Item = String> {
        let all = [Dialect::Chat, Dialect::Responses, Dialect::Messages];
        all.into_iter().filter_map(|dialect| self.turn(dialect))
    }

    /// What to look at when nothing is where a turn goes.
    pub(crate) fn if_nothing_is_there(&self) -> String {
        let lacks_version = match self.api {
            EndpointApi::OpenAi => !self.path.ends_with("/v1"),
            EndpointApi::Anthropic => false,
        };
        if lacks_version {
            format!(
                "clients of OpenAI's API are given an address that ends in /v1: is it openai:{self}/v1? Or has the \
                 model another name?"
            )
        } else {
            "check the address, and that the endpoint knows the model by its name".to_owned()
        }
    }

    /// Where its models are listed.
    pub(crate) fn models(&self) -> String {
        match self.api {
            EndpointApi::OpenAi => self.at("/models"),
            EndpointApi::Anthropic => self.at("/v1/models"),
        }
    }

    fn at(&self, path: &str) -> String {
        format!("{self}{path}")
    }
}

impl fmt::Display for Endpoint {
    /// The base address.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        write!(f, "{scheme}://{}{}", self.authority, self.path)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{self}", self.api.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, dialect: Dialect, turn: Option<&str>) {
        let endpoint = Endpoint::parse(text).expect(text);
        assert_eq!(endpoint.turn(dialect).as_deref(), turn, "{text}");
    }

    #[test]
    fn addresses_are_those_of_the_vendors_clients() {
        let local = "http://127.0.0.1:8080";
        for base in ["/v1", "/v1/"] {
            let text = format!("openai:{local}{base}");
            let chat = format!("{local}/v1/chat/completions");
            check(&text, Dialect::Chat, Some(&chat));
            let responses = format!("{local}/v1/responses");
            check(&text, Dialect::Responses, Some(&responses));
            check(&text, Dialect::Messages, None);
            check(&text, Dialect::Gemini, None);
        }
        for base in ["", "/", "/v1", "/v1/"] {
            let text = format!("anthropic:{local}/proxy{base}");
            let messages = format!("{local}/proxy/v1/messages");
            check(&text, Dialect::Messages, Some(&messages));
            check(&text, Dialect::Chat, None);
        }
    }

    fn check_refused(text: &str, error: EndpointError) {
        assert_eq!(Endpoint::parse(text), Err(error), "{text}");
    }

    #[test]
    fn what_is_no_endpoint_is_refused() {
        for text in ["", "http://host/v1", "gemini:http://host/v1", "openai"] {
            check_refused(text, EndpointError::Api);
        }
        for text in [
            "openai:",
            "openai:host/v1",
            "openai:ftp://host/v1",
            "openai:http://",
            "openai:/v1",
            "openai:http://:80/v1",
        ] {
            check_refused(text, EndpointError::Address);
        }
        for port in ["", "0", "-1", "12x4", "65536", "99999"] {
            for host in ["127.0.0.1", "host", "[::1]"] {
                let text = format!("openai:http://{host}:{port}/v1");
                let error = Endpoint::parse(&text).expect_err(&text);
                let is_refused = matches!(error, EndpointError::Port | EndpointError::Address);
                assert!(is_refused, "{text}: {error}");
            }
        }
        check_refused("openai:http://127.0.0.1:65536/v1", EndpointError::Port);
        check_refused("openai:http://u:p@host/v1", EndpointError::Credentials);
        check_refused("openai:http://key@host/v1", EndpointError::Credentials);
        check_refused("openai:http://host/v1?key=k", EndpointError::Query);
        check_refused("openai:http://host/v1#k", EndpointError::Query);
        let https = Endpoint::parse("openai:https://host/v1").map(|_| ());
        let expected = if cfg!(feature = "tls") {
            Ok(())
        } else {
            Err(EndpointError::NoTls)
        };
        assert_eq!(https, expected);
    }

    #[test]
    fn only_other_machines_are_in_the_clear() {
        for (text, clear) in [
            ("openai:http://127.0.0.1:1/v1", false),
            ("openai:http://localhost/v1", false),
            ("openai:http://[::1]:80/v1", false),
            ("openai:http://gpu-1:8000/v1", true),
            ("openai:http://10.0.0.1/v1", true),
        ] {
            let endpoint = Endpoint::parse(text).expect(text);
            assert_eq!(endpoint.is_in_the_clear(), clear, "{text}");
        }
    }
}
