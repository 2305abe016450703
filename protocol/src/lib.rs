//! Messages between the nodes and the coordinator of an Evenhand federation.
//!
//! Everything here is a value or a pure function: no sockets, no clock, no files. The crate is
//! `no_std` with `alloc`, so that it fits the smallest node. All lengths in received bytes are bounded: decoding never
//! panics and never allocates beyond the declared limits.
//!
//! A message is encoded by [`envelope`], cut by [`chunk`] into packets that every broker accepts, published on a [`topic`],
//! reassembled and decoded:
//!
//! ```
//! use evenhand_protocol::chunk::{Assembler, PAYLOAD_BYTES_MAX, RESEND_AFTER_MS, Transfer};
//! use evenhand_protocol::envelope;
//! use evenhand_protocol::identity::{FederationId, NodeId};
//! use evenhand_protocol::limits::MessageLimits;
//! use evenhand_protocol::message::{Answer, Message};
//! use evenhand_protocol::topic::{self, Channel};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let topic = topic::node(&FederationId::new("town")?, &NodeId::new("meter-7")?, Channel::Update);
//! assert_eq!(topic, "evenhand/v1/town/node/meter-7/update");
//!
//! let message = Message::Answer(Answer::NeedWeights { round: 3 });
//! let transfer = Transfer::new(envelope::encode(&message), PAYLOAD_BYTES_MAX)?;
//!
//! let limits = MessageLimits::default();
//! let mut assembler = Assembler::new(limits, RESEND_AFTER_MS);
//! for packet in transfer.chunks() {
//!     if let Some(bytes) = assembler.accept(&topic, &packet, 0)? {
//!         assert_eq!(envelope::decode(&bytes, &limits)?, message);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod bytes;
pub mod chunk;
pub mod codec;
pub mod envelope;
pub mod identity;
pub mod limits;
pub mod message;
pub mod reference;
pub mod tick;
pub mod topic;
