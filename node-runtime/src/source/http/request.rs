//! A request, and the connection for it.

use std::fmt;
use std::io::{self, Read, Write};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use evenhand_link::Tls;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use url::Url;

use crate::source::tcp;

/// Time for a part of an answer.
const PART_TIMEOUT: Duration = Duration::from_secs(5);

/// A request for an address, ready to be sent.
pub(super) struct HttpRequest {
    /// HOST:PORT.
    address: String,
    host: String,
    is_encrypted: bool,
    bytes: Vec<u8>,
}

/// A connection, perhaps encrypted.
pub(super) trait HttpStream: Read + Write {}

impl<S: Read + Write> HttpStream for S {}

impl HttpRequest {
    /// A request for `url` with these credentials, or the mistake in the address with the remedy.
    pub(super) fn new(url: &str, credentials: Option<(&str, &str)>) -> Result<Self, String> {
        let wrong = |what: &str| {
            format!("source.url = {url:?}{what}; write http://HOST/PATH, e.g. \"http://192.168.1.40/status\"")
        };
        let parsed = Url::parse(url).map_err(|error| wrong(&format!(" is no address ({error})")))?;
        let is_encrypted = match parsed.scheme() {
            "http" => false,
            "https" => true,
            _ => return Err(wrong(" is of another protocol")),
        };
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err("source.url has a user name; use source.username and source.password_file".into());
        }
        let (Some(host), Some(port)) = (parsed.host_str(), parsed.port_or_known_default()) else {
            return Err(wrong(" has no host"));
        };
        let query = parsed.query().map(|query| format!("?{query}")).unwrap_or_default();
        let path = parsed.path();
        let authorization = credentials.map(|(username, password)| {
            format!("Authorization: Basic {}\r\n", STANDARD.encode(format!("{username}:{password}")))
        });
        let text = format!(
            "GET {path}{query} HTTP/1.1\r\nHost: {host}:{port}\r\nAccept: application/json, */*\r\n{}Connection: close\r\n\r\n",
            authorization.unwrap_or_default()
        );
        let address = format!("{host}:{port}");
        let host = host.trim_matches(['[', ']']).to_owned();
        Ok(Self { address, host, is_encrypted, bytes: text.into_bytes() })
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A new connection.
    pub(super) fn connect(&self, tls: Option<&Tls>) -> io::Result<Box<dyn HttpStream>> {
        let stream = tcp::connect(&self.address, PART_TIMEOUT)?;
        let Some(tls) = tls else { return Ok(Box::new(stream)) };
        let name = ServerName::try_from(self.host.clone()).map_err(io::Error::other)?;
        let connection = ClientConnection::new(tls.client_config(), name).map_err(io::Error::other)?;
        Ok(Box::new(StreamOwned::new(connection, stream)))
    }
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the credentials.
        f.debug_struct("HttpRequest").field("address", &self.address).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_request_with_credentials() {
        // The example of RFC 7617.
        let request = HttpRequest::new("http://[::1]/a b?c=d", Some(("Aladdin", "open sesame"))).unwrap();
        assert_eq!(request.address, "[::1]:80");
        let text = String::from_utf8(request.bytes().to_vec()).unwrap();
        assert!(text.starts_with("GET /a%20b?c=d HTTP/1.1\r\nHost: [::1]:80\r\n"), "{text}");
        assert!(text.contains("Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"), "{text}");
        assert!(text.ends_with("\r\n\r\n") && !format!("{request:?}").contains("QWx"));
    }

    #[test]
    fn addresses_that_cannot_be_asked() {
        for (url, expected) in [
            ("", "write http://HOST/PATH"),
            ("192.168.1.40", "write http://HOST/PATH"),
            ("mqtt://h", "another protocol"),
            ("http://u:p@h/", "source.password_file"),
        ] {
            assert!(HttpRequest::new(url, None).unwrap_err().contains(expected), "{url}");
        }
    }
}
