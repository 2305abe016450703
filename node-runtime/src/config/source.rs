//! Which source, and when its readings come.

use serde::{Deserialize, Serialize};

use super::{BrokerSection, ConfigError};

/// Where readings come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SourceSection {
    /// A synthetic household.
    #[cfg(feature = "household")]
    Household(crate::source::household::HouseholdSettings),
    /// A CSV file.
    #[cfg(feature = "csv")]
    Csv(crate::source::csv::CsvSettings),
    /// JSON lines.
    #[cfg(feature = "jsonl")]
    Jsonl(crate::source::jsonl::JsonlSettings),
    /// A topic on an MQTT broker.
    #[cfg(feature = "mqtt")]
    Mqtt(crate::source::mqtt::MqttSettings),
    /// A meter on Modbus TCP.
    #[cfg(feature = "modbus")]
    Modbus(crate::source::modbus::ModbusSettings),
    /// The P1 port of a smart meter.
    #[cfg(feature = "p1")]
    P1(crate::source::p1::P1Settings),
}

/// Every kind of source, which is also the name of its cargo feature, and whether this program has it.
const KINDS: [(&str, bool); 6] = [
    ("csv", cfg!(feature = "csv")),
    ("household", cfg!(feature = "household")),
    ("jsonl", cfg!(feature = "jsonl")),
    ("modbus", cfg!(feature = "modbus")),
    ("mqtt", cfg!(feature = "mqtt")),
    ("p1", cfg!(feature = "p1")),
];

impl SourceSection {
    /// The kinds this program was built with.
    pub fn kinds() -> impl Iterator<Item = &'static str> {
        KINDS.into_iter().filter_map(|(kind, built)| built.then_some(kind))
    }

    /// The kind that a configuration names although this program was built without it.
    pub(super) fn missing_kind(config: &str) -> Option<&'static str> {
        missing(config, &KINDS)
    }

    pub(super) fn check(&self, pace: &PaceSection, rows: bool) -> Result<(), ConfigError> {
        match self {
            #[cfg(feature = "household")]
            SourceSection::Household(household) => household.check(),
            #[cfg(feature = "csv")]
            SourceSection::Csv(csv) => csv.check(),
            #[cfg(feature = "jsonl")]
            SourceSection::Jsonl(jsonl) => jsonl.check(),
            #[cfg(feature = "mqtt")]
            SourceSection::Mqtt(mqtt) => mqtt.check(),
            #[cfg(feature = "modbus")]
            SourceSection::Modbus(modbus) => modbus.check(),
            #[cfg(feature = "p1")]
            SourceSection::P1(p1) => p1.check(),
        }
        .map_err(ConfigError::Value)?;
        let value = |sentence: &str| Err(ConfigError::Value(sentence.to_owned()));
        match (self.labelled(), rows) {
            (true, false) => {
                return value("source.label_column needs a [rows] section with the shape of a row");
            }
            (false, true) => {
                return value("[rows] needs labelled rows; use a csv source with label_column, or remove it");
            }
            _ => {}
        }
        if pace.by == Pace::Rounds && !self.recorded() {
            return value(
                "pace.by = \"rounds\" is for a household or a finished file; set source.follow = false, or pace.by = \"clock\"",
            );
        }
        if let Some(broker) = self.broker() {
            broker.check("source.broker", None)?;
        }
        Ok(())
    }

    /// The broker of a source that has one of its own.
    pub(super) fn broker(&self) -> Option<&BrokerSection> {
        match self {
            #[cfg(feature = "mqtt")]
            SourceSection::Mqtt(mqtt) => mqtt.broker.as_ref(),
            #[allow(unreachable_patterns, reason = "there may be no other source")]
            _ => None,
        }
    }

    /// Whether it hands over labelled rows.
    fn labelled(&self) -> bool {
        match self {
            #[cfg(feature = "csv")]
            SourceSection::Csv(csv) => !csv.label_column.is_empty(),
            #[allow(unreachable_patterns, reason = "there may be no other source")]
            _ => false,
        }
    }

    /// Whether it never makes its reader wait.
    fn recorded(&self) -> bool {
        match self {
            #[cfg(feature = "household")]
            SourceSection::Household(_) => true,
            #[cfg(feature = "csv")]
            SourceSection::Csv(csv) => !csv.follow,
            #[cfg(feature = "jsonl")]
            SourceSection::Jsonl(jsonl) => !jsonl.follow && jsonl.path != std::path::Path::new("-"),
            #[allow(unreachable_patterns, reason = "there may be no other source")]
            _ => false,
        }
    }
}

fn missing(config: &str, kinds: &[(&'static str, bool)]) -> Option<&'static str> {
    let config: toml::Table = config.parse().ok()?;
    let named = config.get("source")?.get("kind")?.as_str()?;
    kinds.iter().find_map(|(kind, built)| (*kind == named && !built).then_some(*kind))
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

impl PaceSection {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let value = |sentence: &str| Err(ConfigError::Value(sentence.to_owned()));
        if self.readings_per_round == 0 {
            return value("pace.readings_per_round = 0; take at least one reading a round");
        }
        if !(self.speed.is_finite() && self.speed > 0.0) {
            return value("pace.speed must be positive; 1.0 is real time");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_the_program_lacks_is_told_from_one_nobody_knows() {
        let kinds = [("csv", true), ("p1", false)];
        let named = |kind: &str| missing(&format!("[source]\nkind = \"{kind}\"\n"), &kinds);
        assert_eq!((named("csv"), named("p1"), named("p2")), (None, Some("p1"), None));
        assert_eq!(missing("[source\n", &kinds), None);
    }
}
