//! `[broker]`: the broker, and the permissions on it.
// Explanations are printed as they stand: names of sections in brackets are no links.
#![allow(rustdoc::broken_intra_doc_links)]

use std::net::SocketAddr;
use std::path::PathBuf;

use evenhand_link::{Broker, CertificateFacts, Tls, TlsFiles};
use evenhand_protocol::identity::{FederationId, NodeId};
use serde::{Deserialize, Serialize};

use super::{CoordinatorConfigError, unix_ms};
use evenhand_broker::{Access, COORDINATOR, ListenerTls, Secret};
use evenhand_program::secret_file;

/// The broker between coordinator and nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BrokerConfig {
    /// "embedded", or mqtt://HOST[:PORT], or mqtts://… for TLS; the members of a cluster as HOST:PORT,HOST:PORT,….
    pub url: String,
    /// The address of the embedded broker. With 0.0.0.0:1883 other machines can connect: nodes must then prove their names,
    /// see secret_file. Without listen_certificate_file anybody who can read the traffic of that network sees passwords.
    pub listen: SocketAddr,
    /// TLS on the embedded broker: its certificate, with those that signed it. Nodes then connect to mqtts://….
    ///
    /// Example: `listen_certificate_file = "broker.pem"`
    pub listen_certificate_file: Option<PathBuf>,
    /// TLS on the embedded broker: the certificate's key.
    ///
    /// Example: `listen_key_file = "broker.key"`
    pub listen_key_file: Option<PathBuf>,
    /// Permissions on the embedded broker: "per-node" restricts a node to the topics under its own name; "open" permits
    /// everything, on this machine only.
    pub access: AccessConfig,
    /// A file (openssl rand -hex 32) from which the nodes' passwords on the embedded broker are derived;
    /// `evenhand-coordinator password` prints them. Without it names are not verified, so that anybody who can connect can be
    /// any node; for other machines it is required.
    ///
    /// Example: `secret_file = "broker.secret"`
    pub secret_file: Option<PathBuf>,
    /// On an external broker: the coordinator's user name.
    pub username: String,
    /// On an external broker: a file with the password.
    ///
    /// Example: `password_file = "broker.password"`
    pub password_file: Option<PathBuf>,
    /// With mqtts://: the certificate authorities to trust, instead of the system's.
    ///
    /// Example: `ca_file = "ca.pem"`
    pub ca_file: Option<PathBuf>,
    /// With mqtts://: the coordinator's certificate.
    ///
    /// Example: `certificate_file = "coordinator.pem"`
    pub certificate_file: Option<PathBuf>,
    /// With mqtts://: the certificate's key.
    ///
    /// Example: `key_file = "coordinator.key"`
    pub key_file: Option<PathBuf>,
    /// The largest MQTT payload to send; the strictest of the large brokers refuses 128 KiB.
    pub payload_bytes_max: usize,
}

impl Default for BrokerConfig {
    fn default() -> Self {
        Self {
            url: EMBEDDED.into(),
            listen: SocketAddr::from(([127, 0, 0, 1], 1883)),
            listen_certificate_file: None,
            listen_key_file: None,
            access: AccessConfig::PerNode,
            secret_file: None,
            username: COORDINATOR.into(),
            password_file: None,
            ca_file: None,
            certificate_file: None,
            key_file: None,
            payload_bytes_max: evenhand_protocol::chunk::PAYLOAD_BYTES_MAX,
        }
    }
}

/// The largest payload of a packet of MQTT, with room for its topic.
const PAYLOAD_BYTES_MAX: usize = (256 << 20) - (1 << 16);

/// Large brokers drop connections with packets beyond this.
const PAYLOAD_BYTES_USUAL: usize = 1 << 20;

/// The URL of the embedded broker.
const EMBEDDED: &str = "embedded";

/// Permissions on the embedded broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessConfig {
    /// A node may use only the topics under its own name.
    #[default]
    PerNode,
    /// Every client may use every topic.
    Open,
}

/// The broker to use.
#[derive(Debug, Clone)]
pub enum BrokerChoice {
    /// The embedded broker.
    Embedded {
        /// The address it listens on.
        listen: SocketAddr,
        /// The access policy.
        access: Access,
        /// TLS on that address.
        tls: Option<ListenerTls>,
    },
    /// An external broker.
    External {
        /// Its address.
        broker: Broker,
        /// Its certificates.
        tls: Option<Tls>,
    },
}

impl BrokerConfig {
    pub(super) const SOURCE: &str = include_str!("broker.rs");

