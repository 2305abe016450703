//! The configuration file of a node.

mod error;

use std::path::{Path, PathBuf};
use std::time::Duration;

use evenhand_link::{Broker, LinkOptions, Tls, TlsFiles};
use evenhand_protocol::chunk;
use evenhand_protocol::identity::{FederationId, NodeId};
use evenhand_protocol::limits::Limits;
use serde::{Deserialize, Serialize};

pub use error::ConfigError;

use crate::core::Settings;
use crate::source::csv::CsvSettings;
use crate::source::household::HouseholdSettings;
use crate::source::jsonl::JsonlSettings;
use crate::source::modbus::ModbusSettings;
use crate::source::mqtt::MqttSettings;
use crate::source::p1::P1Settings;
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
    /// What it writes about itself.
    #[serde(default)]
    pub log: LogSection,
}

/// Who a node is, and what it may use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSection {
    /// Its name, unique in the federation.
    pub id: NodeId,
    /// The federation it takes part in.
    pub federation: FederationId,
    /// Proof that it may enrol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// A file whose content is the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// Where it keeps what it must not forget; nowhere if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_folder: Option<PathBuf>,
    /// Whether it forecasts for its owner.
    #[serde(default = "yes")]
    pub forecasts: bool,
    /// Models with more parameters are declined.
    #[serde(default = "parameters_max")]
    pub parameters_max: usize,
    /// Seed of the rounding in lossy codecs.
    #[serde(default)]
    pub seed: u64,
}

fn yes() -> bool {
    true
}

fn parameters_max() -> usize {
    4_000_000
}

/// Where the broker is, and who the node is to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BrokerSection {
    /// `mqtt://HOST:PORT`, or `mqtts://HOST:PORT` with TLS.
    pub url: String,
    /// User name.
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

/// Where readings come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SourceSection {
    /// A synthetic household.
    Household(HouseholdSettings),
    /// A CSV file.
    Csv(CsvSettings),
    /// JSON lines.
    Jsonl(JsonlSettings),
    /// A topic on an MQTT broker.
    Mqtt(MqttSettings),
    /// A meter on Modbus TCP.
    Modbus(ModbusSettings),
    /// The P1 port of a smart meter.
    P1(P1Settings),
}

/// When readings come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PaceSection {
    /// What sets the pace.
    pub by: Pace,
    /// Readings taken in at each round.
    pub readings_per_round: usize,
    /// How much faster than real time a synthetic household lives.
    pub speed: f64,
}

impl Default for PaceSection {
    fn default() -> Self {
        Self { by: Pace::Clock, readings_per_round: 8, speed: 1.0 }
    }
}

/// What sets the pace of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// Readings come when they are measured.
    Clock,
    /// Simulated or recorded readings come round by round.
    Rounds,
}

/// What a node writes about itself, on stderr.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogSection {
    /// The least important messages that are written.
    pub level: LogLevel,
    /// Their form.
    pub format: LogFormat,
}

impl Default for LogSection {
    fn default() -> Self {
        Self { level: LogLevel::Info, format: LogFormat::Text }
    }
}

/// How important a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "known by name")]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// The form of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// One line for people.
    Text,
    /// One JSON object a line.
    Json,
}

