//! The `[broker]` section: address, credentials and certificates.

use std::path::PathBuf;

use evenhand_link::{Broker, Tls, TlsFiles};
use evenhand_protocol::chunk;
use evenhand_protocol::identity::NodeId;

use super::section::{SectionCheck, section};
use super::{NodeConfig, NodeConfigError, secret};

section! {
    /// The `[broker]` section: address, credentials and certificates.
    pub struct BrokerLinkConfig {
        /// mqtt://HOST:PORT, or mqtts://HOST:PORT with TLS; the members of a cluster as HOST:PORT,HOST:PORT,….
        pub url: String = "mqtt://127.0.0.1:1883".into(),
        /// User name, "" for none; to the federation's broker by default the node's name.
        pub username: Option<String> = None => "\"meter-1\"",
        /// A file that contains the password.
        pub password_file: Option<PathBuf> = None => "\"/etc/evenhand/password\"",
        /// An environment variable that contains the password.
        pub password_env: Option<String> = None => "\"EVENHAND_PASSWORD\"",
        /// TLS: certificates of the trusted authorities (default: the system's).
        pub ca_file: Option<PathBuf> = None => "\"/etc/evenhand/ca.pem\"",
        /// TLS: the node's certificate, for brokers that require one.
        pub certificate_file: Option<PathBuf> = None => "\"/etc/evenhand/node.pem\"",
        /// TLS: the private key of the certificate.
        pub key_file: Option<PathBuf> = None => "\"/etc/evenhand/node.key\"",
        /// The largest MQTT payload the node sends; some brokers refuse 128 KiB.
        pub payload_bytes_max: usize = chunk::PAYLOAD_BYTES_MAX,
        /// Interval of MQTT keep-alive messages.
        pub keep_alive_s: u16 = 30,
    }
}

impl SectionCheck for BrokerLinkConfig {
    fn check(&self, name: &str, whole: &NodeConfig) -> Result<(), NodeConfigError> {
        // Only the federation's broker knows the node by its name.
        self.check_as(name, (name == "broker").then_some(&whole.node.id))
    }
}

impl BrokerLinkConfig {
    /// The address with its credentials, and the certificates; reads their files. `default_user` is the user name if
    /// neither the address nor `username` has one.
    pub fn resolve(&self, default_user: Option<&NodeId>) -> Result<(Broker, Option<Tls>), NodeConfigError> {
        let mut broker = Broker::parse(&self.url)?;
        let default_user = default_user.filter(|_| broker.user().is_none()).map(NodeId::as_str);
        if let Some(username) = self.username.as_deref().or(default_user).filter(|name| !name.is_empty()) {
            let password = secret::read(self.password_file.as_deref(), self.password_env.as_deref())?;
            broker = broker.with_credentials(username, password.unwrap_or_default());
        }
        let files = TlsFiles {
            ca: self.ca_file.clone(),
            certificate: self.certificate_file.clone(),
            key: self.key_file.clone(),
        };
        let tls = broker.encrypted().then(|| Tls::load(&files)).transpose()?;
        Ok((broker, tls))
    }

    fn check_as(&self, name: &str, default_user: Option<&NodeId>) -> Result<(), NodeConfigError> {
        let broker = Broker::parse(&self.url)?;
        let has_user = match self.username.as_deref() {
            Some(username) => !username.is_empty(),
            None => default_user.is_some() && broker.user().is_none(),
        };
        let password = self.password_file.is_some() || self.password_env.is_some();
        let certificates = [&self.ca_file, &self.certificate_file, &self.key_file];
        let wrong = if self.password_file.is_some() && self.password_env.is_some() {
            "password_file and password_env exclude each other; keep one"
        } else if password && !has_user {
            "a password needs a username beside it"
        } else if !broker.encrypted() && certificates.iter().any(|file| file.is_some()) {
            "certificates are of use with mqtts:// only; change the url, or remove them"
        } else if self.keep_alive_s == 0 {
            "keep_alive_s = 0; choose at least one second"
        } else {
            return Ok(());
        };
        Err(NodeConfigError::Value(format!("{name}: {wrong}")))
    }
}
