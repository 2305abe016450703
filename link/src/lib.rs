//! The MQTT link that nodes and coordinators share.
//!
//! [`Link::connect`] starts one task that keeps the connection to a broker: it connects, subscribes,
//! reconnects with growing pauses, cuts messages into chunks and puts them together again, and asks for
//! chunks that got lost. What comes in is read from [`Events`]; what goes out is given to an [`Outbox`], or to a
//! [`Post`] by those who cannot wait.
//!
//! Both directions are bounded and cannot block each other. [`Outbox::publish`] waits while the broker
//! has not acknowledged a window of packets. If the program is slow to read its events, the link stops
//! acknowledging, so that the broker holds back; it keeps the connection alive meanwhile, and goes on
//! sending.
#![forbid(unsafe_code)]

mod backoff;
mod broker;
mod driver;
mod error;
mod events;
mod members;
mod options;
mod outbox;
mod post;
mod resend;
mod shared;
#[cfg(feature = "testing")]
pub mod testing;
mod tls;

pub use broker::{Broker, BrokerError};
pub use error::LinkError;
pub use events::{Events, LinkEvent, Malformed};
pub use members::plain_options;
pub use options::{LinkOptions, Outgoing};
pub use outbox::{Outbox, Traffic};
pub use post::{Post, Queue};
pub use tls::{Tls, TlsError, TlsFiles};

/// Where links come from.
#[derive(Debug)]
pub struct Link;

impl Link {
    /// Starts a link on the current tokio runtime.
    ///
    /// It lives until [`Outbox::close`] says goodbye, or until its [`Events`] are dropped, which the
    /// broker takes for a lost client and answers with the last will. An error means that the options
    /// cannot work; a broker that is away is none, for the link goes on trying
    /// (see [`Events::first_connection`]).
    pub fn connect(options: LinkOptions) -> Result<(Outbox, Events), LinkError> {
        driver::start(options)
    }
}