    /// The broker for the coordinator of this federation.
    pub(super) fn choice(&self, federation: &FederationId) -> Result<BrokerChoice, CoordinatorConfigError> {
        if self.payload_bytes_max < 1024 {
            return Err(CoordinatorConfigError::Payload(self.payload_bytes_max));
        }
        if self.payload_bytes_max > PAYLOAD_BYTES_MAX {
            return Err(CoordinatorConfigError::PayloadTooLong(self.payload_bytes_max));
        }
        if self.url == EMBEDDED {
            if self.password_file.is_some() {
                return Err(CoordinatorConfigError::UnusedPassword);
            }
            let (listen, tls) = (self.listen, self.listener_tls()?);
            return Ok(BrokerChoice::Embedded { listen, access: self.access(federation)?, tls });
        }
        if self.listen_certificate_file.is_some() || self.listen_key_file.is_some() {
            return Err(CoordinatorConfigError::UnusedCertificate);
        }
        let files = TlsFiles {
            ca: self.ca_file.clone(),
            certificate: self.certificate_file.clone(),
            key: self.key_file.clone(),
        };
        let tls = if files == TlsFiles::default() { None } else { Some(Tls::load(&files)?) };
        Ok(BrokerChoice::External { broker: self.external()?, tls })
    }

    fn listener_tls(&self) -> Result<Option<ListenerTls>, CoordinatorConfigError> {
        match (&self.listen_certificate_file, &self.listen_key_file) {
            (Some(certificate), Some(key)) => Ok(Some(ListenerTls::load(certificate, key)?)),
            (None, None) => Ok(None),
            _ => Err(CoordinatorConfigError::UnpairedCertificate),
        }
    }

    /// The certificates of the coordinator as a client and as a broker, as far as they can be understood: name, key of the
    /// configuration, facts.
    pub(super) fn certificates(&self) -> Vec<(&'static str, &'static str, CertificateFacts)> {
        let files = [
            ("client", "broker.certificate_file", &self.certificate_file),
            ("broker", "broker.listen_certificate_file", &self.listen_certificate_file),
        ];
        let facts = |path: &PathBuf| CertificateFacts::read(path).ok()?;
        files.into_iter().filter_map(|(name, key, path)| Some((name, key, facts(path.as_ref()?)?))).collect()
    }

    /// Sentences about certificates that end.
    pub(super) fn expiry_concerns(&self) -> Vec<String> {
        let expiry = |(_, key, facts): (_, _, CertificateFacts)| facts.expiry(key, unix_ms());
        self.certificates().into_iter().filter_map(expiry).collect()
    }

    /// Sentences about secrets that others can read, guess or listen to, certificates that end, and packets that are refused.
    pub(super) fn concerns(&self) -> Vec<String> {
        let mut concerns = Vec::new();
        let secrets = [("secret_file", &self.secret_file), ("password_file", &self.password_file)];
        for (key, path) in secrets {
            concerns
                .extend(path.iter().flat_map(|path| secret_file::concerns(&format!("broker.{key}"), path)));
        }
        for (key, path) in [("key_file", &self.key_file), ("listen_key_file", &self.listen_key_file)] {
            concerns
                .extend(path.as_ref().and_then(|path| secret_file::exposure(&format!("broker.{key}"), path)));
        }
        if self.payload_bytes_max > PAYLOAD_BYTES_USUAL {
            concerns.push(format!(
                "broker.payload_bytes_max = {}: brokers drop connections with packets of more than 1 MiB, some of 128 KiB",
                self.payload_bytes_max
            ));
        }
        concerns.extend(self.expiry_concerns());
        if self.url == EMBEDDED {
            if !self.listen.ip().to_canonical().is_loopback() && self.listen_certificate_file.is_none() {
                concerns.push(format!(
                    "broker.listen = {}: passwords pass the network in clear; set broker.listen_certificate_file and \
                     broker.listen_key_file",
                    self.listen
                ));
            }
        } else if let Ok(broker) = self.external()
            && broker.sends_password_in_clear()
        {
            concerns.push("broker.url: the password passes the network in clear; use mqtts://".into());
        }
        concerns
    }

    /// The external broker with the coordinator's credentials.
    fn external(&self) -> Result<Broker, CoordinatorConfigError> {
        let broker = Broker::parse(&self.url)?;
        let Some(path) = &self.password_file else { return Ok(broker) };
        if broker.user().is_some() {
            return Err(CoordinatorConfigError::TwoUserNames);
        }
        let password = std::fs::read_to_string(path)
            .map_err(|source| CoordinatorConfigError::Read { path: path.clone(), source })?;
        Ok(broker.with_credentials(&self.username, password.trim_end_matches(['\r', '\n'])))
    }

    /// The access policy of the embedded broker. A node's messages must stay private: on this machine names are trusted, from
    /// other machines they must be proven.
    fn access(&self, federation: &FederationId) -> Result<Access, CoordinatorConfigError> {
        let listen = self.listen;
        let local = listen.ip().to_canonical().is_loopback();
        match (self.access, self.secret()?) {
            (AccessConfig::Open, _) if !local => Err(CoordinatorConfigError::OpenToOthers(listen)),
            (AccessConfig::Open, _) => Ok(Access::Open),
            (AccessConfig::PerNode, None) if !local => Err(CoordinatorConfigError::UnverifiedNames(listen)),
            (AccessConfig::PerNode, secret) => Ok(Access::per_node(federation.clone(), secret)),
        }
    }

    /// True if the broker serves this machine alone.
    pub(super) fn is_local(&self) -> bool {
        match self.url == EMBEDDED {
            true => self.listen.ip().to_canonical().is_loopback(),
            false => Broker::parse(&self.url).is_ok_and(|broker| broker.is_local()),
        }
    }

