//! Tokens, host names, malformed requests and peers that do not read.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use evenhand_coordinator::dashboard::DashboardOptions;
use evenhand_federation::Command;
use evenhand_tests::http::{self, Listener, get, request};
use evenhand_tests::synthetic;
use tokio::task::spawn_blocking;

use super::served::{TOKEN, command, options, served};

#[tokio::test(flavor = "multi_thread")]
async fn only_the_token_commands_and_only_known_names_are_answered() {
    let (dashboard, commands) = served(synthetic::view(3, 5, 5), options()).await;
    let (closed, _) = served(synthetic::view(3, 5, 5), DashboardOptions { token: None, ..options() }).await;
    let (address, read_only) = (dashboard.address(), closed.address());
    spawn_blocking(move || {
        let begin = Instant::now();
        for wrong in [None, Some(""), Some("guess"), Some("correct horse battery stapl"), Some("Bearer")] {
            let answer = command(address, "pause", wrong, "");
            assert_eq!(
                (answer.status, answer.header("www-authenticate")),
                (401, Some("Bearer")),
                "{wrong:?}"
            );
        }
        assert!(begin.elapsed() >= 3 * Duration::from_millis(50), "a guess takes its time");
        assert_eq!(command(read_only, "pause", Some(TOKEN), "").status, 403);
        assert_eq!(command(address, "resume", Some(TOKEN), "").status, 202);
        for (host, status) in
            [("evil.example", 421), ("localhost:99", 200), ("127.0.0.1", 200), ("[::1]:1", 200)]
        {
            assert_eq!(request(address, "GET", "/", &[("Host", host)], "").status, status, "{host}");
        }
        let sent = |request: &str| {
            let answer = http::raw(address, format!("{request}Connection: close\r\n\r\n").as_bytes());
            String::from_utf8_lossy(&answer[..answer.len().min(12)]).into_owned()
        };
        for (request, status) in [
            (format!("GET / HTTP/1.1\r\nHost: {address}\r\nHost: evil.example\r\n"), 400),
            (format!("GET / HTTP/1.1\r\nHost: evil.example\r\nHost: {address}\r\n"), 400),
            (format!("GET http://evil.example/ HTTP/1.1\r\nHost: {address}\r\n"), 400),
            ("GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n".into(), 421),
            (format!("GET http://{address}/ HTTP/1.1\r\nHost: {address}\r\n"), 200),
        ] {
            assert_eq!(sent(&request), format!("HTTP/1.1 {status}"), "{request}");
        }
        for path in ["/", "/app.js", "/api/v1/nodes", "/metrics", "/nothing"] {
            let answer = get(address, path);
            let policy = answer.header("content-security-policy").unwrap();
            assert!(policy.starts_with("default-src 'none'") && !policy.contains("http"), "{policy}");
            assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
            assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
            assert_eq!(answer.header("cache-control"), Some("no-store"));
        }
    })
    .await
    .unwrap();
    assert_eq!(*commands.lock().unwrap(), [Command::Resume]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_is_answered_or_dropped_and_nobody_else_notices() {
    let limits = DashboardOptions { idle_timeout: Duration::from_millis(300), ..options() };
    let (dashboard, commands) = served(synthetic::view(3, 5, 5), limits).await;
    let address = dashboard.address();
    spawn_blocking(move || {
        let long = "a".repeat(100_000);
        let host = format!("Host: {address}\r\n");
        let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
        for nonsense in [
            String::new(),
            "\0\u{1}\u{2}\r\n\r\n".into(),
            "GET\r\n\r\n".into(),
            "GET / HTTP/9.9\r\n\r\n".into(),
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(),
            format!("GET /{long} HTTP/1.1\r\n{host}\r\n"),
            format!("GET / HTTP/1.1\r\n{host}X: {long}{long}{long}{long}{long}\r\n\r\n"),
            format!("GET /api/v1/nodes/%ff%00%2e%2e HTTP/1.1\r\n{host}Connection: close\r\n\r\n"),
            format!("GET /api/v1/nodes/..%2f..%2fetc HTTP/1.1\r\n{host}Connection: close\r\n\r\n"),
            format!("GET /api/v1/rounds?from=-1 HTTP/1.1\r\n{host}Connection: close\r\n\r\n"),
            format!("GET /api/v1/rounds?from=4294967296 HTTP/1.1\r\n{host}Connection: close\r\n\r\n"),
            format!("GET /api/v1/rounds?%ff=%zz HTTP/1.1\r\n{host}Connection: close\r\n\r\n"),
            format!("POST /api/v1/commands/remove HTTP/1.1\r\n{host}{bearer}Connection: close\r\nContent-Length: 9\r\n\r\n{{\"node\":\"}}"),
            format!("POST /api/v1/commands/remove HTTP/1.1\r\n{host}{bearer}Connection: close\r\nContent-Length: 100000\r\n\r\n{long}"),
            format!("POST /api/v1/commands/remove HTTP/1.1\r\n{host}{bearer}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        ] {
            if nonsense.is_empty() {
                // Says nothing and leaves.
                drop(std::net::TcpStream::connect(address).unwrap());
                continue;
            }
            let answer = http::raw(address, nonsense.as_bytes());
            let status = String::from_utf8_lossy(&answer[..answer.len().min(12)]).into_owned();
            assert!(!status.starts_with("HTTP/1.1 5"), "{status}");
            assert_eq!(get(address, "/healthz").status, 200);
        }
    })
    .await
    .unwrap();
    assert!(commands.lock().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_does_not_end_is_dropped_though_it_goes_on() {
    let idle_timeout = Duration::from_millis(300);
    let limits = DashboardOptions { connections_max: 1, idle_timeout, ..options() };
    let (dashboard, _) = served(synthetic::view(3, 5, 5), limits).await;
    let address = dashboard.address();
    spawn_blocking(move || {
        let mut slow = TcpStream::connect(address).unwrap();
        slow.set_read_timeout(Some(idle_timeout / 6)).unwrap();
        slow.write_all(format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\n").as_bytes()).unwrap();
        let mut answer = [0; 12];
        // After a hundred lines it would be answered that they are too many.
        let received = loop {
            match slow.read(&mut answer) {
                Ok(bytes) => break bytes,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    let _cut_off = slow.write_all(b"X: y\r\n");
                }
                Err(_) => break 0,
            }
        };
        assert_eq!(received, 0, "{}", String::from_utf8_lossy(&answer));
        assert_eq!(get(address, "/healthz").status, 200);
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn unfinished_requests_keep_nobody_out() {
    let limits =
        DashboardOptions { connections_max: 20, idle_timeout: Duration::from_secs(3600), ..options() };
    let (dashboard, _) = served(synthetic::view(3, 5, 5), limits).await;
    let address = dashboard.address();
    spawn_blocking(move || {
        let listener = Listener::open(address, "/api/v1/events");
        assert_eq!(listener.status, 200);
        let mut slow = Vec::new();
        for _ in 0..100 {
            let mut request = TcpStream::connect(address).unwrap();
            request.write_all(format!("GET / HTTP/1.1\r\nHost: {address}\r\n").as_bytes()).unwrap();
            slow.push(request);
        }
        assert_eq!(get(address, "/healthz").status, 200);
        let text = get(address, "/metrics").text().to_owned();
        assert!(text.contains("evenhand_coordinator_dashboard_subscribers 1\n"), "who listens, stays");
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn listeners_are_limited_and_those_who_do_not_read_are_dropped() {
    let limits = DashboardOptions { events_max: 2, idle_timeout: Duration::from_millis(300), ..options() };
    let (dashboard, _) = served(synthetic::view(3, 5, 5), limits).await;
    let address = dashboard.address();
    let live_view = dashboard.live_view().clone();
    spawn_blocking(move || {
        let metric = || {
            let text = get(address, "/metrics").text().to_owned();
            let line = text
                .lines()
                .find(|line| line.starts_with("evenhand_coordinator_dashboard_subscribers "))
                .unwrap();
            line.rsplit(' ').next().unwrap().parse::<u32>().unwrap()
        };
        let (_first, _second) =
            (Listener::open(address, "/api/v1/events"), Listener::open(address, "/api/v1/events"));
        assert_eq!(metric(), 2);
        assert_eq!(Listener::open(address, "/api/v1/events").status, 503);
        // Neither reads: buffers fill, then the connections time out.
        let federation = synthetic::federation(3, 10);
        let mut link = true;
        while metric() > 0 {
            for _ in 0..100 {
                link = !link;
                live_view.write(|view| {
                    view.refresh(&federation, Default::default(), link);
                });
            }
        }
        assert_eq!(Listener::open(address, "/api/v1/events").status, 200);
    })
    .await
    .unwrap();
}
