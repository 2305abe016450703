//! Whom the node tells how it is doing.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::{BrokerSection, ConfigError};

/// What a node tells its owner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OwnerSection {
    /// First levels of the topics it speaks on.
    pub topic: String,
    /// Where Home Assistant looks for devices; empty for none.
    pub discovery_prefix: String,
    /// The unit of the readings.
    pub unit: String,
    /// The broker at home.
    pub broker: BrokerSection,
}

impl Default for OwnerSection {
    fn default() -> Self {
        Self {
            topic: "evenhand/owner".into(),
            discovery_prefix: "homeassistant".into(),
            unit: "kW".into(),
            broker: BrokerSection::default(),
        }
    }
}

impl OwnerSection {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let OwnerSection { topic, discovery_prefix, .. } = self;
        if topic.is_empty() || !rumqttc::valid_topic(topic) || !rumqttc::valid_topic(discovery_prefix) {
            return Err(ConfigError::Value(format!(
                "owner.topic = {topic:?} and owner.discovery_prefix = {discovery_prefix:?} must be topics without wildcards"
            )));
        }
        self.broker.check("owner.broker", None)
    }
}

/// Where Prometheus may ask.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsSection {
    /// Address and port; `GET /metrics` is answered there.
    pub listen: SocketAddr,
}
