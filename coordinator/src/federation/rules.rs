//! What a federation is run by: every parameter, checked once.

use std::ops::Deref;

use evenhand_protocol::codec::CodecKind;
use evenhand_protocol::identity::{FederationId, NodeId};
use evenhand_protocol::message::{LossKind, UpdateKind};
use serde::{Deserialize, Serialize};

use crate::fairness::{Appraisal, Estimator, SamplerKind, StopRule, Utility, shapley};

/// Parameters as somebody wrote them; [`Rules::new`] checks them.
///
/// The same sections and names as in the coordinator's TOML file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Who, how many, how long.
    pub federation: General,
    /// What nodes compute.
    pub training: Training,
    /// How contributions are told.
    pub contribution: Appraisal,
    /// When they are known well enough.
    pub exploring: Exploration,
    /// Who is drawn then.
    pub exploiting: Exploitation,
    /// Who and what is let in.
    pub admission: Admission,
}

/// Who, how many, how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct General {
    /// The federation's name, one level of its topics.
    pub name: FederationId,
    /// Of every random draw.
    pub seed: u64,
    /// The federation is finished after so many rounds.
    pub rounds: u32,
    /// It begins when so many nodes are there.
    pub nodes_min: u32,
    /// More are not enrolled.
    pub nodes_max: u32,
    /// A round goes on without those who have not answered by then.
    pub round_deadline_ms: u32,
    /// Rounds begin at least so far apart; 0 for one right after the other.
    pub round_interval_ms: u32,
    /// How nodes are drawn and their updates merged.
    pub strategy: Strategy,
}

impl Default for General {
    fn default() -> Self {
        Self {
            name: FederationId::new("home").expect("a valid name"),
            seed: 1,
            rounds: 100,
            nodes_min: 12,
            nodes_max: 10_000,
            round_deadline_ms: 30_000,
            round_interval_ms: 0,
            strategy: Strategy::Evenhand,
        }
    }
}

/// How nodes are drawn and their updates merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Explore, then draw by standing.
    #[default]
    Evenhand,
    /// Draw everybody alike, from the first round on: the baseline without incentives.
    FedAvg,
}

/// What nodes compute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Training {
    /// What is minimised.
    pub loss: Loss,
    /// η of θ_t = θ_{t−1} − η Σ pᵢΔθᵢ.
    pub learning_rate: f64,
    /// At most so many samples enter a node's batch.
    pub samples_max: u32,
    /// Passes over the batch in local training; 0 asks for the plain gradient.
    pub local_epochs: u32,
    /// Step size of local training.
    pub local_learning_rate: f32,
    /// Momentum of local training, not kept across rounds.
    pub local_momentum: f32,
    /// How updates travel.
    #[serde(with = "codec_name")]
    pub codec: CodecKind,
}

impl Default for Training {
    fn default() -> Self {
        Self {
            loss: Loss::Mse,
            learning_rate: 0.1,
            samples_max: 4096,
            local_epochs: 0,
            local_learning_rate: 0.01,
            local_momentum: 0.0,
            codec: CodecKind::F32,
        }
    }
}

impl Training {
    /// What the update shall be.
    pub fn update_kind(&self) -> UpdateKind {
        match self.local_epochs {
            0 => UpdateKind::Gradient,
            epochs => UpdateKind::Epochs {
                epochs,
                learning_rate: self.local_learning_rate,
                momentum: self.local_momentum,
            },
        }
    }
}

/// What is minimised, as it is written in configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Mean squared error.
    #[default]
    Mse,
    /// Cross-entropy on logits.
    CrossEntropy,
    /// Negative log-likelihood on log-probabilities.
    Nll,
    /// Huber with threshold 1.
    Huber,
}

impl From<Loss> for LossKind {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::Mse => Self::Mse,
            Loss::CrossEntropy => Self::CrossEntropy,
            Loss::Nll => Self::Nll,
            Loss::Huber => Self::Huber,
        }
    }
}

