//! Incoming packets.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use rumqttc::Packet;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, timeout_at};

use crate::client::CloseReason;

/// Bytes that every connection may hold in an unfinished packet without being counted: most packets are shorter.
const UNCOUNTED_BYTES: usize = 4 << 10;

/// Room reserved at once for a packet: its announced length is only a claim.
const RESERVED_BYTES: usize = 64 << 10;

/// Bytes a second at which a packet must arrive.
const BYTES_PER_SECOND: usize = 1 << 10;

/// Bytes of unfinished packets of all nodes together.
#[derive(Debug)]
pub(crate) struct UnfinishedBytes {
    held: AtomicUsize,
    max: usize,
}

impl UnfinishedBytes {
    pub(crate) fn new(max: usize) -> Self {
        Self { held: AtomicUsize::new(0), max }
    }
}

/// The limits on one connection's packets.
#[derive(Debug, Clone)]
pub(crate) struct PacketLimits {
    pub(crate) packet_bytes_max: usize,
    /// The time for a packet, beside that for its length.
    pub(crate) timeout: Duration,
    /// The total that the connection's unfinished packets count for.
    pub(crate) unfinished: Option<Arc<UnfinishedBytes>>,
}

/// Parses packets out of a stream.
pub(crate) struct PacketReader<S> {
    stream: S,
    buffer: BytesMut,
    limits: PacketLimits,
    /// Bytes of this connection that are in the total.
    counted: usize,
}

impl<S: AsyncRead + Unpin> PacketReader<S> {
    pub(crate) fn new(stream: S, limits: PacketLimits) -> Self {
        Self { stream, buffer: BytesMut::new(), limits, counted: 0 }
    }

    /// Applies these limits from now on.
    pub(crate) fn set_limits(&mut self, limits: PacketLimits) {
        self.count(0);
        self.limits = limits;
    }

    /// The next packet. Time begins to run with its first byte.
    pub(crate) async fn next(&mut self) -> Result<Packet, CloseReason> {
        let mut begun = None;
        loop {
            let wanted = match Packet::read(&mut self.buffer, self.limits.packet_bytes_max) {
                Ok(packet) => {
                    self.count(0);
                    return Ok(packet);
                }
                Err(rumqttc::mqttbytes::Error::InsufficientBytes(wanted)) => wanted,
                Err(error) => return Err(error.into()),
            };
            let held = self.buffer.len();
            if !self.count(held.saturating_sub(UNCOUNTED_BYTES)) {
                return Err(CloseReason::Unfinished);
            }
            self.buffer.reserve(wanted.min(RESERVED_BYTES));
            let read = self.stream.read_buf(&mut self.buffer);
            let read = match held {
                0 => read.await?,
                _ => {
                    let seconds = (held + wanted) / BYTES_PER_SECOND;
                    let begun = *begun.get_or_insert_with(Instant::now);
                    let deadline = begun + self.limits.timeout + Duration::from_secs(seconds as u64);
                    timeout_at(deadline, read).await.map_err(|_| CloseReason::Timeout)??
                }
            };
            if read == 0 {
                return Err(CloseReason::Eof);
            }
        }
    }

    /// Counts this connection's bytes in the total; false if they would exceed it.
    fn count(&mut self, bytes: usize) -> bool {
        let Some(unfinished) = &self.limits.unfinished else { return true };
        let before = std::mem::replace(&mut self.counted, bytes);
        if bytes <= before {
            unfinished.held.fetch_sub(before - bytes, Ordering::Relaxed);
            return true;
        }
        unfinished.held.fetch_add(bytes - before, Ordering::Relaxed) + bytes - before <= unfinished.max
    }
}

impl<S> Drop for PacketReader<S> {
    fn drop(&mut self) {
        if let Some(unfinished) = &self.limits.unfinished {
            unfinished.held.fetch_sub(self.counted, Ordering::Relaxed);
        }
    }
}
