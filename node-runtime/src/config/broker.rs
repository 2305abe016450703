//! The `[broker]` section: address, credentials and certificates.

use std::path::PathBuf;

use evenhand_link::{Broker, CertificateFacts, Tls, TlsFiles};
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

/// The largest payload of a packet of MQTT, with room for its topic.
const PAYLOAD_BYTES_MAX: usize = (256 << 20) - (1 << 16);

/// Large brokers drop connections with packets beyond this.
const PAYLOAD_BYTES_USUAL: usize = 1 << 20;

impl BrokerLinkConfig {
    /// Name and end of the certificate, if there is one that can be understood.
    pub(crate) fn certificate_facts(&self) -> Option<CertificateFacts> {
        CertificateFacts::read(self.certificate_file.as_deref()?).ok()?
    }

    /// Sentences about a certificate that ends or is for another name, and about packets that brokers refuse.
    pub(super) fn link_concerns(&self, name: &str, node: Option<&NodeId>, now_ms: i64) -> Vec<String> {
        let mut concerns = Vec::new();
        if self.payload_bytes_max > PAYLOAD_BYTES_USUAL {
            concerns.push(format!(
                "{name}.payload_bytes_max = {}: brokers drop connections with packets of more than 1 MiB, some of 128 KiB",
                self.payload_bytes_max
            ));
        }
        if let Some(facts) = self.certificate_facts() {
            let key = format!("{name}.certificate_file");
            concerns.extend(facts.expiry(&key, now_ms));
            if let (Some(found), Some(node)) = (&facts.common_name, node)
                && found != node.as_str()
            {
                concerns.push(format!(
                    "{key}: the certificate is for {found:?}, node.id is \"{node}\"; a broker that takes names from \
                     certificates lets this node use the topics of {found:?} only"
                ));
            }
        }
        concerns
    }

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
        } else if self.payload_bytes_max > PAYLOAD_BYTES_MAX {
            "payload_bytes_max is more than a packet of MQTT can hold (256 MiB), and brokers refuse far less; leave the default"
        } else {
            return Ok(());
        };
        Err(NodeConfigError::Value(format!("{name}: {wrong}")))
    }
}
