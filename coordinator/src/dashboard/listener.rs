//! Connections, as many as are wanted and for as long as something moves on them.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{self, Instant, Sleep};

/// Rest after an error that affects the listener, such as too many open files.
const REST: Duration = Duration::from_secs(1);

/// A listener with bounds.
pub(super) struct Patient {
    listener: TcpListener,
    seats: Arc<Semaphore>,
    patience: Duration,
}

impl Patient {
    pub(super) fn new(listener: TcpListener, connections_max: usize, patience: Duration) -> Self {
        Self { listener, seats: Arc::new(Semaphore::new(connections_max)), patience }
    }
}

impl Listener for Patient {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            let Ok(seat) = Arc::clone(&self.seats).acquire_owned().await else {
                // Nobody closes the semaphore.
                std::future::pending::<()>().await;
                continue;
            };
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    // Only latency suffers without it.
                    let _slower = stream.set_nodelay(true);
                    let idle = Box::pin(time::sleep(self.patience));
                    return (
                        Connection { stream, idle, patience: self.patience, asked: false, _seat: seat },
                        peer,
                    );
                }
                Err(error) if is_of_the_peer(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "the dashboard cannot accept a connection");
                    time::sleep(REST).await;
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

/// A connection that fails when its peer has not been told anything for too long: it does not read, or does not come to the
/// end of its request. A request has its time from its first byte on; what follows of it keeps no seat.
pub(super) struct Connection {
    stream: TcpStream,
    idle: Pin<Box<Sleep>>,
    patience: Duration,
    /// Whether something was read since the last answer.
    asked: bool,
    _seat: OwnedSemaphorePermit,
}

impl Connection {
    /// What came of a read or a write, or an error if it is too late for it.
    fn watched<T>(&mut self, context: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if done.is_ready() {
            return done;
        }
        self.idle.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    /// What came of a write.
    fn written(
        &mut self,
        context: &mut Context<'_>,
        done: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if done.is_ready() {
            self.asked = false;
            self.give_time();
        }
        self.watched(context, done)
    }

    fn give_time(&mut self) {
        self.idle.as_mut().reset(Instant::now() + self.patience);
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let done = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before && !std::mem::replace(&mut self.asked, true) {
            self.give_time();
        }
        self.watched(context, done)
    }
}

impl AsyncWrite for Connection {
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
