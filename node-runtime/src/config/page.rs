//! The `[page]` section: the owner's page.
// Explanations are printed as they stand: names of sections in brackets are no links.
#![allow(rustdoc::broken_intra_doc_links)]

use std::net::{Ipv4Addr, SocketAddr};

use super::section::{SectionCheck, section};
use super::{NodeConfig, NodeConfigError};

section! {
    /// The owner's page in a browser, at http://LISTEN/: forecast, what came true, skill, standing. It has no password: on
    /// another address than 127.0.0.1 everybody who reaches it reads the household's load.
    pub struct PageConfig {
        /// Address and port.
        pub listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 9465)),
        /// Names under which browsers reach it, besides addresses and localhost; "*" for any, behind a proxy that checks them.
        pub hosts: Vec<String> = Vec::new(),
        /// Unit of the readings, where there is no [owner] section that names it.
        pub unit: String = "kW".into(),
    }
}

impl SectionCheck for PageConfig {
    fn check(&self, _name: &str, _whole: &NodeConfig) -> Result<(), NodeConfigError> {
        Ok(())
    }
}
