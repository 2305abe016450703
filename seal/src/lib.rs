//! End-to-end protection of the messages between nodes and coordinator, whatever lies between.
//!
//! A node and the coordinator agree on a session by two messages, the Noise handshake IK: each proves that it holds its
//! private key, and keys that are thrown away with the session keep what was recorded secret even if private keys are
//! stolen later. Within a session every message is encrypted under a number that is used once. The broker sees topics,
//! sizes and times.
//!
//! Everything here is a value or a pure function of bytes, times and seeds: no sockets, no clock, no files.
//!
//! | message | topic | bytes beside the content |
//! |---|---|---|
//! | beacon: the coordinator's public key and incarnation, in clear, believed by nobody | `manifest`, retained | – |
//! | question: a node that knows no coordinator and saw no beacon asks for it | `node/<id>/status` | – |
//! | hello: a node asks for a session | `node/<id>/status` | – |
//! | welcome: the coordinator agrees, or says why not | `node/<id>/task` | – |
//! | sealed: a message of the protocol | all under `node/<id>` | [`SEALED_BYTES`] |
//! | death: the will; the preimage of a digest that the hello told | `node/<id>/status` | – |
//!
//! ```
//! use evenhand_protocol::identity::{FederationId, NodeId};
//! use evenhand_protocol::topic::{self, Channel};
//! use evenhand_seal::{CoordinatorReceived, CoordinatorSeal, Entropy, KeyPair, NodeIdentity, NodeReceived, NodeSeal, OpenDoor};
//!
//! let (town, meter) = (FederationId::new("town")?, NodeId::new("meter-7")?);
//! let mut entropy = Entropy::from_seed([1; 32]);
//! let keys = KeyPair::generate(&mut entropy);
//! let identity = NodeIdentity::new(town.clone(), meter.clone(), KeyPair::generate(&mut entropy));
//! let mut node = NodeSeal::new(identity.knowing(keys.public()), 1, Entropy::from_seed([2; 32]));
//! let mut coordinator = CoordinatorSeal::new(town.clone(), keys, Entropy::from_seed([3; 32]));
//!
//! let hello = node.connected(0).remove(0);
//! let CoordinatorReceived::Reply(welcome) = coordinator.receive(&hello.topic, &hello.bytes, 0, &mut OpenDoor) else {
//!     panic!("a welcome");
//! };
//! assert!(matches!(node.receive(&welcome.topic, &welcome.bytes, 0), NodeReceived::Secured { .. }));
//!
//! let update = topic::node(&town, &meter, Channel::Update);
//! let sealed = node.seal(&update, b"an update").unwrap();
//! let opened = coordinator.receive(&update, &sealed.bytes, 0, &mut OpenDoor);
//! assert!(matches!(opened, CoordinatorReceived::Message { message, .. } if message == b"an update"));
//! // Once, and nowhere else.
//! let again = coordinator.receive(&update, &sealed.bytes, 0, &mut OpenDoor);
//! assert!(matches!(again, CoordinatorReceived::Refused(_)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod admission;
mod base32;
mod coordinator;
mod entropy;
mod error;
mod handshake;
mod hello_budget;
mod invitation;
mod keys;
mod node;
mod peer;
mod receive_window;
mod session;
mod wire;

pub use admission::{Admission, Introduction, OpenDoor, Rejection};
pub use coordinator::{CoordinatorReceived, CoordinatorSeal};
pub use entropy::Entropy;
pub use error::SealError;
pub use invitation::{Invitation, InvitationError, OneTimeCode};
pub use keys::{KeyError, KeyPair, PublicKey};
pub use node::{NodeIdentity, NodeReceived, NodeSeal};
pub use session::SEALED_BYTES;
pub use wire::SealedMessage;
