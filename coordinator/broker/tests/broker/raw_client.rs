//! A client that sends only the packets a test gives it.

use bytes::BytesMut;
use evenhand_broker::EmbeddedBroker;
use rumqttc::mqttbytes::Error;
use rumqttc::{
    Connect, ConnectReturnCode, Packet, PubAck, Publish, QoS, Subscribe, SubscribeFilter, SubscribeReasonCode,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

const PACKET_BYTES_MAX: usize = 64 << 20;

/// TCP, or TLS over it.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for S {}

pub(crate) struct RawClient {
    stream: Box<dyn ByteStream>,
    buffer: BytesMut,
    packet_id: u16,
    /// Deliveries that arrived before an awaited answer.
    early: Vec<Publish>,
}

impl RawClient {
    /// Opens a TCP connection without a CONNECT.
    pub(crate) async fn open(broker: &EmbeddedBroker) -> Self {
        Self::over(TcpStream::connect(broker.address()).await.unwrap())
    }

    /// A client on a stream that is open already.
    pub(crate) fn over(stream: impl ByteStream + 'static) -> Self {
        Self { stream: Box::new(stream), buffer: BytesMut::new(), packet_id: 0, early: Vec::new() }
    }

    async fn handshake(broker: &EmbeddedBroker, connect: Connect) -> (Self, rumqttc::ConnAck) {
        Self::open(broker).await.log_in(connect).await
    }

    /// Sends the CONNECT; also returns the answer.
    pub(crate) async fn log_in(self, connect: Connect) -> (Self, rumqttc::ConnAck) {
        let mut client = self;
        client.send(Packet::Connect(connect)).await;
        match client.next().await {
            Packet::ConnAck(ack) => (client, ack),
            other => panic!("{other:?}"),
        }
    }

    /// Connects; also returns whether the session was present.
    pub(crate) async fn connect_session(broker: &EmbeddedBroker, connect: Connect) -> (Self, bool) {
        let (client, ack) = Self::handshake(broker, connect).await;
        assert_eq!(ack.code, ConnectReturnCode::Success);
        (client, ack.session_present)
    }

    pub(crate) async fn connect(broker: &EmbeddedBroker, connect: Connect) -> Self {
        Self::connect_session(broker, connect).await.0
    }

    /// Connects and expects a refusal.
    pub(crate) async fn refused(broker: &EmbeddedBroker, connect: Connect) -> ConnectReturnCode {
        let (mut client, ack) = Self::handshake(broker, connect).await;
        assert_ne!(ack.code, ConnectReturnCode::Success);
        client.closed().await;
        ack.code
    }

    pub(crate) async fn send(&mut self, packet: Packet) {
        let mut bytes = BytesMut::new();
        packet.write(&mut bytes, PACKET_BYTES_MAX).unwrap();
        self.stream.write_all(&bytes).await.unwrap();
    }

    /// Sends to a broker that may close the connection.
    pub(crate) async fn try_send(&mut self, packet: Packet) {
        let mut bytes = BytesMut::new();
        packet.write(&mut bytes, PACKET_BYTES_MAX).unwrap();
        let _closed = self.stream.write_all(&bytes).await;
    }

    /// Sends bytes that are no whole packet.
    pub(crate) async fn send_part(&mut self, bytes: &[u8]) {
        let _closed = self.stream.write_all(bytes).await;
    }

    pub(crate) async fn try_next(&mut self) -> Option<Packet> {
        loop {
            match Packet::read(&mut self.buffer, PACKET_BYTES_MAX) {
                Ok(packet) => return Some(packet),
                Err(Error::InsufficientBytes(_)) => {}
                Err(error) => panic!("{error}"),
            }
            if !matches!(self.stream.read_buf(&mut self.buffer).await, Ok(1..)) {
                return None;
            }
        }
    }

    pub(crate) async fn next(&mut self) -> Packet {
        self.try_next().await.expect("the broker closed the connection")
    }

    /// Waits until the broker closes the connection.
    pub(crate) async fn closed(&mut self) {
        while self.try_next().await.is_some() {}
    }

    /// The next message, not acknowledged.
    pub(crate) async fn next_publish(&mut self) -> Publish {
        if !self.early.is_empty() {
            return self.early.remove(0);
        }
        match self.next().await {
            Packet::Publish(publish) => publish,
            other => panic!("{other:?}"),
        }
    }

    /// The next message, acknowledged.
    pub(crate) async fn delivery(&mut self) -> Publish {
        let publish = self.next_publish().await;
        self.send(Packet::PubAck(PubAck::new(publish.pkid))).await;
        publish
    }

    async fn answer(&mut self) -> Packet {
        loop {
            match self.next().await {
                Packet::Publish(publish) => self.early.push(publish),
                answer => return answer,
            }
        }
    }

    pub(crate) async fn try_subscribe(&mut self, filters: &[&str]) -> Vec<SubscribeReasonCode> {
        self.packet_id += 1;
        let filters = filters.iter().map(|path| SubscribeFilter::new((*path).to_owned(), QoS::AtLeastOnce));
        let subscribe = Subscribe { pkid: self.packet_id, ..Subscribe::new_many(filters) };
        self.send(Packet::Subscribe(subscribe)).await;
        match self.answer().await {
            Packet::SubAck(ack) => ack.return_codes,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn subscribe(&mut self, filters: &[&str]) {
        let granted = self.try_subscribe(filters).await;
        assert!(granted.iter().all(|code| *code == SubscribeReasonCode::Success(QoS::AtLeastOnce)));
    }

    /// Publishes and waits for the acknowledgement.
    pub(crate) async fn publish(&mut self, topic: &str, payload: impl Into<Vec<u8>>, retain: bool) {
        self.packet_id += 1;
        let pkid = self.packet_id;
        let publish = Publish { pkid, retain, ..Publish::new(topic, QoS::AtLeastOnce, payload) };
        self.send(Packet::Publish(publish)).await;
        assert_eq!(self.answer().await, Packet::PubAck(PubAck::new(pkid)));
    }
}
