//! Who a node is.

use std::path::PathBuf;

use evenhand_protocol::identity::{FederationId, NodeId};
use serde::{Deserialize, Serialize};

use super::{ConfigError, secret};

/// Who a node is, and what it may use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSection {
    /// Its name, unique in the federation.
    pub id: NodeId,
    /// The federation it takes part in.
    pub federation: FederationId,
    /// Proof that it may enrol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// A file whose content is the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// The environment variable that holds the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// Where it keeps what it must not forget; nowhere if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_folder: Option<PathBuf>,
    /// Whether it forecasts for its owner.
    #[serde(default = "yes")]
    pub forecasts: bool,
    /// Models with more parameters are declined.
    #[serde(default = "parameters_max")]
    pub parameters_max: usize,
    /// So are models whose file, or whose values computed from one batch, need more memory.
    #[serde(default = "memory_bytes_max")]
    pub memory_bytes_max: usize,
    /// Seed of the rounding in lossy codecs and of all other draws.
    #[serde(default)]
    pub seed: u64,
}

fn yes() -> bool {
    true
}

fn parameters_max() -> usize {
    2_000_000
}

fn memory_bytes_max() -> usize {
    32 << 20
}

impl NodeSection {
    /// A node that keeps nothing and has the limits of the default configuration.
    pub fn new(id: NodeId, federation: FederationId) -> Self {
        Self {
            id,
            federation,
            token: None,
            token_file: None,
            token_env: None,
            state_folder: None,
            forecasts: yes(),
            parameters_max: parameters_max(),
            memory_bytes_max: memory_bytes_max(),
            seed: 0,
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let tokens = [self.token.is_some(), self.token_file.is_some(), self.token_env.is_some()];
        if tokens.into_iter().filter(|given| *given).count() > 1 {
            return Err(ConfigError::Value(
                "node.token, node.token_file and node.token_env exclude each other; keep one".into(),
            ));
        }
        Ok(())
    }

    /// The token, wherever it stands.
    pub(super) fn resolve_token(&self) -> Result<Option<String>, ConfigError> {
        let elsewhere = secret::read(self.token_file.as_deref(), self.token_env.as_deref())?;
        Ok(elsewhere.or_else(|| self.token.clone()))
    }
}
