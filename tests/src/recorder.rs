//! A listener on a broker that records every packet, and sends packets again.

use std::sync::{Arc, Mutex, PoisonError};

use evenhand_link::{Broker, rumqttc_options};
use rumqttc::{AsyncClient, Event, EventLoop, Packet, QoS};
use tokio::task::JoinHandle;

/// A packet that passed the broker.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordedPacket {
    /// Its topic.
    pub topic: String,
    /// Its bytes.
    pub payload: Vec<u8>,
}

/// A listener to `#`.
#[derive(Debug)]
pub struct Recorder {
    packets: Arc<Mutex<Vec<RecordedPacket>>>,
    listening: JoinHandle<()>,
}

impl Recorder {
    /// Listens, from when this returns.
    pub async fn start(broker: &Broker) -> Self {
        let (client, mut events) = client(broker, "recorder");
        client.subscribe("#", QoS::AtLeastOnce).await.expect("the queue has room");
        while !matches!(events.poll().await.expect("a broker"), Event::Incoming(Packet::SubAck(_))) {}
        let packets = Arc::<Mutex<Vec<RecordedPacket>>>::default();
        let recorded = Arc::clone(&packets);
        let listening = tokio::spawn(async move {
            let _client = client;
            while let Ok(event) = events.poll().await {
                if let Event::Incoming(Packet::Publish(packet)) = event {
                    let packet = RecordedPacket { topic: packet.topic, payload: packet.payload.to_vec() };
                    recorded.lock().unwrap_or_else(PoisonError::into_inner).push(packet);
                }
            }
        });
        Self { packets, listening }
    }

    /// All packets so far.
    pub fn packets(&self) -> Vec<RecordedPacket> {
        self.packets.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The packets of the whole time.
    pub fn stop(self) -> Vec<RecordedPacket> {
        self.listening.abort();
        self.packets()
    }
}

/// Publishes packets as they are, each acknowledged by the broker; with `retain`, so that the broker keeps them too.
pub async fn send_again(broker: &Broker, name: &str, packets: Vec<RecordedPacket>, retain: bool) {
    let (client, mut events) = client(broker, name);
    let count = packets.len();
    let publishing = tokio::spawn(async move {
        for packet in packets {
            if client.publish(packet.topic, QoS::AtLeastOnce, retain, packet.payload).await.is_err() {
                return;
            }
        }
        // The event loop needs it until the last acknowledgement.
        std::future::pending::<()>().await;
    });
    let mut acknowledged = 0;
    while acknowledged < count {
        match events.poll().await {
            Ok(Event::Incoming(Packet::PubAck(_))) => acknowledged += 1,
            Ok(_) => {}
            Err(_) => break,
        }
    }
    publishing.abort();
}

fn client(broker: &Broker, name: &str) -> (AsyncClient, EventLoop) {
    let mut options = rumqttc_options(broker, None, name).expect("a client id");
    options.set_inflight(100);
    AsyncClient::new(options, 1_000)
}