/// A codec by its name.
mod codec_name {
    use evenhand_protocol::codec::CodecKind;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(codec: &CodecKind, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(codec)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<CodecKind, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// When contributions are known well enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Exploration {
    /// Which test decides.
    pub rule: RuleKind,
    /// τ: rounds that must not have moved the standings.
    pub window: u32,
    /// M: nodes whose contributions are tested, drawn once.
    pub watched: u32,
    /// α of the paper's rule: stop when p reaches it.
    pub strictness: f64,
    /// Of the calibrated rule: the test's level.
    pub level: f64,
    /// Of the calibrated rule: half-widths of the standings, in temperatures.
    pub precision: f64,
    /// Exploit after so many exploring rounds in any case; 0 leaves it to the rule.
    pub rounds_max: u32,
    /// A newcomer is measured for so many rounds.
    pub newcomer_rounds: u32,
}

impl Default for Exploration {
    fn default() -> Self {
        Self {
            rule: RuleKind::Paper,
            window: 15,
            watched: 10,
            strictness: 0.7,
            level: 0.05,
            precision: 1.0,
            rounds_max: 0,
            newcomer_rounds: 15,
        }
    }
}

impl Exploration {
    /// The rule with its parameters.
    pub fn stop_rule(&self) -> StopRule {
        let window = self.window as usize;
        match self.rule {
            RuleKind::Paper => StopRule::Paper { window, strictness: self.strictness },
            RuleKind::Calibrated => {
                StopRule::Calibrated { window, level: self.level, precision: self.precision }
            }
        }
    }
}

/// Which test ends exploring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleKind {
    /// One-sample Hotelling T², as published.
    #[default]
    Paper,
    /// Two-sample T² and precise standings.
    Calibrated,
}

/// Who is drawn once standings are known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Exploitation {
    /// Draws a round.
    pub k: u32,
    /// How they are made.
    pub sampler: SamplerKind,
    /// β: the higher, the more equal.
    pub temperature: f64,
    /// Find β so that no node's expected staleness exceeds this; 0 takes `temperature` as it is.
    pub worst_staleness: f64,
}

impl Default for Exploitation {
    fn default() -> Self {
        Self { k: 4, sampler: SamplerKind::default(), temperature: 1.0 / 150.0, worst_staleness: 0.0 }
    }
}

/// Who and what is let in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Admission {
    /// The nodes that may enrol; empty for all.
    pub nodes: Vec<NodeId>,
    /// SHA-256, in hex, of the token a node must show; empty for none.
    pub token_sha256: String,
    /// The largest norm of an update.
    pub norm_max: f64,
    /// What happens to a larger one.
    pub norm: NormPolicy,
}

impl Default for Admission {
    fn default() -> Self {
        Self { nodes: Vec::new(), token_sha256: String::new(), norm_max: 1e4, norm: NormPolicy::Refuse }
    }
}

/// What happens to an update that is too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NormPolicy {
    /// It does not count.
    #[default]
    Refuse,
    /// It is scaled down to the limit.
    Clip,
}

/// Why settings are no rules: the field, and what to do.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RuleError {
    /// More draws than nodes.
    #[error(
        "k = {k} exceeds the {nodes} nodes the federation begins with; lower exploiting.k or raise federation.nodes_min"
    )]
    DrawsAboveNodes {
        /// Draws a round.
        k: u32,
        /// Nodes at the beginning.
        nodes: u32,
    },
    /// More nodes watched than there are.
    #[error(
        "watched = {watched} exceeds the {nodes} nodes the federation begins with; lower exploring.watched"
    )]
    WatchedAboveNodes {
        /// Nodes watched.
        watched: u32,
        /// Nodes at the beginning.
        nodes: u32,
    },
    /// A window too short for the test.
    #[error(
        "window = {window} must be above watched = {watched}; raise exploring.window or lower exploring.watched"
    )]
    WindowWithinWatched {
        /// τ.
        window: u32,
        /// M.
        watched: u32,
    },
    /// Enumeration of too many coalitions.
    #[error(
        "estimator = exact is for at most {most} nodes, not {nodes}; set contribution.estimator = \"permutation\""
    )]
    TooManyForExact {
        /// Nodes at the beginning.
        nodes: u32,
        /// As many as can be enumerated.
        most: usize,
    },
    /// A number outside its range.
    #[error("{field} = {found} must be {wanted}")]
    Range {
        /// Section and name.
        field: &'static str,
        /// What was given.
        found: f64,
        /// What would be right.
        wanted: &'static str,
    },
    /// Something that cannot change any more.
    #[error(
        "[{section}] differs from what the federation was founded with; restore it, or begin a new federation in another state.folder"
    )]
    Fixed {
        /// Where.
        section: &'static str,
    },
    /// A digest that is none.
    #[error(
        "admission.token_sha256 must be 64 hexadecimal digits; make them with: printf %s TOKEN | sha256sum"
    )]
    TokenDigest,
}

