//! The MQTT link that nodes and coordinators share.
//!
//! [`Link::connect`] starts one task that maintains the connection to a broker: it connects, subscribes, reconnects with
//! exponential backoff, cuts messages into chunks and reassembles them, and requests lost chunks. Received messages are read
//! from [`Events`]; messages are sent by a [`Publisher`], or by a [`BackgroundPublisher`] for callers that cannot wait.
//!
//! Both directions are bounded and cannot block each other. [`Publisher::publish`] waits while the broker
//! has not acknowledged a window of packets. If the program is slow to read its events, the link stops
//! acknowledging, so that the broker stops sending; the connection stays alive meanwhile, and the link continues to
//! send.
//!
//! With [`LinkOptions::sealing`] every message is sealed on its way out and opened on its way in, before anything of it is
//! looked at; messages in clear are refused.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use evenhand_link::{Broker, Link, LinkEvent, LinkOptions};
//! use evenhand_protocol::message::{Answer, Message};
//!
//! # async fn node() -> Result<(), Box<dyn std::error::Error>> {
//! let options = LinkOptions {
//!     subscriptions: vec!["evenhand/v1/town/node/meter-7/task".into()],
//!     ..LinkOptions::new(Broker::parse("mqtt://127.0.0.1")?, "evenhand-town-meter-7")
//! };
//! let (publisher, mut events) = Link::connect(options)?;
//! events.first_connection(Duration::from_secs(10)).await?;
//! let message = Message::Answer(Answer::NeedWeights { round: 3 });
//! publisher.publish("evenhand/v1/town/node/meter-7/update", &message, false).await?;
//! while let Some(event) = events.next().await {
//!     match event {
//!         LinkEvent::Connected { .. } => println!("connected to broker"),
//!         LinkEvent::Disconnected { cause } => println!("disconnected from broker: {cause}"),
//!         LinkEvent::Message { topic, message, .. } => println!("{topic}: {message:?}"),
//!         LinkEvent::Malformed { topic, error, .. } => println!("{topic}: {error}"),
//!         LinkEvent::Secured { .. } | LinkEvent::Rejected(_) | LinkEvent::Refused { .. } => {}
//!     }
//! }
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod background;
mod backoff;
mod broker;
mod cause;
mod certificate;
mod driver;
mod endpoints;
mod error;
mod events;
mod options;
mod publisher;
mod resend;
mod sealing;
mod sealing_tasks;
mod state;
#[cfg(feature = "testing")]
pub mod testing;
mod tls;

pub use background::{BackgroundPublisher, MessageQueue};
pub use broker::{Broker, BrokerError};
pub use certificate::{CertificateFacts, EXPIRY_WARNING_DAYS};
pub use endpoints::rumqttc_options;
pub use error::LinkError;
pub use events::{Events, LinkEvent, MessageError};
pub use options::{LinkOptions, OutboundMessage};
pub use publisher::{Publisher, Traffic};
pub use sealing::{CoordinatorSealing, NodeSealing, OpenedBytes, SealEvent, Sealing};
pub use tls::{Tls, TlsError, TlsFiles};

/// The constructor of links.
#[derive(Debug)]
pub struct Link;

impl Link {
    /// Starts a link on the current tokio runtime.
    ///
    /// It lives until [`Publisher::close`], or until its [`Events`] are dropped, which the broker takes for a lost client and
    /// answers with the will. An error means that the options cannot work; an unreachable broker is none, for the link keeps
    /// reconnecting (see [`Events::first_connection`]).
    pub fn connect(options: LinkOptions) -> Result<(Publisher, Events), LinkError> {
        driver::start(options)
    }
}
