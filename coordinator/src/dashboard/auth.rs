//! Host check, operator token and security headers.

use std::net::IpAddr;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use evenhand_program::log_rate::LogRate;
use evenhand_protocol::identity::Digest;
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;
use tokio::time::sleep;

use super::DashboardError;
use super::routes::{App, problem};

/// A shorter token could be guessed.
const TOKEN_CHARACTERS_MIN: usize = 16;

/// Nothing from elsewhere, nothing inline, no frames.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The token of the operator. Only its digest is held in memory.
#[derive(Clone)]
pub struct OperatorToken(Digest);

impl OperatorToken {
    /// Reads the token from a file; white space around it does not count.
    pub fn read(path: &Path) -> Result<Self, DashboardError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| DashboardError::TokenFile { path: path.to_owned(), source })?;
        let token = text.trim();
        let found = token.chars().count();
        if found < TOKEN_CHARACTERS_MIN {
            let least = TOKEN_CHARACTERS_MIN;
            return Err(DashboardError::ShortToken { path: path.to_owned(), found, least });
        }
        Ok(Self(Digest::of(token.as_bytes())))
    }

    /// True if the request has the token. Digests are compared in constant time: the time reveals nothing about the token.
    pub(super) fn is_sent(&self, headers: &HeaderMap) -> bool {
        let shown = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map_or("", |(_, token)| token.trim());
        let shown = Digest::of(shown.as_bytes());
        self.0.0.ct_eq(&shown.0).into()
    }
}

impl std::fmt::Debug for OperatorToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OperatorToken")
    }
}

/// Answers only to its own names: a foreign page whose name was pointed to this machine (DNS rebinding) must
/// not read what its visitor could.
pub(super) async fn known_host(State(app): State<App>, request: Request, next: Next) -> Response {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (first, second) = (hosts.next(), hosts.next());
    let host = first.and_then(|host| host.to_str().ok()).unwrap_or_default();
    let other_target = |target: &Authority| !target.as_str().eq_ignore_ascii_case(host);
    if second.is_some() || request.uri().authority().is_some_and(other_target) {
        return problem(StatusCode::BAD_REQUEST, "name one host, once");
    }
    if is_own(host, app.hosts()) {
        return next.run(request).await;
    }
    problem(StatusCode::MISDIRECTED_REQUEST, "unknown host name; add it to dashboard.hosts")
}

fn is_own(host: &str, hosts: &[String]) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    bare.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || hosts.iter().any(|own| own.eq_ignore_ascii_case(name))
}

pub(super) async fn headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Wrong tokens: each is refused after a while, a few at a time, and logged.
#[derive(Debug)]
pub(super) struct Guesses {
    delay: Duration,
    turns: Semaphore,
    log: Mutex<LogRate>,
}

impl Guesses {
    /// Wrong tokens that are refused at the same time.
    const TURNS: usize = 4;

    pub(super) fn new(delay: Duration) -> Self {
        Self { delay, turns: Semaphore::new(Self::TURNS), log: Mutex::default() }
    }

    async fn refuse(&self) {
        let permitted = self.log.lock().unwrap_or_else(PoisonError::into_inner).permit(Instant::now());
        if let Some(left_out) = permitted {
            tracing::warn!(left_out, "dashboard: a command with a wrong token was refused");
        }
        let _turn = self.turns.acquire().await;
        sleep(self.delay).await;
    }
}

/// The answer to a request that may not command; none if it may.
pub(super) async fn unauthorised(app: &App, headers: &HeaderMap) -> Option<Response> {
    match app.token() {
        None => Some(problem(
            StatusCode::FORBIDDEN,
            "this dashboard is read-only; set dashboard.token_file to let its operator command",
        )),
        Some(token) if token.is_sent(headers) => None,
        Some(_) => {
            if headers.contains_key(header::AUTHORIZATION) {
                app.guesses().refuse().await;
            }
            let error = "send the operator's token: Authorization: Bearer TOKEN";
            let refused = problem(StatusCode::UNAUTHORIZED, error);
            Some(([(header::WWW_AUTHENTICATE, "Bearer")], refused).into_response())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_own_names_are_own_and_others_are_not() {
        let hosts = ["meters.example".to_owned()];
        for own in ["127.0.0.1:8787", "[::1]:8787", "[::1]", "localhost", "LOCALHOST:1", "meters.example:443"]
        {
            assert!(is_own(own, &hosts), "{own}");
        }
        for foreign in [
            "",
            "evil.example",
            "evil.example:8787",
            "localhost.evil.example",
            "127.0.0.1.evil.example:1",
            "[",
        ] {
            assert!(!is_own(foreign, &hosts), "{foreign}");
        }
    }

    #[test]
    fn only_the_token_itself_is_the_token() {
        let token = OperatorToken(Digest::of(b"0123456789abcdef"));
        let shown = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, HeaderValue::from_str(value).expect("a header"));
            token.is_sent(&headers)
        };
        assert!(shown("Bearer 0123456789abcdef") && shown("bearer  0123456789abcdef"));
        for wrong in
            ["", "Bearer", "Bearer ", "0123456789abcdef", "Basic 0123456789abcdef", "Bearer 0123456789abcdeF"]
        {
            assert!(!shown(wrong), "{wrong}");
        }
        assert!(!token.is_sent(&HeaderMap::new()));
    }
}
