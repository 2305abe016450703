//! A listener with a limit on connections and on their idle time.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use evenhand_program::log_rate::LogRate;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::{self, Instant, Sleep};

use super::seats::{Seat, Seats};

/// The pause after an error that affects the listener, such as too many open files.
const ACCEPT_BACKOFF: Duration = Duration::from_secs(1);

/// A listener with up to a number of connections at a time: beyond them, the one that has waited longest is closed, so that
/// nobody can keep others out by unfinished requests.
pub(super) struct LimitedListener {
    listener: TcpListener,
    seats: Arc<Seats>,
    idle_timeout: Duration,
    failures: LogRate,
}

impl LimitedListener {
    pub(super) fn new(listener: TcpListener, connections_max: usize, idle_timeout: Duration) -> Self {
        Self { listener, seats: Seats::new(connections_max), idle_timeout, failures: LogRate::default() }
    }
}

impl Listener for LimitedListener {
    type Io = TimedConnection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TimedConnection, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    // Only latency suffers without it.
                    let _slower = stream.set_nodelay(true);
                    let idle = Box::pin(time::sleep(self.idle_timeout));
                    let (seat, must_go) = self.seats.take();
                    return (
                        TimedConnection {
                            stream,
                            idle,
                            idle_timeout: self.idle_timeout,
                            requested: false,
                            seat,
                            must_go,
                            gone: false,
                        },
                        peer,
                    );
                }
                Err(error) if is_of_the_peer(&error) => {}
                Err(error) => {
                    if let Some(left_out) = self.failures.permit(Instant::now().into_std()) {
                        tracing::warn!(%error, left_out, "dashboard: accept failed");
                    }
                    time::sleep(ACCEPT_BACKOFF).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

fn is_of_the_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// A connection that times out when nothing could be written to it for too long: its peer does not read, or does not
/// finish its request. The time of a request runs from its first byte; further bytes do not extend it.
pub(super) struct TimedConnection {
    stream: TcpStream,
    idle: Pin<Box<Sleep>>,
    idle_timeout: Duration,
    /// True if a request has begun since the last answer.
    requested: bool,
    seat: Seat,
    must_go: oneshot::Receiver<()>,
    /// True once it has given way.
    gone: bool,
}

impl TimedConnection {
    /// The result of a read or a write, or an error after the timeout.
    fn or_timeout<T>(&mut self, context: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if done.is_ready() {
            return done;
        }
        self.gone = self.gone || Pin::new(&mut self.must_go).poll(context).is_ready();
        if self.gone {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        self.idle.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    /// The result of a write, which restarts the timeout.
    fn written(
        &mut self,
        context: &mut Context<'_>,
        done: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if done.is_ready() {
            self.requested = false;
            self.restart_timeout(true);
        }
        self.or_timeout(context, done)
    }

    fn restart_timeout(&mut self, answered: bool) {
        self.seat.refresh(answered);
        self.idle.as_mut().reset(Instant::now() + self.idle_timeout);
    }
}

impl AsyncRead for TimedConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let done = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before && !std::mem::replace(&mut self.requested, true) {
            self.restart_timeout(false);
        }
        self.or_timeout(context, done)
    }
}

impl AsyncWrite for TimedConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(context, done)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.written(context, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