/// Settings that make sense together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Settings", into = "Settings")]
pub struct Rules(Settings);

impl Rules {
    /// Checks `settings`, all of them before anything starts.
    pub fn new(settings: Settings) -> Result<Self, RuleError> {
        let Settings {
            federation: f,
            training: t,
            contribution: c,
            exploring: e,
            exploiting: x,
            admission: a,
        } = &settings;
        let at_least_one = |field, found: u32| match found {
            0 => Err(RuleError::Range { field, found: 0.0, wanted: "at least 1" }),
            _ => Ok(()),
        };
        let positive = |field, found: f64| match found.is_finite() && found > 0.0 {
            true => Ok(()),
            false => Err(RuleError::Range { field, found, wanted: "a number above 0" }),
        };
        let within_one = |field, found: f64| match found > 0.0 && found < 1.0 {
            true => Ok(()),
            false => Err(RuleError::Range { field, found, wanted: "between 0 and 1" }),
        };
        at_least_one("federation.rounds", f.rounds)?;
        at_least_one("federation.nodes_min", f.nodes_min)?;
        at_least_one("federation.round_deadline_ms", f.round_deadline_ms)?;
        if f.nodes_max < f.nodes_min {
            return Err(RuleError::Range {
                field: "federation.nodes_max",
                found: f.nodes_max.into(),
                wanted: "at least federation.nodes_min",
            });
        }
        positive("training.learning_rate", t.learning_rate)?;
        at_least_one("training.samples_max", t.samples_max)?;
        if t.local_epochs > 0 {
            positive("training.local_learning_rate", t.local_learning_rate.into())?;
            if !(0.0..1.0).contains(&t.local_momentum) {
                let found = t.local_momentum.into();
                return Err(RuleError::Range {
                    field: "training.local_momentum",
                    found,
                    wanted: "at least 0 and below 1",
                });
            }
        }
        at_least_one("exploiting.k", x.k)?;
        if x.k > f.nodes_min {
            return Err(RuleError::DrawsAboveNodes { k: x.k, nodes: f.nodes_min });
        }
        positive("exploiting.temperature", x.temperature)?;
        if !(x.worst_staleness.is_finite() && x.worst_staleness >= 0.0) {
            return Err(RuleError::Range {
                field: "exploiting.worst_staleness",
                found: x.worst_staleness,
                wanted: "0 (off) or a number of rounds",
            });
        }
        if f.strategy == Strategy::Evenhand {
            at_least_one("exploring.watched", e.watched)?;
            at_least_one("exploring.newcomer_rounds", e.newcomer_rounds)?;
            if e.watched > f.nodes_min {
                return Err(RuleError::WatchedAboveNodes { watched: e.watched, nodes: f.nodes_min });
            }
            if e.window <= e.watched {
                return Err(RuleError::WindowWithinWatched { window: e.window, watched: e.watched });
            }
            within_one("exploring.strictness", e.strictness)?;
            within_one("exploring.level", e.level)?;
            positive("exploring.precision", e.precision)?;
            let additive = c.utility == Utility::InnerProduct || c.utility == Utility::LeaveOneOut;
            if !additive && c.estimator == Estimator::Exact && f.nodes_min as usize > shapley::PLAYERS_MAX {
                return Err(RuleError::TooManyForExact { nodes: f.nodes_min, most: shapley::PLAYERS_MAX });
            }
            if c.samples == 0 {
                return Err(RuleError::Range {
                    field: "contribution.samples",
                    found: 0.0,
                    wanted: "at least 1",
                });
            }
            if let Some(error) = c.standard_error {
                positive("contribution.standard_error", error)?;
            }
        }
        positive("admission.norm_max", a.norm_max)?;
        let hex = a.token_sha256.len() == 64 && a.token_sha256.bytes().all(|b| b.is_ascii_hexdigit());
        if !a.token_sha256.is_empty() && !hex {
            return Err(RuleError::TokenDigest);
        }
        Ok(Self(settings))
    }
}

