//! The `[node]` section: name, federation, token and limits.

use std::path::PathBuf;

use evenhand_protocol::identity::{FederationId, NodeId};
use evenhand_seal::PublicKey;

use crate::core::OrderLimits;

use super::section::{SectionCheck, section};
use super::{NodeConfig, NodeConfigError, secret};

/// The longest serial number that coordinators accept.
const SERIAL_BYTES_MAX: usize = 64;

section! {
    /// The `[node]` section: name, federation, token and limits.
    pub struct MemberConfig {
        /// The node's name, unique in its federation: letters, digits, '-', '_' and '.'.
        pub id: NodeId = NodeId::new("meter-1").expect("a valid name") => required,
        /// The federation it takes part in.
        pub federation: FederationId = FederationId::new("home").expect("a valid name") => required,
        /// The coordinator's public key, as evenhand-coordinator key prints it. Nothing that another says is believed. Without
        /// it, on this machine alone, the first coordinator is trusted that is seen, and kept to.
        pub coordinator_key: Option<PublicKey> = None => "\"32OZL7WI2MEO5VW7Y6XVWIKZV752VHCCY7WJIR3Z2BLPZ4ANFMRA\"",
        /// The serial number of the meter, where the coordinator binds meters to names.
        pub serial: Option<String> = None => "\"1EBZ0101234567\"",
        /// Enrolment token, where the coordinator requires one; better in a file or an environment variable.
        pub token: Option<String> = None => "\"secret\"",
        /// A file that contains the token.
        pub token_file: Option<PathBuf> = None => "\"/etc/evenhand/token\"",
        /// An environment variable that contains the token.
        pub token_env: Option<String> = None => "\"EVENHAND_TOKEN\"",
        /// Folder of the saved state: model, readings, session number. Without one, every start begins from nothing.
        pub state_folder: Option<PathBuf> = None => "\"/var/lib/evenhand\"",
        /// Forecast the next step continuously.
        pub forecasts: bool = true,
        /// Models with more parameters are declined.
        pub parameters_max: usize = 2_000_000,
        /// Models whose file, or whose values computed from one batch, need more memory are declined; training needs about
        /// twice as much.
        pub memory_bytes_max: usize = 32 << 20,
        /// Orders with more epochs are declined.
        pub epochs_max: u32 = OrderLimits::default().epochs_max,
        /// A training ends after so many minutes, however long the coordinator would wait.
        pub training_minutes_max: u32 = OrderLimits::default().training_ms_max / 60_000,
        /// Seed of the rounding in lossy codecs and of all other draws, together with the node's and the federation's name.
        pub seed: u64 = 0,
    }
}

/// The user name under which coordinators log in.
const COORDINATOR: &str = "evenhand-coordinator";

impl SectionCheck for MemberConfig {
    fn check(&self, name: &str, _whole: &NodeConfig) -> Result<(), NodeConfigError> {
        if self.id.as_str() == COORDINATOR {
            let sentence =
                format!("{name}.id = \"{COORDINATOR}\" is the coordinator's name on brokers; choose another");
            return Err(NodeConfigError::Value(sentence));
        }
        let bounds = [("epochs_max", self.epochs_max), ("training_minutes_max", self.training_minutes_max)];
        if let Some((key, _)) = bounds.into_iter().find(|(_, bound)| *bound == 0) {
            let sentence = format!("{name}.{key} = 0 would decline every order; choose at least 1");
            return Err(NodeConfigError::Value(sentence));
        }
        if self.serial.as_ref().is_some_and(|serial| serial.len() > SERIAL_BYTES_MAX) {
            let sentence = format!("{name}.serial is longer than {SERIAL_BYTES_MAX} characters");
            return Err(NodeConfigError::Value(sentence));
        }
        let tokens = [self.token.is_some(), self.token_file.is_some(), self.token_env.is_some()];
        if tokens.into_iter().filter(|given| *given).count() > 1 {
            return Err(NodeConfigError::Value(format!(
                "{name}.token, {name}.token_file and {name}.token_env exclude each other; keep one"
            )));
        }
        Ok(())
    }
}

impl MemberConfig {
    /// A node that saves nothing and has the limits of the default configuration.
    pub fn new(id: NodeId, federation: FederationId) -> Self {
        Self { id, federation, ..Self::default() }
    }

    /// The token, from the file, the environment or the configuration itself.
    pub(super) fn resolve_token(&self) -> Result<Option<String>, NodeConfigError> {
        let secret = secret::read(self.token_file.as_deref(), self.token_env.as_deref())?;
        Ok(secret.or_else(|| self.token.clone()))
    }
}
