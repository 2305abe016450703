//! The configuration file of a node.

mod broker;
mod error;
mod node;
mod secret;
mod source;
mod watch;

use std::path::Path;
use std::time::Duration;

use evenhand_link::LinkOptions;
use evenhand_models::LoadOptions;
use evenhand_program::config;
use evenhand_program::log::LogConfig;
use evenhand_protocol::identity::{Digest, FederationId, NodeId};
use evenhand_protocol::limits::MessageLimits;
use serde::{Deserialize, Serialize};

pub use broker::BrokerSection;
pub use error::ConfigError;
pub use node::NodeSection;
pub use source::{Pace, PaceSection, SourceSection};
pub use watch::{MetricsSection, OwnerSection};

use crate::core::Settings;
use crate::window::{RowSettings, SeriesSettings, WindowSettings};

/// The default configuration with an explanation of every key; `evenhand-node print-config` prints it.
pub const DEFAULT: &str = include_str!("default.toml");

/// All there is to say about one node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Who the node is.
    pub node: NodeSection,
    /// Where its broker is.
    #[serde(default)]
    pub broker: BrokerSection,
    /// How readings become samples.
    #[serde(default)]
    pub window: SeriesSettings,
    /// How labelled rows become samples; instead of `window`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<RowSettings>,
    /// Where its readings come from.
    pub source: SourceSection,
    /// When they come.
    #[serde(default)]
    pub pace: PaceSection,
    /// What it tells its owner, on a broker at home; nothing if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<OwnerSection>,
    /// Where Prometheus may ask; nowhere if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<MetricsSection>,
    /// What it writes about itself.
    #[serde(default)]
    pub log: LogConfig,
}

impl Config {
    /// The default configuration of a node with this source.
    pub fn new(id: NodeId, federation: FederationId, source: SourceSection) -> Self {
        Self {
            node: NodeSection::new(id, federation),
            broker: BrokerSection::default(),
            window: SeriesSettings::default(),
            rows: None,
            source,
            pace: PaceSection::default(),
            owner: None,
            metrics: None,
            log: LogConfig::default(),
        }
    }

    /// Reads and checks a file.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text =
            std::fs::read_to_string(path).map_err(|cause| ConfigError::File { path: path.into(), cause })?;
        Self::parse(&text)
    }

    /// Reads and checks a text.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let config: Config =
            config::parse(text).map_err(|error| match SourceSection::missing_kind(text) {
                Some(kind) => ConfigError::Feature { kind },
                None => error.into(),
            })?;
        config.check()?;
        Ok(config)
    }

    /// Whether the values make sense together. The files they name are not opened.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.window.check().map_err(ConfigError::Value)?;
        if let Some(rows) = &self.rows {
            rows.check().map_err(ConfigError::Value)?;
        }
        self.pace.check()?;
        self.source.check(&self.pace, self.rows.is_some())?;
        self.node.check()?;
        if let Some(owner) = &self.owner {
            owner.check()?;
        }
        self.broker.check("broker", Some(&self.node.id))
    }

    /// Reads everything that the configuration names and a node needs at its start.
    pub fn resolve(&self) -> Result<(), ConfigError> {
        self.settings()?;
        self.link_options()?;
        for broker in self.owner.iter().map(|owner| &owner.broker).chain(self.source.broker()) {
            broker.resolve(None)?;
        }
        Ok(())
    }

    /// What the core needs to know.
    pub fn settings(&self) -> Result<Settings, ConfigError> {
        Ok(Settings {
            federation: self.node.federation.clone(),
            token: self.node.resolve_token()?,
            software: concat!("evenhand-node ", env!("CARGO_PKG_VERSION")).into(),
            window: match &self.rows {
                Some(rows) => WindowSettings::Rows(rows.clone()),
                None => WindowSettings::Series(self.window.clone()),
            },
            paced_by_rounds: self.pace.by == Pace::Rounds,
            forecasts: self.node.forecasts,
            parameters_max: self.node.parameters_max,
            seed: self.node.seed,
        })
    }

    /// With random streams of its own: nodes whose owners set no seed must not round and draw alike.
    pub fn with_own_streams(mut self) -> Self {
        let name = format!("{}/{}/{}", self.node.federation, self.node.id, self.node.seed);
        let Digest(digest) = Digest::of(name.as_bytes());
        self.node.seed = u64::from_le_bytes(std::array::from_fn(|at| digest[at]));
        self
    }

    /// What a model may ask for.
    pub fn load_options(&self) -> LoadOptions {
        let limits = evenhand_models::ModelLimits {
            activation_bytes_max: self.node.memory_bytes_max,
            decoded_bytes_max: self.node.memory_bytes_max,
            file_bytes_max: self.node.memory_bytes_max,
            ..Default::default()
        };
        LoadOptions { limits, trainable: None }
    }

    /// How to reach the broker; reads the files with passwords and certificates.
    pub fn link_options(&self) -> Result<LinkOptions, ConfigError> {
        let section = &self.broker;
        let (broker, tls) = section.resolve(Some(&self.node.id))?;
        let client_id = format!("evenhand-{}-{}", self.node.federation, self.node.id);
        let message_bytes_max = self.node.parameters_max.saturating_mul(8).max(1 << 20);
        Ok(LinkOptions {
            tls,
            payload_bytes_max: section.payload_bytes_max,
            limits: MessageLimits {
                message_bytes_max,
                // A model that is too large must be understood to be declined; the length of a message bounds it.
                parameters_max: message_bytes_max / size_of::<f32>(),
                incomplete_bytes_max: message_bytes_max.saturating_mul(2),
                ..MessageLimits::default()
            },
            keep_alive: Duration::from_secs(section.keep_alive_s.into()),
            ..LinkOptions::new(broker, client_id)
        })
    }
}

#[cfg(test)]
mod tests;
