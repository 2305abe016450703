//! Incoming packets.

use bytes::BytesMut;
use rumqttc::Packet;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::client::CloseReason;

/// Parses packets out of a stream.
pub(crate) struct PacketReader<S> {
    stream: S,
    buffer: BytesMut,
    packet_bytes_max: usize,
}

impl<S: AsyncRead + Unpin> PacketReader<S> {
    pub(crate) fn new(stream: S, packet_bytes_max: usize) -> Self {
        Self { stream, buffer: BytesMut::new(), packet_bytes_max }
    }

    /// Accepts packets of this size from now on.
    pub(crate) fn set_packet_bytes_max(&mut self, packet_bytes_max: usize) {
        self.packet_bytes_max = packet_bytes_max;
    }

    /// The next packet.
    pub(crate) async fn next(&mut self) -> Result<Packet, CloseReason> {
        loop {
            match Packet::read(&mut self.buffer, self.packet_bytes_max) {
                Ok(packet) => return Ok(packet),
                Err(rumqttc::mqttbytes::Error::InsufficientBytes(wanted)) => self.buffer.reserve(wanted),
                Err(error) => return Err(error.into()),
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(CloseReason::Eof);
            }
        }
    }
}