impl Config {
    /// Reads and checks a file.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text =
            std::fs::read_to_string(path).map_err(|cause| ConfigError::File { path: path.into(), cause })?;
        Self::parse(&text)
    }

    /// Reads and checks a text.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let config: Config = toml::from_str(text).map_err(|error| ConfigError::syntax(&error))?;
        config.check()?;
        Ok(config)
    }

    /// Whether the values make sense together. The files they name are not opened.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.window.check().map_err(ConfigError::Value)?;
        if let Some(rows) = &self.rows {
            rows.check().map_err(ConfigError::Value)?;
        }
        match &self.source {
            SourceSection::Household(household) => household.check(),
            SourceSection::Csv(csv) => csv.check(),
            SourceSection::Jsonl(jsonl) => jsonl.check(),
            SourceSection::Mqtt(mqtt) => mqtt.check(),
            SourceSection::Modbus(modbus) => modbus.check(),
            SourceSection::P1(p1) => p1.check(),
        }
        .map_err(ConfigError::Value)?;
        let value = |sentence: &str| Err(ConfigError::Value(sentence.to_owned()));
        if self.pace.readings_per_round == 0 {
            return value("pace.readings_per_round = 0; take at least one reading a round");
        }
        if !(self.pace.speed.is_finite() && self.pace.speed > 0.0) {
            return value("pace.speed must be positive; 1.0 is real time");
        }
        if self.node.token.is_some() && self.node.token_file.is_some() {
            return value("node.token and node.token_file exclude each other; keep the file");
        }
        if let SourceSection::Mqtt(MqttSettings { broker: Some(broker), .. }) = &self.source {
            broker.check()?;
        }
        self.broker.check()
    }

    /// What the core needs to know.
    pub fn settings(&self) -> Result<Settings, ConfigError> {
        let token = match &self.node.token_file {
            Some(path) => Some(secret(path)?),
            None => self.node.token.clone(),
        };
        Ok(Settings {
            federation: self.node.federation.clone(),
            token,
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

    /// How to reach the broker; reads the files with passwords and certificates.
    pub fn link_options(&self) -> Result<LinkOptions, ConfigError> {
        let section = &self.broker;
        let (broker, tls) = section.resolve()?;
        let client_id = format!("evenhand-{}-{}", self.node.federation, self.node.id);
        let message_bytes_max = self.node.parameters_max.saturating_mul(8).max(1 << 20);
        Ok(LinkOptions {
            tls,
            payload_bytes_max: section.payload_bytes_max,
            limits: Limits {
                message_bytes_max,
                parameters_max: self.node.parameters_max,
                open_bytes_max: message_bytes_max.saturating_mul(2),
                ..Limits::default()
            },
            keep_alive: Duration::from_secs(section.keep_alive_s.into()),
            ..LinkOptions::new(broker, client_id)
        })
    }
}

impl BrokerSection {
    /// The address with its credentials, and the certificates; reads their files.
    pub fn resolve(&self) -> Result<(Broker, Option<Tls>), ConfigError> {
        let mut broker = Broker::parse(&self.url)?;
        if let Some(username) = &self.username {
            let password = match (&self.password_file, &self.password_env) {
                (Some(path), _) => secret(path)?,
                (None, Some(name)) => {
                    std::env::var(name).map_err(|_| ConfigError::Environment(name.clone()))?
                }
                (None, None) => String::new(),
            };
            broker = broker.with_credentials(username, password);
        }
        let files = TlsFiles {
            ca: self.ca_file.clone(),
            certificate: self.certificate_file.clone(),
            key: self.key_file.clone(),
        };
        let tls = broker.encrypted().then(|| Tls::load(&files)).transpose()?;
        Ok((broker, tls))
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.password_file.is_some() && self.password_env.is_some() {
            return Err(ConfigError::Value(
                "password_file and password_env of a broker exclude each other; keep one".into(),
            ));
        }
        if self.keep_alive_s == 0 {
            return Err(ConfigError::Value("broker.keep_alive_s = 0; choose at least one second".into()));
        }
        Broker::parse(&self.url)?;
        Ok(())
    }
}

/// The content of a file that holds a secret, without the line end editors add.
fn secret(path: &Path) -> Result<String, ConfigError> {
    let text =
        std::fs::read_to_string(path).map_err(|cause| ConfigError::File { path: path.into(), cause })?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const MINIMAL: &str = "[node]\nid = \"m1\"\nfederation = \"town\"\n[source]\nkind = \"household\"\n";

    fn error(text: &str) -> String {
        Config::parse(text).unwrap_err().to_string()
    }

    /// The default with every line that shows a default in effect.
    fn uncommented() -> String {
        let shows_a_default = |line: &str| {
            line.strip_prefix('#')
                .filter(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()))
                .map(str::to_owned)
        };
        DEFAULT.lines().map(|line| shows_a_default(line).unwrap_or(line.into()) + "\n").collect()
    }

    #[test]
    fn the_printed_default_parses_and_says_the_truth() {
        let printed = Config::parse(DEFAULT).unwrap();
        let minimal = Config::parse(&MINIMAL.replace("m1", "meter-1").replace("town", "home")).unwrap();
        assert_eq!(printed, minimal);
        let mut shown: Config = toml::from_str(&uncommented()).unwrap();
        let (node, broker) = (&mut shown.node, &mut shown.broker);
        let examples =
            (node.token.take(), node.token_file.take(), node.state_folder.take(), broker.username.take());
        let more = (broker.password_file.take(), broker.password_env.take(), broker.ca_file.take());
        let certificate = (broker.certificate_file.take(), broker.key_file.take());
        assert!(
            matches!(examples, (Some(_), Some(_), Some(_), Some(_)))
                && matches!(more, (Some(_), Some(_), Some(_)))
        );
        assert!(matches!(certificate, (Some(_), Some(_))));
        assert_eq!(shown, minimal, "what is shown as default is the default");
    }

    #[test]
    fn every_key_is_documented() {
        let documented: toml::Table = uncommented().parse().unwrap();
        let known = toml::Table::try_from(Config::parse(MINIMAL).unwrap()).unwrap();
        for (section, keys) in known {
            for key in keys.as_table().unwrap().keys() {
                assert!(documented[&section].get(key).is_some(), "{section}.{key}");
            }
        }
    }

    #[test]
    fn every_key_of_every_source_is_documented() {
        let mut kinds = Vec::new();
        for block in DEFAULT.split("\n\n").filter(|block| block.starts_with("## [source]")) {
            let text: String =
                block.lines().map(|line| line.trim_start_matches("## ").to_owned() + "\n").collect();
            let shown: toml::Table = text.parse().unwrap();
            let config =
                Config::parse(&format!("[node]\nid = \"m1\"\nfederation = \"town\"\n{text}")).unwrap();
            let known = toml::Table::try_from(&config).unwrap();
            let keys =
                |table: &toml::Table| table["source"].as_table().unwrap().keys().cloned().collect::<Vec<_>>();
            assert_eq!(keys(&shown), keys(&known), "{text}");
            kinds.push(shown["source"]["kind"].as_str().unwrap().to_owned());
        }
        assert_eq!(kinds, ["csv", "jsonl", "mqtt", "modbus", "p1"]);
    }

    #[test]
    fn a_wrong_key_is_refused_with_the_nearest_known_one() {
        let text = MINIMAL.replace("[source]", "[broker]\nulr = \"mqtt://h\"\n[source]");
        assert!(error(&text).contains("did you mean `url`?"), "{}", error(&text));
        let text = format!("{MINIMAL}nose = 0.5\n");
        assert!(error(&text).contains("did you mean `noise`?"), "{}", error(&text));
        let text = MINIMAL.replace("household", "houshold");
        assert!(error(&text).contains("did you mean `household`?"), "{}", error(&text));
        let text = format!("{MINIMAL}[zzzzzzzzzz]\n");
        assert!(!error(&text).contains("did you mean"), "{}", error(&text));
    }

    #[test]
    fn wrong_values_are_one_sentence_with_the_remedy() {
        for (text, expected) in [
            (format!("{MINIMAL}noise = 1.5\n"), "between 0 and 1"),
            (format!("{MINIMAL}step_s = 7\n"), "divisor"),
            (format!("{MINIMAL}[window]\nlags = 0\n"), "at least one step"),
            (format!("{MINIMAL}[window]\nlags = 5000\n"), "raise it to lags + horizon = 5001"),
            (format!("{MINIMAL}[pace]\nspeed = 0.0\n"), "positive"),
            (format!("{MINIMAL}[broker]\nurl = \"http://h\"\n"), "mqtt://HOST:PORT"),
            (MINIMAL.replace("m1", "a/b"), "'/' is not allowed"),
            (MINIMAL.replace("\"household\"", "\"csv\""), "name the CSV file"),
        ] {
            assert!(error(&text).contains(expected), "{}", error(&text));
        }
    }

    #[test]
    fn secrets_come_from_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        std::fs::write(&path, "s3cret\n").unwrap();
        let mut config = Config::parse(MINIMAL).unwrap();
        config.node.token_file = Some(path);
        assert_eq!(config.settings().unwrap().token.as_deref(), Some("s3cret"));
        config.node.token_file = Some(folder.path().join("missing"));
        assert!(config.settings().unwrap_err().to_string().contains("missing"));
    }
}
