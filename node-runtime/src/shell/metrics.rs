//! Metrics for Prometheus, over a minimal HTTP server for one page.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use evenhand_program::prometheus::CONTENT_TYPE;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time;

use super::{NodeError, StatusSnapshot};

const REQUEST_BYTES_MAX: usize = 8 * 1024;
const TIMEOUT: Duration = Duration::from_secs(5);
/// Connections served at a time.
const CONNECTIONS_MAX: usize = 8;

/// Serves `GET /metrics` until the task is ended.
pub(super) async fn serve(
    listen: SocketAddr,
    status: watch::Receiver<Option<StatusSnapshot>>,
) -> Result<JoinHandle<()>, NodeError> {
    match TcpListener::bind(listen).await {
        Ok(listener) => Ok(tokio::spawn(accept(listener, status))),
        Err(cause) => Err(NodeError::Metrics { listen, cause }),
    }
}

async fn accept(listener: TcpListener, status: watch::Receiver<Option<StatusSnapshot>>) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            time::sleep(TIMEOUT).await;
            continue;
        };
        let page = status.borrow().as_ref().map(StatusSnapshot::metrics);
        tokio::spawn(async move {
            // Clients that are slow or disconnect need no answer.
            let _ = time::timeout(TIMEOUT, answer(stream, page)).await;
            drop(permit);
        });
    }
}

async fn answer(mut stream: TcpStream, page: Option<String>) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut block = [0; 1024];
        let count = stream.read(&mut block).await?;
        if count == 0 || request.len() > REQUEST_BYTES_MAX {
            return Ok(());
        }
        request.extend_from_slice(&block[..count]);
    }
    let (status_line, body) = match page {
        _ if !request.starts_with(b"GET /metrics ") => ("404 Not Found", "see /metrics\n".to_owned()),
        Some(page) => ("200 OK", page),
        None => ("503 Service Unavailable", "starting\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status_line}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}
