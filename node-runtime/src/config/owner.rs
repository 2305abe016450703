//! The `[owner]` section: forecasts and standing on a broker at home.
// Explanations are printed as they stand: names of sections in brackets are no links.
#![allow(rustdoc::broken_intra_doc_links)]

use super::section::{SectionCheck, section};
use super::{BrokerLinkConfig, NodeConfig, NodeConfigError};

section! {
    /// Forecasts and standing for the owner, on a broker at home, with Home Assistant's discovery.
    pub struct OwnerConfig {
        /// First levels of the topics.
        pub topic: String = "evenhand/owner".into(),
        /// Home Assistant's discovery prefix; "" for none.
        pub discovery_prefix: String = "homeassistant".into(),
        /// Unit of the readings.
        pub unit: String = "kW".into(),
        /// Forecasts in InfluxDB's line protocol as well, on the topic "influx".
        pub influx: bool = false,
        /// The broker at home, with the same keys as [broker].
        pub broker: BrokerLinkConfig = BrokerLinkConfig::default() => ["url = \"mqtt://127.0.0.1:1883\""],
    }
}

impl SectionCheck for OwnerConfig {
    fn check(&self, name: &str, whole: &NodeConfig) -> Result<(), NodeConfigError> {
        let OwnerConfig { topic, discovery_prefix, .. } = self;
        if topic.is_empty() || !rumqttc::valid_topic(topic) || !rumqttc::valid_topic(discovery_prefix) {
            return Err(NodeConfigError::Value(format!(
                "{name}.topic = {topic:?} and {name}.discovery_prefix = {discovery_prefix:?} must be topics without wildcards"
            )));
        }
        self.broker.check(&format!("{name}.broker"), whole)
    }
}
