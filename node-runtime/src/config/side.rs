//! The `[[leave_out]]` and `[[covariate]]` sections: series beside the household's load.

use serde::{Deserialize, Serialize};

use super::section::Section;
use super::{MeterQuantity, NodeConfig, NodeConfigError, Pace, SampleFormat, SourceConfig};
use crate::forecast::COVARIATES_MAX;
use crate::window::{SideRole, SideSeries};

/// Loads to leave out at most.
const LEFT_OUT_MAX: usize = 8;
const NAME_CHARACTERS_MAX: usize = 32;

/// A `[[leave_out]]` section: a load that is subtracted from the household's before it is learned from and forecast.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaveOutConfig {
    /// Its name.
    pub name: String,
    /// Meaning of its readings.
    #[serde(default = "level")]
    pub quantity: MeterQuantity,
    /// Its source.
    pub source: SourceConfig,
}

/// A `[[covariate]]` section: a series that the load may follow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CovariateConfig {
    /// Its name.
    pub name: String,
    /// Its source.
    pub source: SourceConfig,
}

fn level() -> MeterQuantity {
    MeterQuantity::Level
}

impl NodeConfig {
    /// The series beside the household's load, with their sources.
    pub fn side_series(&self) -> impl Iterator<Item = (SideSeries, &SourceConfig)> {
        let left_out = self.leave_out.iter().map(|section| {
            let role = SideRole::LeaveOut(section.quantity);
            (SideSeries { name: section.name.clone(), role }, &section.source)
        });
        let covariates = self.covariate.iter().map(|section| {
            (SideSeries { name: section.name.clone(), role: SideRole::Covariate }, &section.source)
        });
        left_out.chain(covariates)
    }

    /// The configuration of a node that reads this source instead of its own.
    pub(crate) fn with_source(&self, source: &SourceConfig) -> Self {
        Self { source: source.clone(), ..self.clone() }
    }

    fn check_side(&self, section: &str, name: &str, source: &SourceConfig) -> Result<(), NodeConfigError> {
        let usable = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        let sentence = match source.kind() {
            _ if name.is_empty() || name.len() > NAME_CHARACTERS_MAX || !name.chars().all(usable) => {
                format!(
                    "{section}.name = {name:?}; use 1 to {NAME_CHARACTERS_MAX} of a-z, 0-9 and -, e.g. \"car\""
                )
            }
            _ if name == "source" || self.side_series().filter(|(side, _)| side.name == name).count() > 1 => {
                format!("{section}.name = {name:?} is taken; give every series a name of its own")
            }
            _ if self.rows.is_some() || self.window.samples != SampleFormat::DayAhead => {
                format!("[[{section}]] is for day-ahead forecasts; set window.samples = \"day-ahead\"")
            }
            kind if kind.is_labelled() => {
                format!("[[{section}]] {name:?} has a label_column; a series has none, remove it")
            }
            kind if self.pace.by == Pace::Rounds && !kind.is_recorded() => format!(
                "[[{section}]] {name:?} cannot be read by rounds; set its source.follow = false, or pace.by = \"clock\""
            ),
            kind => {
                kind.check().map_err(|sentence| {
                    NodeConfigError::Value(format!("[[{section}]] {name:?}: {sentence}"))
                })?;
                return kind
                    .broker()
                    .map_or(Ok(()), |broker| broker.check(&format!("{section}.source.broker"), self));
            }
        };
        Err(NodeConfigError::Value(sentence))
    }
}

impl Section for Vec<LeaveOutConfig> {
    fn document(name: &str) -> String {
        format!(
            "\
## A load to leave out of the forecast, such as a car charger, a heat pump or a battery: it is subtracted from the
## source's, step by step. It has the unit of the source, and reports at least once a step. May be repeated.
## [[{name}]]
## name = \"car\"                   # Its name: a-z, 0-9 and -.
## quantity = \"level\"             # \"level\" or \"counter\", as in [window].
## [{name}.source]                # With the same keys as [source].
## kind = \"csv\"
## path = \"/var/lib/meter/car.csv\"
"
        )
    }

    fn document_optional(name: &str) -> String {
        Self::document(name)
    }

    fn check(&self, name: &str, whole: &NodeConfig) -> Result<(), NodeConfigError> {
        if self.len() > LEFT_OUT_MAX {
            let sentence =
                format!("[[{name}]] stands {} times; leave out {LEFT_OUT_MAX} at most", self.len());
            return Err(NodeConfigError::Value(sentence));
        }
        self.iter().try_for_each(|section| whole.check_side(name, &section.name, &section.source))
    }
}

impl Section for Vec<CovariateConfig> {
    fn document(name: &str) -> String {
        format!(
            "\
## A series that the load may follow, such as the temperature outside and its forecast: readings may lie in the future. May
## be repeated once.
## [[{name}]]
## name = \"temperature\"           # Its name: a-z, 0-9 and -.
## [{name}.source]                # With the same keys as [source].
## kind = \"csv\"
## path = \"/var/lib/weather/temperature.csv\"
"
        )
    }

    fn document_optional(name: &str) -> String {
        Self::document(name)
    }

    fn check(&self, name: &str, whole: &NodeConfig) -> Result<(), NodeConfigError> {
        if self.len() > COVARIATES_MAX {
            let sentence =
                format!("[[{name}]] stands {} times; a model takes {COVARIATES_MAX} at most", self.len());
            return Err(NodeConfigError::Value(sentence));
        }
        self.iter().try_for_each(|section| whole.check_side(name, &section.name, &section.source))
    }
}
