//! The configuration file of a node: one file a section, sections listed once.

mod broker;
mod error;
mod history;
mod holiday;
mod log;
mod member;
mod metrics;
mod owner;
mod pace;
mod page;
mod privacy;
mod rows;
pub(crate) mod secret;
pub(crate) mod section;
mod side;
mod window;

use std::path::Path;
use std::time::Duration;

use evenhand_link::LinkOptions;
use evenhand_models::LoadOptions;
pub use evenhand_program::log::{LogConfig, LogFormat, LogLevel};
use evenhand_program::secret_file;
use evenhand_protocol::identity::{Digest, FederationId, NodeId};
use evenhand_protocol::limits::MessageLimits;
use serde::{Deserialize, Serialize};

pub use broker::BrokerLinkConfig;
pub use error::NodeConfigError;
pub use history::HistoryConfig;
pub use holiday::HolidayDate;
pub use member::MemberConfig;
pub use metrics::MetricsConfig;
pub use owner::OwnerConfig;
pub use pace::{Pace, PaceConfig};
pub use page::PageConfig;
pub use privacy::{PrivacyConfig, PrivacyUnit};
pub use rows::RowsConfig;
pub use side::{CovariateConfig, LeaveOutConfig};
pub use window::{MeterQuantity, SampleFormat, SeriesConfig};

use self::section::Section;
use crate::core::{NodeSettings, OrderLimits};
use crate::privacy::NoiseSeed;
pub use crate::source::SourceConfig;
use crate::source::now_ms;
use crate::window::WindowSettings;

