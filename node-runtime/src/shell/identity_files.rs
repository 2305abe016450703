//! Names of the files with keys and secrets in the state folder.

/// The node's private key.
pub(crate) const KEY: &str = "key";

/// The coordinator's key that was learnt, and the one it was learnt from.
pub(crate) const COORDINATOR: &str = "coordinator";

/// The code of an invitation that was not used yet.
pub(crate) const INVITATION: &str = "invitation";

/// The password on the broker that came with an invitation.
pub(crate) const PASSWORD: &str = "password";
