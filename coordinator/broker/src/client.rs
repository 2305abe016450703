//! One connected client: packets in, deliveries out.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use evenhand_program::log_rate::LogRate;
use rumqttc::{
    ConnectReturnCode, Packet, PubAck, Publish, QoS, SubAck, Subscribe, SubscribeReasonCode, UnsubAck,
};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use crate::BrokerOptions;
use crate::access::Permissions;
use crate::handshake::{CONNECT_BYTES_MAX, accept_client};
use crate::message::{ApplicationMessage, supported_qos};
use crate::packet::{PacketLimits, PacketReader, UnfinishedBytes};
use crate::server::lock;
use crate::state::{BrokerState, ConnectionHandle};
use crate::topic_match::{is_filter, is_topic};

/// Bytes taken from the queue for one write.
const WRITE_BYTES: usize = 256 << 10;

/// Bytes of answers that may wait for a client that does not read.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// The cause of a connection's end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CloseReason {
    #[error("DISCONNECT received")]
    Disconnect,
    #[error("closed by the client")]
    Eof,
    #[error("no packet in time")]
    Timeout,
    #[error("session taken over by a newer connection")]
    TakenOver,
    #[error("too many bytes of unfinished packets")]
    Unfinished,
    #[error("the client does not read")]
    NotReading,
    #[error("refused: {}", code_name(*.0))]
    Refused(ConnectReturnCode),
    #[error("protocol violation: {0}")]
    ProtocolViolation(&'static str),
    #[error(transparent)]
    Packet(#[from] rumqttc::mqttbytes::Error),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// The words of the standard for a return code.
fn code_name(code: ConnectReturnCode) -> &'static str {
    match code {
        ConnectReturnCode::Success => "accepted",
        ConnectReturnCode::RefusedProtocolVersion => "unacceptable protocol version",
        ConnectReturnCode::BadClientId => "identifier rejected",
        ConnectReturnCode::ServiceUnavailable => "server unavailable",
        ConnectReturnCode::BadUserNamePassword => "bad user name or password",
        ConnectReturnCode::NotAuthorized => "not authorized",
    }
}

/// What all connections of a listener share.
#[derive(Debug, Clone)]
pub(crate) struct ClientContext {
    pub(crate) state: Arc<Mutex<BrokerState>>,
    pub(crate) unfinished: Arc<UnfinishedBytes>,
    /// Log lines about logins that were refused.
    pub(crate) refused: Arc<Mutex<LogRate>>,
    /// True if only the coordinator may log in.
    pub(crate) coordinator_only: bool,
    pub(crate) options: Arc<BrokerOptions>,
}

/// Serves one connection until it ends.
pub(crate) async fn serve(
    input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
    peer: SocketAddr,
    context: ClientContext,
) {
    let options = Arc::clone(&context.options);
    // The CONNECT has a time of its own.
    let limits = PacketLimits {
        packet_bytes_max: CONNECT_BYTES_MAX,
        timeout: options.packet_timeout,
        unfinished: None,
    };
    let mut input = PacketReader::new(input, limits.clone());
    let unfinished = Arc::clone(&context.unfinished);
    let mut client = match accept_client(&mut input, &mut output, &context, peer).await {
        Ok(client) => client,
        Err(reason) => return tracing::debug!(%peer, %reason, "connection closed before CONNACK"),
    };
    input.set_limits(match client.permissions.is_node() {
        true => PacketLimits {
            packet_bytes_max: options.node_packet_bytes_max,
            unfinished: Some(unfinished),
            ..limits
        },
        false => PacketLimits { packet_bytes_max: options.packet_bytes_max, ..limits },
    });
    let answers = Mutex::new(BytesMut::new());
    let reason = tokio::select! {
        reason = client.read(&mut input, &answers) => reason,
        reason = client.write(&mut output, &answers) => reason,
    };
    client.graceful = matches!(reason, CloseReason::Disconnect);
    tracing::debug!(%peer, session = %client.connection.session, %reason, "client disconnected");
}

/// A client that was accepted. However its connection ends, the broker's state is updated.
pub(crate) struct Client {
    state: Arc<Mutex<BrokerState>>,
    connection: ConnectionHandle,
    permissions: Permissions,
    idle_timeout: Option<Duration>,
    /// True if the will is not to be published.
    graceful: bool,
}

impl Drop for Client {
    fn drop(&mut self) {
        lock(&self.state).disconnect(&self.connection, self.graceful, Instant::now());
    }
}

impl Client {
    pub(crate) fn new(
        state: Arc<Mutex<BrokerState>>,
        connection: ConnectionHandle,
        permissions: Permissions,
        idle_timeout: Option<Duration>,
    ) -> Self {
        Self { state, connection, permissions, idle_timeout, graceful: false }
    }

    /// Handles packets until there are no more. It never waits for the client to read: then neither side can wait for
    /// the other in a circle.
    async fn read(
        &self,
        input: &mut PacketReader<impl AsyncRead + Unpin>,
        answers: &Mutex<BytesMut>,
    ) -> CloseReason {
        loop {
            let packet = match self.idle_timeout {
                Some(limit) => timeout(limit, input.next()).await.unwrap_or(Err(CloseReason::Timeout)),
                None => input.next().await,
            };
            let handled = match packet {
                Ok(packet) => self.handle(packet).await,
                Err(reason) => Err(reason),
            };
            match handled.and_then(|answer| answer.map_or(Ok(()), |answer| self.answer(&answer, answers))) {
                Ok(()) => {}
                Err(reason) => return reason,
            }
        }
    }

    /// The answer to a packet, if it has one.
    async fn handle(&self, packet: Packet) -> Result<Option<Packet>, CloseReason> {
        match packet {
            Packet::Publish(publish) => self.publish(publish).await,
            Packet::PubAck(ack) => {
                lock(&self.state).acknowledge(&self.connection, ack.pkid);
                Ok(None)
            }
            Packet::Subscribe(subscribe) => Ok(Some(self.subscribe(subscribe))),
            Packet::Unsubscribe(unsubscribe) => {
                let mut state = lock(&self.state);
                unsubscribe.topics.iter().for_each(|filter| state.unsubscribe(&self.connection, filter));
                Ok(Some(Packet::UnsubAck(UnsubAck::new(unsubscribe.pkid))))
            }
            Packet::PingReq => Ok(Some(Packet::PingResp)),
            Packet::Disconnect => Err(CloseReason::Disconnect),
            _ => Err(CloseReason::ProtocolViolation("a packet that only brokers send, or of QoS 2")),
        }
    }

    fn answer(&self, packet: &Packet, answers: &Mutex<BytesMut>) -> Result<(), CloseReason> {
        let mut answers = lock(answers);
        packet.write(&mut answers, ANSWER_BYTES_MAX)?;
        self.connection.wake.notify_one();
        if answers.len() > ANSWER_BYTES_MAX { Err(CloseReason::NotReading) } else { Ok(()) }
    }

    async fn publish(&self, publish: Publish) -> Result<Option<Packet>, CloseReason> {
        let Publish { qos, retain, topic, pkid, payload, .. } = publish;
        if qos == QoS::ExactlyOnce {
            return Err(CloseReason::ProtocolViolation("QoS 2 is not supported"));
        }
        if !is_topic(&topic) {
            return Err(CloseReason::ProtocolViolation("a topic with wildcards"));
        }
        if self.permissions.may_publish(&topic) {
            // A copy, so that a small message does not keep a large buffer alive.
            let payload = Bytes::copy_from_slice(&payload);
            self.publish_with_backpressure(ApplicationMessage { topic, payload, qos, retain }).await;
        } else {
            // MQTT 3.1.1 cannot refuse a message; it is discarded.
            tracing::debug!(session = %self.connection.session, topic, "publish not permitted");
        }
        Ok((qos == QoS::AtLeastOnce).then(|| Packet::PubAck(PubAck::new(pkid))))
    }

    /// Publishes a message; a node's, not before the coordinator has room for it. Until then nothing more is read.
    async fn publish_with_backpressure(&self, message: ApplicationMessage) {
        loop {
            let room = lock(&self.state).room();
            let mut notified = pin!(room.notified());
            notified.as_mut().enable();
            {
                let mut state = lock(&self.state);
                if !self.permissions.is_node() || !state.must_wait(&message) {
                    return state.publish(message);
                }
            }
            notified.await;
        }
    }

    fn subscribe(&self, subscribe: Subscribe) -> Packet {
        let granted = subscribe.filters.into_iter().map(|filter| {
            let qos = supported_qos(filter.qos);
            let granted = is_filter(&filter.path)
                && self.permissions.may_subscribe(&filter.path)
                && lock(&self.state).subscribe(&self.connection, &filter.path, qos);
            if granted { SubscribeReasonCode::Success(qos) } else { SubscribeReasonCode::Failure }
        });
        Packet::SubAck(SubAck::new(subscribe.pkid, granted.collect()))
    }

    /// Writes answers and deliveries as they come, until the connection is over.
    async fn write(&self, output: &mut (impl AsyncWrite + Unpin), answers: &Mutex<BytesMut>) -> CloseReason {
        let mut buffer = BytesMut::new();
        loop {
            self.connection.wake.notified().await;
            loop {
                let waiting = std::mem::take(&mut *lock(answers));
                let Some(deliveries) = lock(&self.state).take(&self.connection, WRITE_BYTES) else {
                    return CloseReason::TakenOver;
                };
                buffer.unsplit(waiting);
                for delivery in deliveries {
                    if let Err(error) = Publish::from(delivery).write(&mut buffer) {
                        return error.into();
                    }
                }
                if buffer.is_empty() {
                    break;
                }
                if let Err(error) = output.write_all(&buffer).await {
                    return error.into();
                }
                buffer.clear();
            }
        }
    }
}
