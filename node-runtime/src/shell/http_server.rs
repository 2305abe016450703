//! A minimal HTTP server for a few documents: metrics for Prometheus, and the owner's page.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time;

const REQUEST_BYTES_MAX: usize = 8 * 1024;
const TIMEOUT: Duration = Duration::from_secs(5);
/// Connections served at a time.
const CONNECTIONS_MAX: usize = 8;
/// Nothing from elsewhere, nothing inline.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'";

/// A document that is served.
pub(super) struct ServedDocument {
    pub(super) content_type: &'static str,
    pub(super) body: Vec<u8>,
}

/// The answer to a request for a path.
pub(super) enum ServedAnswer {
    Document(ServedDocument),
    /// There is none yet.
    Starting,
    /// There is no such document; these are the paths that there are.
    Unknown(&'static str),
}

/// Documents by path, and the hosts under which browsers may ask for them.
pub(super) struct ServedSite {
    pub(super) answer: Box<dyn Fn(&str) -> ServedAnswer + Send + Sync>,
    /// Names besides addresses and localhost; "*" for any. A page of somebody else that has its name point here, to read through
    /// the owner's browser, asks under that name.
    pub(super) hosts: Vec<String>,
}

impl ServedSite {
    /// True if a browser may ask under this `Host`.
    fn is_host(&self, host: &str) -> bool {
        let name = host.rsplit_once(':').map_or(host, |(name, port)| match port.parse::<u16>() {
            Ok(_) => name,
            Err(_) => host,
        });
        let is_address =
            |text: &str| text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
        is_address(name)
            || is_address(host)
            || name == "localhost"
            || self.hosts.iter().any(|known| known == "*" || known == name)
    }
}

/// Serves a site until the task is ended.
pub(super) async fn serve(listen: SocketAddr, site: ServedSite) -> std::io::Result<JoinHandle<()>> {
    let listener = TcpListener::bind(listen).await?;
    Ok(tokio::spawn(accept(listener, Arc::new(site))))
}

async fn accept(listener: TcpListener, site: Arc<ServedSite>) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            time::sleep(TIMEOUT).await;
            continue;
        };
        let site = Arc::clone(&site);
        tokio::spawn(async move {
            // Clients that are slow or disconnect need no answer.
            let _ = time::timeout(TIMEOUT, answer(stream, &site)).await;
            drop(permit);
        });
    }
}

async fn answer(mut stream: TcpStream, site: &ServedSite) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut block = [0; 1024];
        let count = stream.read(&mut block).await?;
        if count == 0 || request.len() > REQUEST_BYTES_MAX {
            return Ok(());
        }
        request.extend_from_slice(&block[..count]);
    }
    let (status_line, ServedDocument { content_type, body }) = response(&request, site);
    let head = format!(
        "HTTP/1.1 {status_line}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nContent-Security-Policy: {POLICY}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&body).await?;
    stream.shutdown().await
}

fn response(request: &[u8], site: &ServedSite) -> (&'static str, ServedDocument) {
    let text = |text: String| ServedDocument { content_type: "text/plain; charset=utf-8", body: text.into() };
    let head = String::from_utf8_lossy(request);
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let host = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim().to_owned())
    });
    if method != "GET" {
        return ("405 Method Not Allowed", text("only GET\n".into()));
    }
    if host.is_some_and(|host| !site.is_host(&host)) {
        return ("421 Misdirected Request", text("ask by address, or list the name in page.hosts\n".into()));
    }
    let path = target.split('?').next().unwrap_or_default();
    match (site.answer)(path) {
        ServedAnswer::Document(document) => ("200 OK", document),
        ServedAnswer::Starting => ("503 Service Unavailable", text("starting\n".into())),
        ServedAnswer::Unknown(paths) => ("404 Not Found", text(format!("see {paths}\n"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(hosts: &[&str]) -> ServedSite {
        let answer = |path: &str| match path {
            "/here" => {
                ServedAnswer::Document(ServedDocument { content_type: "text/plain", body: b"yes".into() })
            }
            "/soon" => ServedAnswer::Starting,
            _ => ServedAnswer::Unknown("/here"),
        };
        ServedSite { answer: Box::new(answer), hosts: hosts.iter().map(|&host| host.to_owned()).collect() }
    }

    fn status(request: &str, hosts: &[&str]) -> String {
        response(request.as_bytes(), &site(hosts)).0.split(' ').next().unwrap_or_default().to_owned()
    }

    #[test]
    fn paths_methods_and_queries() {
        for (request, expected) in [
            ("GET /here HTTP/1.1\r\n\r\n", "200"),
            ("GET /here?x=1 HTTP/1.1\r\nHost: 127.0.0.1:9465\r\n\r\n", "200"),
            ("GET /soon HTTP/1.1\r\n\r\n", "503"),
            ("GET /none HTTP/1.1\r\n\r\n", "404"),
            ("POST /here HTTP/1.1\r\n\r\n", "405"),
            ("\r\n\r\n", "405"),
            ("GET\r\n\r\n", "404"),
        ] {
            assert_eq!(status(request, &[]), expected, "{request:?}");
        }
    }

    #[test]
    fn a_foreign_name_that_points_here_gets_nothing() {
        let asked = |host: &str, hosts: &[&str]| {
            status(&format!("GET /here HTTP/1.1\r\nhost: {host}\r\n\r\n"), hosts)
        };
        for own in ["127.0.0.1", "192.168.1.7:9465", "[::1]:9465", "::1", "localhost:9465"] {
            assert_eq!(asked(own, &[]), "200", "{own}");
        }
        for foreign in ["evil.example", "evil.example:9465", "localhost.evil.example", ""] {
            assert_eq!(asked(foreign, &[]), "421", "{foreign}");
        }
        assert_eq!(asked("gateway.local:9465", &["gateway.local"]), "200");
        assert_eq!(asked("any.example", &["*"]), "200");
    }
}
