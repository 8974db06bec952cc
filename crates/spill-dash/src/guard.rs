//! Who may look in.

use std::net::SocketAddr;

use axum::http::{HeaderMap, header};

/// Characters that a token has at least.
pub(crate) const TOKEN_LEAST: usize = 16;
/// The cookie that a browser carries the token in.
pub(crate) const COOKIE: &str = "spillgate_token";

/// A secret that opens the dashboard to other hosts. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Takes a token.
    ///
    /// # Errors
    ///
    /// [`DashError::ShortToken`](crate::DashError::ShortToken) below 16 characters.
    pub fn new(text: &str) -> Result<Self, crate::DashError> {
        if text.chars().count() < TOKEN_LEAST {
            return Err(crate::DashError::ShortToken { least: TOKEN_LEAST });
        }
        Ok(Self(text.to_owned()))
    }

    /// Compares in a time that depends on the lengths alone.
    pub(crate) fn admits(&self, offered: &str) -> bool {
        let (own, offered) = (self.0.as_bytes(), offered.as_bytes());
        let differing = own
            .iter()
            .zip(offered.iter().chain(std::iter::repeat(&0)))
            .fold(0u8, |sum, (a, b)| sum | (a ^ b));
        own.len() == offered.len() && differing == 0
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Token(set)")
    }
}

/// Why a request gets no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It names more than one host: whoever stands between can take another one than the server.
    Hosts,
    /// It was sent to a name that is not the dashboard's: a page elsewhere pointed the browser here.
    Host,
    /// A page from elsewhere sent it.
    Origin,
    /// It has no token, or a wrong one.
    Token,
}

/// Checks the headers of a request to the server at `address`.
pub(crate) fn check(
    headers: &HeaderMap,
    address: SocketAddr,
    token: Option<&Token>,
) -> Result<(), Refusal> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    if hosts.next().is_some() {
        return Err(Refusal::Hosts);
    }
    let host = host.ok_or(Refusal::Host)?;
    if address.ip().is_loopback() && !is_loopback_name(host) {
        return Err(Refusal::Host);
    }
    if let Some(origin) = headers.get(header::ORIGIN) {
        let own = origin
            .to_str()
            .is_ok_and(|origin| origin.split_once("://").is_some_and(|(_, at)| at == host));
        if !own {
            return Err(Refusal::Origin);
        }
    }
    match token {
        None => Ok(()),
        Some(token) if offered(headers).any(|offered| token.admits(offered)) => Ok(()),
        Some(_) => Err(Refusal::Token),
    }
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// `localhost`, `127.x.y.z` or `[::1]`, with or without a port.
fn is_loopback_name(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) | None => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || name
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// Tokens that a request offers: a bearer one, and the cookie's.
fn offered(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let bearer = text(headers, header::AUTHORIZATION)
        .and_then(|value| value.strip_prefix("Bearer "))
        .map(str::trim);
    let cookies = text(headers, header::COOKIE).unwrap_or_default();
    let cookie = cookies
        .split(';')
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(name, _)| *name == COOKIE)
        .map(|(_, value)| value);
    bearer.into_iter().chain(cookie)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const LOOPBACK: &str = "127.0.0.1:4000";
    const REMOTE: &str = "10.0.0.5:4000";
    const SECRET: &str = "0123456789abcdef";

    fn run(address: &str, token: bool, headers: &[(header::HeaderName, &str)]) -> Option<Refusal> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name, HeaderValue::from_str(value).expect("plain text"));
        }
        let token = token.then(|| Token::new(SECRET).expect("long enough"));
        let address = address.parse().expect("an address");
        check(&map, address, token.as_ref()).err()
    }

    #[test]
    fn only_the_own_host_and_origin_get_an_answer() {
        let host = |host| run(LOOPBACK, false, &[(header::HOST, host)]);
        for own in [
            "127.0.0.1:4000",
            "localhost:4000",
            "LOCALHOST",
            "[::1]:4000",
            "127.9.0.1",
        ] {
            assert_eq!(host(own), None, "{own}");
        }
        for foreign in [
            "evil.example:4000",
            "127.0.0.1.evil.example",
            "",
            "10.0.0.5",
        ] {
            assert_eq!(host(foreign), Some(Refusal::Host), "{foreign}");
        }
        assert_eq!(run(LOOPBACK, false, &[]), Some(Refusal::Host));
        let twice = [
            (header::HOST, "localhost:4000"),
            (header::HOST, "localhost:4000"),
        ];
        assert_eq!(run(LOOPBACK, false, &twice), Some(Refusal::Hosts));
        let origin = |origin| {
            let headers = [(header::HOST, "localhost:4000"), (header::ORIGIN, origin)];
            run(LOOPBACK, false, &headers)
        };
        assert_eq!(origin("http://localhost:4000"), None);
        for foreign in ["http://evil.example", "null", "http://localhost:4001"] {
            assert_eq!(origin(foreign), Some(Refusal::Origin), "{foreign}");
        }
    }

    #[test]
    fn a_token_opens_and_nothing_else_does() {
        let offer = |name, value: &str| {
            run(
                REMOTE,
                true,
                &[(header::HOST, "gate.example"), (name, value)],
            )
        };
        assert_eq!(
            offer(header::AUTHORIZATION, "Bearer 0123456789abcdef"),
            None
        );
        let cookie = "a=b; spillgate_token=0123456789abcdef";
        assert_eq!(offer(header::COOKIE, cookie), None);
        for wrong in [
            "Bearer 0123456789abcdeg",
            "Bearer ",
            "Basic x",
            "Bearer 0123456789abcdef0",
        ] {
            let refusal = offer(header::AUTHORIZATION, wrong);
            assert_eq!(refusal, Some(Refusal::Token), "{wrong}");
        }
        assert!(Token::new("0123456789abcde").is_err());
        let shown = format!("{:?}", Token::new(SECRET).expect("long enough"));
        assert!(!shown.contains(SECRET));
    }
}