/// The list of sections: the type of the whole file, its default text and its check.
macro_rules! sections {
    ($($(#[doc = $about:literal])+ $(#[serde($($serde:tt)+)])? $name:ident: $type:ty,)+) => {
        /// The configuration file of one node, as written.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct NodeConfig {
            $($(#[doc = $about])+ $(#[serde($($serde)+)])? pub $name: $type,)+
        }

        impl NodeConfig {
            /// The default configuration with an explanation of every key; `evenhand-node print-config` prints it.
            pub fn default_text() -> String {
                let sections = [$(<$type as Section>::document(stringify!($name))),+];
                format!("{PREAMBLE}\n{}", sections.join("\n"))
            }

            /// The first value that cannot be used, with the remedy. The files that are named are not opened.
            pub fn check(&self) -> Result<(), NodeConfigError> {
                $(self.$name.check(stringify!($name), self)?;)+
                Ok(())
            }

            /// Section and name of the first required key that the text lacks.
            fn missing_key(text: &toml::Table) -> Option<(&'static str, &'static str)> {
                let lacks = |section: &str, key: &str| {
                    text.get(section).and_then(|section| section.get(key)).is_none()
                };
                $(
                    if let Some(key) =
                        <$type as Section>::required().into_iter().find(|key| lacks(stringify!($name), key))
                    {
                        return Some((stringify!($name), key));
                    }
                )+
                None
            }
        }
    };
}

sections! {
    /// Name, federation, token and limits.
    node: MemberConfig,
    /// The federation's broker.
    #[serde(default)]
    broker: BrokerLinkConfig,
    /// Rules by which readings become samples.
    #[serde(default)]
    window: SeriesConfig,
    /// Labelled rows instead of a series.
    #[serde(default)]
    rows: Option<RowsConfig>,
    /// Readings from before the node was installed.
    #[serde(default)]
    history: Option<HistoryConfig>,
    /// The source of readings.
    source: SourceConfig,
    /// Loads that are subtracted from the source's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    leave_out: Vec<LeaveOutConfig>,
    /// Series that the load may follow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    covariate: Vec<CovariateConfig>,
    /// Times at which readings arrive.
    #[serde(default)]
    pace: PaceConfig,
    /// The least that an update is made of, and noise.
    #[serde(default)]
    privacy: PrivacyConfig,
    /// Forecasts and standing for the owner.
    #[serde(default)]
    owner: Option<OwnerConfig>,
    /// Metrics for Prometheus.
    #[serde(default)]
    metrics: Option<MetricsConfig>,
    /// The owner's page.
    #[serde(default)]
    page: Option<PageConfig>,
    /// Log lines on stderr.
    #[serde(default)]
    log: LogConfig,
}

const PREAMBLE: &str = "\
## The configuration of an Evenhand node.
## Lines with ## explain; lines with # show the default, or an example where there is none.
";

impl NodeConfig {
    /// The default configuration of a node with this source.
    pub fn new(id: NodeId, federation: FederationId, source: SourceConfig) -> Self {
        Self {
            node: MemberConfig::new(id, federation),
            broker: BrokerLinkConfig::default(),
            window: SeriesConfig::default(),
            rows: None,
            history: None,
            source,
            leave_out: Vec::new(),
            covariate: Vec::new(),
            pace: PaceConfig::default(),
            privacy: PrivacyConfig::default(),
            owner: None,
            metrics: None,
            page: None,
            log: LogConfig::default(),
        }
    }

    /// Reads and checks a file.
    pub fn load(path: &Path) -> Result<Self, NodeConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|cause| NodeConfigError::File { path: path.into(), cause })?;
        Self::parse(&text)
    }

    /// Reads and checks a text.
    pub fn parse(text: &str) -> Result<Self, NodeConfigError> {
        let config: NodeConfig = evenhand_program::config::parse(text).map_err(|error| {
            match SourceConfig::missing_kind(text) {
                Some(kind) => NodeConfigError::Feature { kind },
                None => error.into(),
            }
        })?;
        if let Some((section, key)) = text.parse().ok().and_then(|table| Self::missing_key(&table)) {
            let sentence =
                format!("{section}.{key} is missing; see evenhand-node print-config for an example");
            return Err(NodeConfigError::Value(sentence));
        }
        config.check()?;
        Ok(config)
    }

    /// Reads all files and environment variables that the configuration names.
    pub fn resolve(&self) -> Result<(), NodeConfigError> {
        self.settings()?;
        self.link_options()?;
        let sources = self.side_series().map(|(_, source)| source).chain([&self.source]);
        let brokers = sources.filter_map(|source| source.kind().broker());
        for broker in self.owner.iter().map(|owner| &owner.broker).chain(brokers) {
            broker.resolve(None)?;
        }
        Ok(())
    }

    /// Sentences about what works and is not safe, or not for long: secrets that others can read, guess or listen to,
    /// certificates that end or are for another name.
    pub fn concerns(&self) -> Vec<String> {
        let mut concerns = Vec::new();
        if let Some(path) = &self.node.token_file {
            concerns.extend(secret_file::exposure("node.token_file", path));
        }
        let owner = self.owner.as_ref().map(|owner| ("owner.broker", &owner.broker, None));
        let all = [("broker", &self.broker, Some(&self.node.id))].into_iter().chain(owner);
        for (name, section, default_user) in all {
            if let Some(path) = &section.password_file {
                concerns.extend(secret_file::concerns(&format!("{name}.password_file"), path));
            }
            if let Some(path) = &section.key_file {
                concerns.extend(secret_file::exposure(&format!("{name}.key_file"), path));
            }
            concerns.extend(section.link_concerns(name, default_user, now_ms()));
            if section.resolve(default_user).is_ok_and(|(broker, _)| broker.sends_password_in_clear()) {
                concerns.push(format!("{name}.url: the password passes the network in clear; use mqtts://"));
            }
        }
        concerns
    }

    /// The validated settings of the core.
    pub fn settings(&self) -> Result<NodeSettings, NodeConfigError> {
        Ok(NodeSettings {
            federation: self.node.federation.clone(),
            token: self.node.resolve_token()?,
            software: concat!("evenhand-node ", env!("CARGO_PKG_VERSION")).into(),
            window: match &self.rows {
                Some(rows) => WindowSettings::Rows(rows.clone()),
                None => WindowSettings::Series(self.window.clone()),
            },
            side_series: self.side_series().map(|(side, _)| side).collect(),
            paced_by_rounds: self.pace.by == Pace::Rounds,
            forecasts: self.node.forecasts,
            parameters_max: self.node.parameters_max,
            order_limits: OrderLimits {
                epochs_max: self.node.epochs_max,
                training_ms_max: self.node.training_minutes_max.saturating_mul(60_000),
            },
            privacy: self.privacy.clone(),
            noise_seed: NoiseSeed::repeatable(self.node.seed),
            seed: self.node.seed,
        })
    }

    /// The configuration with a seed that depends on the node's name: nodes whose owners set no seed must not round and draw
    /// alike.
    pub fn with_derived_seed(mut self) -> Self {
        let name = format!("{}/{}/{}", self.node.federation, self.node.id, self.node.seed);
        let Digest(digest) = Digest::of(name.as_bytes());
        self.node.seed = u64::from_le_bytes(std::array::from_fn(|at| digest[at]));
        self
    }

    /// Limits for models.
    pub fn load_options(&self) -> LoadOptions {
        let limits = evenhand_models::ModelLimits {
            activation_bytes_max: self.node.memory_bytes_max,
            decoded_bytes_max: self.node.memory_bytes_max,
            file_bytes_max: self.node.memory_bytes_max,
            ..Default::default()
        };
        LoadOptions { limits, trainable: None }
    }

    /// Options of the link to the broker; reads the files with passwords and certificates.
    pub fn link_options(&self) -> Result<LinkOptions, NodeConfigError> {
        let section = &self.broker;
        let (broker, tls) = section.resolve(Some(&self.node.id))?;
        let client_id = format!("evenhand-{}-{}", self.node.federation, self.node.id);
        let message_bytes_max = self.node.parameters_max.saturating_mul(8).max(1 << 20);
        Ok(LinkOptions {
            tls,
            payload_bytes_max: section.payload_bytes_max,
            limits: MessageLimits {
                message_bytes_max,
                // A model that is too large must be decoded to be declined; the length of a message bounds it.
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
