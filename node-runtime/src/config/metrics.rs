//! The `[metrics]` section: metrics for Prometheus.

use std::net::{Ipv4Addr, SocketAddr};

use super::section::{SectionCheck, section};
use super::{NodeConfig, NodeConfigError};

section! {
    /// Metrics for Prometheus, at http://LISTEN/metrics.
    pub struct MetricsConfig {
        /// Address and port.
        pub listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 9464)),
    }
}

impl SectionCheck for MetricsConfig {
    fn check(&self, _name: &str, _whole: &NodeConfig) -> Result<(), NodeConfigError> {
        Ok(())
    }
}
