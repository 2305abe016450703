//! Joining: which name belongs to which key and meter, and by what invitation.
//!
//! The registry is a list of changes and what follows from them; it knows no network and no file. The gate makes each change
//! durable before it counts, and answers the sealing's question whom to admit. The federation's state machine knows names
//! alone: a name that speaks is one whose key was proven.

mod gate;
mod key_file;
mod registry;
pub mod rotation;

pub use self::gate::{GateError, Invitee, JoinGate, RegistryJournal};
pub use self::key_file::{CoordinatorKeys, KEY_FILE, KeyFileError};
pub use self::registry::{InviteError, JoinPolicy, NodeRegistry, RegistryChange, RegistryEntry};

use std::sync::Arc;

use evenhand_link::CoordinatorSealing;
use evenhand_program::entropy;
use evenhand_protocol::identity::FederationId;
use evenhand_seal::{CoordinatorSeal, Entropy};

/// The coordinator's sealing with its gate.
pub type CoordinatorGate = CoordinatorSealing<JoinGate>;

/// The sealing of a coordinator with these keys and this gate.
pub fn sealing(
    federation: FederationId,
    keys: CoordinatorKeys,
    gate: JoinGate,
) -> std::io::Result<Arc<CoordinatorGate>> {
    let mut seal =
        CoordinatorSeal::new(federation, keys.current.clone(), Entropy::from_seed(entropy::seed()?));
    if keys.previous.is_some() {
        let CoordinatorKeys { current, previous } = keys;
        seal.set_keys(current, previous.map(|(keys, _)| keys));
    }
    Ok(Arc::new(CoordinatorSealing::new(seal, gate)))
}

/// The sealing of a coordinator that keeps nothing and admits every name once: for demos and experiments.
pub fn open_sealing(federation: FederationId) -> std::io::Result<Arc<CoordinatorGate>> {
    let keys = CoordinatorKeys::generate(&mut Entropy::from_seed(entropy::seed()?));
    sealing(federation, keys, JoinGate::in_memory(JoinPolicy::Open))
}
