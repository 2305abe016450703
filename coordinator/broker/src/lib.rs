//! An embedded MQTT 3.1.1 broker in the coordinator's process, over TCP or TLS.
//!
//! It serves demos, tests and single-machine deployments; a fleet that outgrows one machine uses an external broker by
//! URL and nothing else changes. Packets are parsed by rumqttc's codec.
//!
//! ```
//! use evenhand_broker::{Access, BrokerOptions, EmbeddedBroker};
//! use rumqttc::{AsyncClient, Event, MqttOptions, Packet, QoS};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let broker = EmbeddedBroker::start(BrokerOptions::local(Access::Open)).await?;
//! let options = MqttOptions::new("meter-7", "127.0.0.1", broker.address().port());
//! let (client, mut events) = AsyncClient::new(options, 10);
//! client.subscribe("readings/#", QoS::AtLeastOnce).await?;
//! client.publish("readings/meter-7", QoS::AtLeastOnce, false, "0.42 kWh").await?;
//! let publish = loop {
//!     if let Event::Incoming(Packet::Publish(publish)) = events.poll().await? {
//!         break publish;
//!     }
//! };
//! assert_eq!(&publish.payload[..], b"0.42 kWh");
//! assert_eq!(broker.stats().connections, 1);
//! broker.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Modules
//!
//! | module | content |
//! |---|---|
//! | `server`, `tls` | the listeners and their tasks |
//! | `handshake`, `client`, `packet` | one connection: CONNECT, then packets in and deliveries out |
//! | `state` | sessions, subscriptions, retained messages, backpressure; no I/O |
//! | `access`, `secret` | permissions of clients, passwords of nodes |
//!
//! # Comparison with rumqttd
//!
//! rumqttd 0.20 was tried first. Its behaviour, and what is needed:
//!
//! | rumqttd 0.20 | here |
//! |---|---|
//! | one log a *topic filter*, and delivered messages stay in it until the log wraps: with a filter a node, memory grows with nodes × segments × segment size | acknowledged messages are freed; queued bytes are bounded for each session and in total |
//! | a subscriber that falls behind its log "jumps to head": QoS 1 messages are lost silently | messages that do not fit are dropped at the end of the queue, counted and logged; nodes that flood the coordinator are slowed down by TCP instead |
//! | every client may subscribe to everything, so any node can read every other node's reward | a node may use only the topics under its own name ([`Access`]), and proves that name by a password ([`Secret`]) unless only this machine can connect |
//! | binds by itself, logs a failure instead of returning it, cannot be stopped: threads and port live as long as the process | the listener is bound before anything starts (port 0 works), dropping the handle stops it |
//! | brings axum, a metrics exporter, and five configuration formats along | no further crates |
//!
//! # Not supported
//!
//! Client certificates, QoS 2, MQTT 5, shared subscriptions, sessions that outlive the process. Evenhand needs none of them: every message is idempotent, and after a restart the
//! coordinator asks again.

mod access;
mod client;
mod handshake;
mod message;
mod options;
mod packet;
mod queue;
mod retained;
mod secret;
mod server;
mod state;
mod stats;
mod subscriptions;
mod tls;
mod topic_match;

pub use self::access::{Access, COORDINATOR};
pub use self::options::BrokerOptions;
pub use self::secret::{Secret, SecretError, random_text};
pub use self::server::EmbeddedBroker;
pub use self::stats::BrokerStats;
pub use self::tls::{ListenerTls, ListenerTlsError};