    /// The broker's address for nodes, if it can be known from here: neither every address of this machine nor the
    /// coordinator's own credentials are of use to them.
    pub fn address(&self) -> Option<String> {
        if self.url != EMBEDDED {
            return Broker::parse(&self.url)
                .is_ok_and(|broker| broker.user().is_none())
                .then(|| self.url.clone());
        }
        let scheme = if self.listen_certificate_file.is_some() { "mqtts" } else { "mqtt" };
        (!self.listen.ip().is_unspecified()).then(|| format!("{scheme}://{}", self.listen))
    }

    fn secret(&self) -> Result<Option<Secret>, CoordinatorConfigError> {
        Ok(self.secret_file.as_deref().map(Secret::read).transpose()?)
    }

    /// A node's password on the embedded broker.
    pub(super) fn password(
        &self,
        federation: &FederationId,
        node: &NodeId,
    ) -> Result<String, CoordinatorConfigError> {
        if node.as_str() == COORDINATOR {
            return Err(CoordinatorConfigError::ReservedName);
        }
        let secret =
            self.secret()?.filter(|_| self.url == EMBEDDED).ok_or(CoordinatorConfigError::NoPasswords)?;
        Ok(secret.password(federation, node))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::config::CoordinatorConfig;

    #[test]
    fn secrets_that_others_can_read_guess_or_hear_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        let concerns = |text: &str, mode: u32, config: &str| {
            std::fs::write(&file, text).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(&file, mode).unwrap();
            let config = config.replace("FILE", &format!("{file:?}"));
            CoordinatorConfig::parse(&format!("[broker]\n{config}")).unwrap().concerns().join("\n")
        };
        let good = "8f3c1a90d2e4b67588aa01fe23cd459b7716e0d4c2b3a4958f60e1d7c3b2a190\n";
        let secret = "secret_file = FILE";
        assert_eq!(concerns(good, 0o600, secret), "");
        assert!(concerns(good, 0o644, secret).contains("broker.secret_file"));
        assert!(concerns(&"a".repeat(32), 0o600, secret).contains("could be guessed"));
        let open = concerns(good, 0o600, "listen = \"0.0.0.0:1883\"\nsecret_file = FILE");
        assert!(open.contains("in clear"), "{open}");
        for (url, heard) in [
            ("mqtt://broker.example", true),
            ("mqtts://broker.example", false),
            ("mqtt://127.0.0.1", false),
            ("mqtt://localhost:1884", false),
            ("mqtt://127.0.0.1,broker.example", true),
        ] {
            let said = concerns(good, 0o600, &format!("url = {url:?}\npassword_file = FILE"));
            assert_eq!(said.contains("in clear"), heard, "{url}: {said}");
            assert_eq!(concerns(good, 0o600, &format!("url = {url:?}")), "", "{url}: no password");
        }
    }

    #[test]
    fn a_certificate_needs_its_key_and_an_embedded_broker() {
        let said = |text: &str| CoordinatorConfig::parse(text).unwrap().broker().unwrap_err().to_string();
        let half = said("[broker]\nlisten_key_file = \"broker.key\"");
        assert!(half.contains("name both files"), "{half}");
        let unused = said("[broker]\nurl = \"mqtt://b\"\nlisten_key_file = \"broker.key\"");
        assert!(unused.contains("embedded"), "{unused}");
    }

    #[test]
    fn the_embedded_broker_verifies_names_of_other_machines() {
        let config = |listen: &str, more: &str| {
            CoordinatorConfig::parse(&format!("[broker]\nlisten = \"{listen}\"\n{more}")).unwrap()
        };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, "0123456789abcdef0123456789abcdef\n").unwrap();
        let secret = format!("secret_file = {file:?}\n");
        let node = NodeId::new("meter-1").unwrap();
        for local in ["127.0.0.1:1883", "127.9.9.9:1883", "[::1]:1883", "[::ffff:127.0.0.1]:1883"] {
            for more in ["", "access = \"open\"", &secret] {
                config(local, more).broker().unwrap();
            }
        }
        for other in ["0.0.0.0:1883", "[::]:1883", "192.168.1.2:1883"] {
            let unverified = config(other, "").broker().unwrap_err();
            assert!(matches!(unverified, CoordinatorConfigError::UnverifiedNames(_)), "{unverified}");
            assert!(unverified.to_string().contains("set broker.secret_file"));
            let open = format!("access = \"open\"\n{secret}");
            assert!(matches!(
                config(other, &open).broker().unwrap_err(),
                CoordinatorConfigError::OpenToOthers(_)
            ));
            config(other, &secret).broker().unwrap();
        }
        let external = "url = \"mqtt://broker.example\"";
        config("0.0.0.0:1883", external).broker().unwrap();
        assert_eq!(config("127.0.0.1:1883", &secret).password(&node).unwrap().len(), 64);
        for more in [String::new(), format!("{external}\n{secret}")] {
            let none = config("127.0.0.1:1883", &more).password(&node).unwrap_err();
            assert!(matches!(none, CoordinatorConfigError::NoPasswords), "{none}");
        }
    }
}