impl Rules {
    /// These rules without an end, to play rounds again that were had under a later one.
    pub(super) fn without_end(&self) -> Rules {
        let mut settings = self.0.clone();
        settings.federation.rounds = u32::MAX;
        Rules(settings)
    }

    /// These rules with what may change while a federation is under way taken from `wanted`: how long it
    /// lasts, its deadlines, who and what is let in. Anything else would make what was measured worthless,
    /// and is an error that names it.
    pub fn amended(&self, wanted: &Rules) -> Result<Rules, RuleError> {
        let mut amended = self.0.clone();
        let from = &wanted.0;
        amended.federation.rounds = from.federation.rounds;
        amended.federation.nodes_max = from.federation.nodes_max;
        amended.federation.round_deadline_ms = from.federation.round_deadline_ms;
        amended.federation.round_interval_ms = from.federation.round_interval_ms;
        amended.admission = from.admission.clone();
        let fixed = [
            ("federation", amended.federation == from.federation),
            ("training", amended.training == from.training),
            ("contribution", amended.contribution == from.contribution),
            ("exploring", amended.exploring == from.exploring),
            ("exploiting", amended.exploiting == from.exploiting),
        ];
        match fixed.into_iter().find(|(_, same)| !same) {
            Some((section, _)) => Err(RuleError::Fixed { section }),
            None => Rules::new(amended),
        }
    }
}

impl Deref for Rules {
    type Target = Settings;
    fn deref(&self) -> &Settings {
        &self.0
    }
}

impl TryFrom<Settings> for Rules {
    type Error = RuleError;
    fn try_from(settings: Settings) -> Result<Self, RuleError> {
        Self::new(settings)
    }
}

impl From<Rules> for Settings {
    fn from(rules: Rules) -> Settings {
        rules.0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_defaults_make_sense_together() {
        Rules::new(Settings::default()).unwrap();
    }

    #[test]
    fn each_wrong_value_is_one_sentence_with_its_remedy() {
        type Change = fn(&mut Settings);
        let cases: [(Change, &str); 9] = [
            (
                |s| s.exploiting.k = 13,
                "k = 13 exceeds the 12 nodes the federation begins with; lower exploiting.k or raise federation.nodes_min",
            ),
            (
                |s| s.exploring.window = 10,
                "window = 10 must be above watched = 10; raise exploring.window or lower exploring.watched",
            ),
            (
                |s| s.exploring.watched = 13,
                "watched = 13 exceeds the 12 nodes the federation begins with; lower exploring.watched",
            ),
            (|s| s.exploring.strictness = 1.0, "exploring.strictness = 1 must be between 0 and 1"),
            (
                |s| s.exploiting.temperature = f64::NAN,
                "exploiting.temperature = NaN must be a number above 0",
            ),
            (|s| s.training.learning_rate = -0.5, "training.learning_rate = -0.5 must be a number above 0"),
            (|s| s.federation.rounds = 0, "federation.rounds = 0 must be at least 1"),
            (
                |s| s.federation.nodes_max = 3,
                "federation.nodes_max = 3 must be at least federation.nodes_min",
            ),
            (
                |s| s.admission.token_sha256 = "secret".into(),
                "admission.token_sha256 must be 64 hexadecimal digits; make them with: printf %s TOKEN | sha256sum",
            ),
        ];
        for (change, sentence) in cases {
            let mut settings = Settings::default();
            change(&mut settings);
            assert_eq!(Rules::new(settings).unwrap_err().to_string(), sentence);
        }
    }

    #[test]
    fn only_what_does_not_touch_measurements_can_be_amended() {
        let founded = Rules::new(Settings::default()).unwrap();
        let mut longer = Settings::default();
        longer.federation.rounds = 7;
        longer.admission.norm_max = 3.0;
        let amended = founded.amended(&Rules::new(longer.clone()).unwrap()).unwrap();
        assert_eq!(*amended, longer);
        longer.exploiting.temperature = 1.0;
        let error = founded.amended(&Rules::new(longer).unwrap()).unwrap_err();
        assert!(error.to_string().starts_with("[exploiting] differs"), "{error}");
    }

    #[test]
    fn wrong_rules_do_not_come_in_through_saved_bytes() {
        let mut settings = Settings::default();
        settings.exploiting.k = 100;
        let bytes = postcard::to_allocvec(&settings).unwrap();
        assert!(postcard::from_bytes::<Rules>(&bytes).is_err());
    }
}
