//! Where a broker is, and who the node is to it.

use std::path::PathBuf;

use evenhand_link::{Broker, Tls, TlsFiles};
use evenhand_protocol::chunk;
use evenhand_protocol::identity::NodeId;
use serde::{Deserialize, Serialize};

use super::{ConfigError, secret};

/// Where the broker is, and who the node is to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BrokerSection {
    /// `mqtt://HOST:PORT`, or `mqtts://HOST:PORT` with TLS.
    pub url: String,
    /// User name; an empty one for none. To the federation's broker a node gives its own name if this is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// A file whose content is the password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_file: Option<PathBuf>,
    /// The environment variable that holds the password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_env: Option<String>,
    /// Certificates of the authorities to trust; the system's if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// The node's own certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate_file: Option<PathBuf>,
    /// The private key of the certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// The largest MQTT payload the node sends.
    pub payload_bytes_max: usize,
    /// How often the node shows that it lives.
    pub keep_alive_s: u16,
}

impl Default for BrokerSection {
    fn default() -> Self {
        Self {
            url: "mqtt://127.0.0.1:1883".into(),
            username: None,
            password_file: None,
            password_env: None,
            ca_file: None,
            certificate_file: None,
            key_file: None,
            payload_bytes_max: chunk::PAYLOAD_BYTES_MAX,
            keep_alive_s: 30,
        }
    }
}

impl BrokerSection {
    /// The address with its credentials, and the certificates; reads their files. `own` is who the client is if
    /// neither the address nor a user name says it.
    pub fn resolve(&self, own: Option<&NodeId>) -> Result<(Broker, Option<Tls>), ConfigError> {
        let mut broker = Broker::parse(&self.url)?;
        let own = own.filter(|_| broker.user().is_none()).map(NodeId::as_str);
        if let Some(username) = self.username.as_deref().or(own).filter(|name| !name.is_empty()) {
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

    /// Whether the values make sense together; `name` is that of the section, `own` as in [`Self::resolve`].
    pub(super) fn check(&self, name: &str, own: Option<&NodeId>) -> Result<(), ConfigError> {
        let broker = Broker::parse(&self.url)?;
        let named = match self.username.as_deref() {
            Some(username) => !username.is_empty(),
            None => own.is_some() && broker.user().is_none(),
        };
        let password = self.password_file.is_some() || self.password_env.is_some();
        let certificates = [&self.ca_file, &self.certificate_file, &self.key_file];
        let wrong = if self.password_file.is_some() && self.password_env.is_some() {
            "password_file and password_env exclude each other; keep one"
        } else if password && !named {
            "a password needs a username beside it"
        } else if !broker.encrypted() && certificates.iter().any(|file| file.is_some()) {
            "certificates are of use with mqtts:// only; change the url, or remove them"
        } else if self.keep_alive_s == 0 {
            "keep_alive_s = 0; choose at least one second"
        } else {
            return Ok(());
        };
        Err(ConfigError::Value(format!("{name}: {wrong}")))
    }
}
