//! One client's connection: its packets in, its deliveries out.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use rumqttc::{
    ConnAck, Connect, ConnectReturnCode, LastWill, Packet, Protocol, PubAck, Publish, QoS, SubAck, Subscribe,
    SubscribeReasonCode, UnsubAck,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::access::Rights;
use super::hub::{Delivery, Hub, Letter, Ticket};
use super::topics::{is_filter, is_topic};
use super::{BrokerOptions, locked};

/// A client that does not introduce itself in this time is none.
const INTRODUCTION: Duration = Duration::from_secs(10);

/// A CONNECT with its will; larger packets are for those who were let in.
const INTRODUCTION_BYTES_MAX: usize = 256 << 10;

/// Written at a time.
const BURST_BYTES: usize = 256 << 10;

/// Answers that may wait for a client that does not read.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error("it said goodbye")]
    Goodbye,
    #[error("it went away")]
    Eof,
    #[error("it kept silent beyond its keep-alive")]
    Silent,
    #[error("a newer connection has taken its place")]
    Replaced,
    #[error("it does not read")]
    Deaf,
    #[error("it was refused: {0:?}")]
    Refused(ConnectReturnCode),
    #[error("it broke the protocol: {0}")]
    Breach(&'static str),
    #[error(transparent)]
    Packet(#[from] rumqttc::mqttbytes::Error),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Serves one client until it leaves.
pub(super) async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    hub: Arc<Mutex<Hub>>,
    options: Arc<BrokerOptions>,
) {
    // Small packets must not wait for each other.
    let _best_effort = stream.set_nodelay(true);
    let (input, mut output) = stream.into_split();
    let mut input =
        Input { stream: input, buffer: BytesMut::new(), packet_bytes_max: INTRODUCTION_BYTES_MAX };
    let introduced = match timeout(INTRODUCTION, input.next()).await {
        Ok(Ok(Packet::Connect(connect))) => welcome(connect, hub, &options, &mut output).await,
        Ok(Ok(_)) => Err(End::Breach("the first packet is no CONNECT")),
        Ok(Err(end)) => Err(end),
        Err(_) => Err(End::Silent),
    };
    let mut guest = match introduced {
        Ok(guest) => guest,
        Err(end) => return tracing::debug!(%peer, %end, "no client"),
    };
    input.packet_bytes_max = options.packet_bytes_max;
    let answers = Mutex::new(BytesMut::new());
    let end = tokio::select! {
        end = guest.read(&mut input, &answers) => end,
        end = guest.write(&mut output, &answers) => end,
    };
    guest.in_peace = matches!(end, End::Goodbye);
    tracing::debug!(%peer, client = %guest.ticket.client, %end, "client gone");
}

/// Lets a client in, or tells it why not.
async fn welcome(
    connect: Connect,
    hub: Arc<Mutex<Hub>>,
    options: &BrokerOptions,
    output: &mut (impl AsyncWrite + Unpin),
) -> Result<Guest, End> {
    let admitted = admit(connect, hub, options);
    let answer = match &admitted {
        Ok((_, known)) => ConnAck::new(ConnectReturnCode::Success, *known),
        Err(code) => ConnAck::new(*code, false),
    };
    let mut bytes = BytesMut::new();
    answer.write(&mut bytes)?;
    output.write_all(&bytes).await?;
    admitted.map(|(guest, _)| guest).map_err(End::Refused)
}

fn admit(
    connect: Connect,
    hub: Arc<Mutex<Hub>>,
    options: &BrokerOptions,
) -> Result<(Guest, bool), ConnectReturnCode> {
    let Connect { protocol, keep_alive, client_id, clean_session: clean, last_will, login } = connect;
    if protocol != Protocol::V4 {
        return Err(ConnectReturnCode::RefusedProtocolVersion);
    }
    let client = match client_id.as_str() {
        "" if clean => locked(&hub).nameless(),
        "" => return Err(ConnectReturnCode::BadClientId),
        name => name.to_owned(),
    };
    let login = login.as_ref().map(|login| (login.username.as_str(), login.password.as_str()));
    let rights = options.access.rights(&client, login).ok_or(ConnectReturnCode::BadUserNamePassword)?;
    let will = last_will.map(|LastWill { topic, message, qos, retain }| Letter {
        payload: Bytes::copy_from_slice(&message),
        qos: at_most_once_or_least(qos),
        topic,
        retain,
    });
    if will.as_ref().is_some_and(|will| !is_topic(&will.topic) || !rights.may_publish(&will.topic)) {
        return Err(ConnectReturnCode::NotAuthorized);
    }
    let connected = locked(&hub).connect(&client, clean, will, rights.clone());
    let (ticket, known) = connected.ok_or(ConnectReturnCode::ServiceUnavailable)?;
    // A client may be silent for one and a half times its keep-alive; 0 means for ever.
    let patience = (keep_alive > 0).then(|| Duration::from_secs(keep_alive.into()) * 3 / 2);
    Ok((Guest { hub, ticket, rights, patience, in_peace: false }, known))
}

/// A client that was let in. However its connection ends, the hub hears of it.
struct Guest {
    hub: Arc<Mutex<Hub>>,
    ticket: Ticket,
    rights: Rights,
    patience: Option<Duration>,
    in_peace: bool,
}

impl Drop for Guest {
    fn drop(&mut self) {
        locked(&self.hub).disconnect(&self.ticket, self.in_peace);
    }
}

impl Guest {
    /// Takes in packets until there are no more. It never waits for the client to read: then neither
    /// side can wait for the other in a circle.
    async fn read(&self, input: &mut Input<impl AsyncRead + Unpin>, answers: &Mutex<BytesMut>) -> End {
        loop {
            let next = match self.patience {
                Some(patience) => timeout(patience, input.next()).await.unwrap_or(Err(End::Silent)),
                None => input.next().await,
            };
            let answer = match next {
                Ok(Packet::Publish(publish)) => self.publish(publish).await,
                Ok(Packet::PubAck(ack)) => {
                    locked(&self.hub).acknowledge(&self.ticket, ack.pkid);
                    Ok(None)
                }
                Ok(Packet::Subscribe(subscribe)) => Ok(Some(self.subscribe(subscribe))),
                Ok(Packet::Unsubscribe(unsubscribe)) => {
                    let mut hub = locked(&self.hub);
                    unsubscribe.topics.iter().for_each(|filter| hub.unsubscribe(&self.ticket, filter));
                    Ok(Some(Packet::UnsubAck(UnsubAck::new(unsubscribe.pkid))))
                }
                Ok(Packet::PingReq) => Ok(Some(Packet::PingResp)),
                Ok(Packet::Disconnect) => Err(End::Goodbye),
                Ok(_) => Err(End::Breach("a packet that only brokers send, or of QoS 2")),
                Err(end) => Err(end),
            };
            match answer.and_then(|answer| answer.map_or(Ok(()), |answer| self.answer(&answer, answers))) {
                Ok(()) => {}
                Err(end) => return end,
            }
        }
    }

    fn answer(&self, packet: &Packet, answers: &Mutex<BytesMut>) -> Result<(), End> {
        let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
        packet.write(&mut answers, ANSWER_BYTES_MAX)?;
        self.ticket.wake.notify_one();
        if answers.len() > ANSWER_BYTES_MAX { Err(End::Deaf) } else { Ok(()) }
    }

    async fn publish(&self, publish: Publish) -> Result<Option<Packet>, End> {
        let Publish { qos, retain, topic, pkid, payload, .. } = publish;
        if qos == QoS::ExactlyOnce {
            return Err(End::Breach("QoS 2 is not offered"));
        }
        if !is_topic(&topic) {
            return Err(End::Breach("a topic with wildcards"));
        }
        if self.rights.may_publish(&topic) {
            // A copy, so that a small message does not keep a large buffer alive.
            let payload = Bytes::copy_from_slice(&payload);
            self.hand_over(Letter { topic, payload, qos, retain }).await;
        } else {
            // MQTT 3.1.1 has no way to refuse a message but to swallow it.
            tracing::debug!(client = %self.ticket.client, topic, "not allowed to publish there");
        }
        Ok((qos == QoS::AtLeastOnce).then(|| Packet::PubAck(PubAck::new(pkid))))
    }

    /// Publishes a letter; a node's, not before the coordinator has room for it. Until then nothing more is read.
    async fn hand_over(&self, letter: Letter) {
        loop {
            let room = Arc::clone(&locked(&self.hub).room);
            let mut notified = pin!(room.notified());
            notified.as_mut().enable();
            {
                let mut hub = locked(&self.hub);
                if !self.rights.is_node() || !hub.holds_back(&letter) {
                    return hub.publish(letter);
                }
            }
            notified.await;
        }
    }

    fn subscribe(&self, subscribe: Subscribe) -> Packet {
        let granted = subscribe.filters.into_iter().map(|filter| {
            let qos = at_most_once_or_least(filter.qos);
            let granted = is_filter(&filter.path)
                && self.rights.may_hear(&filter.path)
                && locked(&self.hub).subscribe(&self.ticket, &filter.path, qos);
            if granted { SubscribeReasonCode::Success(qos) } else { SubscribeReasonCode::Failure }
        });
        Packet::SubAck(SubAck::new(subscribe.pkid, granted.collect()))
    }

    /// Writes answers and deliveries as they come, until the connection is over.
    async fn write(&self, output: &mut (impl AsyncWrite + Unpin), answers: &Mutex<BytesMut>) -> End {
        let mut buffer = BytesMut::new();
        loop {
            self.ticket.wake.notified().await;
            loop {
                let waiting = std::mem::take(&mut *answers.lock().unwrap_or_else(PoisonError::into_inner));
                let Some(deliveries) = locked(&self.hub).take(&self.ticket, BURST_BYTES) else {
                    return End::Replaced;
                };
                buffer.unsplit(waiting);
                for delivery in deliveries {
                    if let Err(error) = packet(delivery).write(&mut buffer) {
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

fn packet(delivery: Delivery) -> Publish {
    let Delivery { letter, qos, kept, id, again } = delivery;
    Publish {
        dup: again,
        qos,
        retain: kept,
        topic: letter.topic.clone(),
        pkid: id,
        payload: letter.payload.clone(),
    }
}

fn at_most_once_or_least(qos: QoS) -> QoS {
    if qos == QoS::AtMostOnce { qos } else { QoS::AtLeastOnce }
}

/// Packets out of a stream.
struct Input<S> {
    stream: S,
    buffer: BytesMut,
    packet_bytes_max: usize,
}

impl<S: AsyncRead + Unpin> Input<S> {
    async fn next(&mut self) -> Result<Packet, End> {
        loop {
            match Packet::read(&mut self.buffer, self.packet_bytes_max) {
                Ok(packet) => return Ok(packet),
                Err(rumqttc::mqttbytes::Error::InsufficientBytes(wanted)) => self.buffer.reserve(wanted),
                Err(error) => return Err(error.into()),
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(End::Eof);
            }
        }
    }
}
