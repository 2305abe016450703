//! `[dashboard]`: the HTTP server.

use std::net::SocketAddr;
use std::path::PathBuf;

use evenhand_program::secret_file;
use serde::{Deserialize, Serialize};

use super::CoordinatorConfigError;
use crate::dashboard::{DashboardOptions, OperatorToken};

/// The dashboard: a page for browsers, JSON under /api/v1/, /metrics, /healthz.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DashboardConfig {
    /// false starts none.
    pub enabled: bool,
    /// The address it listens on. Everybody who reaches it can read; put a proxy with TLS and passwords before it for access
    /// from other machines.
    pub listen: SocketAddr,
    /// A file whose content (openssl rand -hex 32) is the operator's token, to pause, resume, re-explore and remove; without
    /// it the dashboard is read-only.
    ///
    /// Example: `token_file = "operator.token"`
    pub token_file: Option<PathBuf>,
    /// Host names under which browsers reach it, besides addresses and localhost.
    pub hosts: Vec<String>,
}

impl Default for DashboardConfig {
    fn default() -> Self {
        let listen = SocketAddr::from(([127, 0, 0, 1], 8787));
        Self { enabled: true, listen, token_file: None, hosts: Vec::new() }
    }
}

impl DashboardConfig {
    pub(super) const SOURCE: &str = include_str!("dashboard.rs");

    /// Sentences about a token that others can read or guess.
    pub(super) fn concerns(&self) -> Vec<String> {
        let token = self.token_file.as_ref().filter(|_| self.enabled);
        token.iter().flat_map(|path| secret_file::concerns("dashboard.token_file", path)).collect()
    }

    /// The options of the dashboard, unless it is disabled.
    pub(super) fn options(&self) -> Result<Option<DashboardOptions>, CoordinatorConfigError> {
        if !self.enabled {
            return Ok(None);
        }
        let mut options = DashboardOptions::new(self.listen);
        options.token = self.token_file.as_deref().map(OperatorToken::read).transpose()?;
        options.hosts = self.hosts.clone();
        Ok(Some(options))
    }
}
