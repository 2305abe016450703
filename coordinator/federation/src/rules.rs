//! Settings, checked once: later code accepts only [`Rules`].

use std::ops::Deref;

use serde::{Deserialize, Serialize};

use super::settings::{FederationConfig, OptimiserKind};
use crate::strategy::{Baseline, StrategyKind};
use evenhand_fairness::FairnessError;

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
        "estimator = exact is for at most {most} nodes, and {field} = {nodes}; lower it, or set contribution.estimator = \"permutation\""
    )]
    TooManyForExact {
        /// What lets in so many.
        field: &'static str,
        /// Nodes in a round.
        nodes: u32,
        /// As many as can be enumerated.
        most: usize,
    },
    /// A value of `[contribution]` outside its range.
    #[error("contribution.{0}")]
    Contribution(FairnessError),
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
    /// Epochs have a memory of their own.
    #[error(
        "training.optimiser = \"{optimiser}\" is for plain gradients; set training.local_epochs = 0, or optimiser = \"none\" and training.local_momentum"
    )]
    OptimiserOfEpochs {
        /// As written.
        optimiser: &'static str,
    },
    /// A digest that is none.
    #[error(
        "admission.token_sha256 must be 64 hexadecimal digits; make them with: printf %s TOKEN | sha256sum"
    )]
    TokenDigest,
}

/// Settings that make sense together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "FederationConfig", into = "FederationConfig")]
pub struct Rules(FederationConfig);

impl Rules {
    /// Checks `settings`, all of them before anything starts.
    pub fn new(settings: FederationConfig) -> Result<Self, RuleError> {
        check_general(&settings)?;
        check_training(&settings)?;
        check_exploiting(&settings)?;
        match settings.federation.strategy {
            StrategyKind::Evenhand => check_exploring(&settings)?,
            StrategyKind::Gog => check_contribution(&settings, "exploiting.k", settings.exploiting.k)?,
            _ => {}
        }
        check_baseline(&settings.baseline)?;
        check_admission(&settings)?;
        Ok(Self(settings))
    }
}

fn at_least_one(field: &'static str, found: u32) -> Result<(), RuleError> {
    within(field, found.into(), found > 0, "at least 1")
}

fn positive(field: &'static str, found: f64) -> Result<(), RuleError> {
    within(field, found, found.is_finite() && found > 0.0, "a number above 0")
}

fn within_one(field: &'static str, found: f64) -> Result<(), RuleError> {
    within(field, found, found > 0.0 && found < 1.0, "between 0 and 1")
}

fn within(field: &'static str, found: f64, holds: bool, wanted: &'static str) -> Result<(), RuleError> {
    if holds { Ok(()) } else { Err(RuleError::Range { field, found, wanted }) }
}

fn check_general(FederationConfig { federation, .. }: &FederationConfig) -> Result<(), RuleError> {
    at_least_one("federation.rounds", federation.rounds)?;
    at_least_one("federation.nodes_min", federation.nodes_min)?;
    at_least_one("federation.round_deadline_ms", federation.round_deadline_ms)?;
    let enough = federation.nodes_max >= federation.nodes_min;
    within("federation.nodes_max", federation.nodes_max.into(), enough, "at least federation.nodes_min")
}

fn check_training(FederationConfig { training, .. }: &FederationConfig) -> Result<(), RuleError> {
    positive("training.learning_rate", training.learning_rate)?;
    at_least_one("training.samples_max", training.samples_max)?;
    let momentum = training.momentum;
    within("training.momentum", momentum.into(), (0.0..1.0).contains(&momentum), "at least 0 and below 1")?;
    if training.local_epochs > 0 {
        if training.optimiser != OptimiserKind::None {
            return Err(RuleError::OptimiserOfEpochs { optimiser: training.optimiser.name() });
        }
        positive("training.local_learning_rate", training.local_learning_rate.into())?;
        let momentum = training.local_momentum;
        let holds = (0.0..1.0).contains(&momentum);
        within("training.local_momentum", momentum.into(), holds, "at least 0 and below 1")?;
    }
    Ok(())
}

fn check_exploiting(
    FederationConfig { federation, exploiting, .. }: &FederationConfig,
) -> Result<(), RuleError> {
    at_least_one("exploiting.k", exploiting.k)?;
    if exploiting.k > federation.nodes_min {
        return Err(RuleError::DrawsAboveNodes { k: exploiting.k, nodes: federation.nodes_min });
    }
    positive("exploiting.temperature", exploiting.temperature)?;
    let wish = exploiting.worst_staleness;
    let holds = wish.is_finite() && wish >= 0.0;
    within("exploiting.worst_staleness", wish, holds, "0 (off) or a number of rounds")?;
    if exploiting.audit_every > 0 {
        let window = exploiting.audit_window;
        within("exploiting.audit_window", window.into(), window >= 2, "at least 2")?;
        within_one("exploiting.audit_level", exploiting.audit_level)?;
    }
    Ok(())
}

fn check_exploring(settings: &FederationConfig) -> Result<(), RuleError> {
    let FederationConfig { federation, exploring, .. } = settings;
    let nodes = federation.nodes_min;
    at_least_one("exploring.watched", exploring.watched)?;
    at_least_one("exploring.newcomer_rounds", exploring.newcomer_rounds)?;
    if exploring.watched > nodes {
        return Err(RuleError::WatchedAboveNodes { watched: exploring.watched, nodes });
    }
    if exploring.window <= exploring.watched {
        let (window, watched) = (exploring.window, exploring.watched);
        return Err(RuleError::WindowWithinWatched { window, watched });
    }
    within_one("exploring.strictness", exploring.strictness)?;
    within_one("exploring.level", exploring.level)?;
    positive("exploring.precision", exploring.precision)?;
    check_contribution(settings, "federation.nodes_max", federation.nodes_max)
}

/// Contributions of so many nodes at once, as this field says.
fn check_contribution(
    FederationConfig { contribution, .. }: &FederationConfig,
    field: &'static str,
    nodes: u32,
) -> Result<(), RuleError> {
    contribution.check().map_err(RuleError::Contribution)?;
    match contribution.nodes_max() {
        Some(most) if nodes as usize > most => Err(RuleError::TooManyForExact { field, nodes, most }),
        _ => Ok(()),
    }
}

fn check_baseline(baseline: &Baseline) -> Result<(), RuleError> {
    within("baseline.q", baseline.q, baseline.q.is_finite() && baseline.q >= 0.0, "0 or a number above it")?;
    positive("baseline.update_norm", baseline.update_norm)?;
    positive("baseline.altruism", baseline.altruism)?;
    within_one("baseline.reputation_kept", baseline.reputation_kept)?;
    within_one("baseline.relevance_kept", baseline.relevance_kept)?;
    positive("baseline.relevance_temperature", baseline.relevance_temperature)?;
    within_one("baseline.pull", baseline.pull)
}

/// Products of updates up to this norm stay within single precision, in which they are summed.
const NORM_MAX: f64 = 1e18;

fn check_admission(FederationConfig { admission, .. }: &FederationConfig) -> Result<(), RuleError> {
    let norm_max = admission.norm_max;
    let holds = norm_max > 0.0 && norm_max <= NORM_MAX;
    within("admission.norm_max", norm_max, holds, "a number above 0, and at most 1e18")?;
    for (field, ratio) in [
        ("admission.norm_ratio_max", admission.norm_ratio_max),
        ("admission.samples_ratio_max", admission.samples_ratio_max),
    ] {
        let holds = ratio == 0.0 || (ratio.is_finite() && ratio >= 1.0);
        within(field, ratio, holds, "0 (off), or a number from 1 on")?;
    }
    at_least_one("admission.messages_max", admission.messages_max)?;
    let digest = &admission.token_sha256;
    let hex = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    if digest.is_empty() || hex { Ok(()) } else { Err(RuleError::TokenDigest) }
}

impl Rules {
    /// These rules without an end, to play rounds again that were had under a later one.
    pub(super) fn without_end(&self) -> Rules {
        let mut settings = self.0.clone();
        settings.federation.rounds = u32::MAX;
        Rules(settings)
    }

    /// These rules with what may change while a federation is under way taken from `wanted`: how long it
    /// and its explorations last, its deadlines, who and what is let in. Anything else would make what was measured worthless,
    /// and is an error that names it.
    pub fn amended(&self, wanted: &Rules) -> Result<Rules, RuleError> {
        let mut amended = self.0.clone();
        let from = &wanted.0;
        amended.federation.rounds = from.federation.rounds;
        amended.federation.nodes_max = from.federation.nodes_max;
        amended.federation.round_deadline_ms = from.federation.round_deadline_ms;
        amended.federation.round_interval_ms = from.federation.round_interval_ms;
        amended.exploring.rounds_max = from.exploring.rounds_max;
        amended.admission = from.admission.clone();
        let fixed = [
            ("federation", amended.federation == from.federation),
            ("training", amended.training == from.training),
            ("contribution", amended.contribution == from.contribution),
            ("exploring", amended.exploring == from.exploring),
            ("exploiting", amended.exploiting == from.exploiting),
            ("baseline", amended.baseline == from.baseline),
        ];
        match fixed.into_iter().find(|(_, same)| !same) {
            Some((section, _)) => Err(RuleError::Fixed { section }),
            None => Rules::new(amended),
        }
    }
}

impl Deref for Rules {
    type Target = FederationConfig;
    fn deref(&self) -> &FederationConfig {
        &self.0
    }
}

impl TryFrom<FederationConfig> for Rules {
    type Error = RuleError;
    fn try_from(settings: FederationConfig) -> Result<Self, RuleError> {
        Self::new(settings)
    }
}

impl From<Rules> for FederationConfig {
    fn from(rules: Rules) -> FederationConfig {
        rules.0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use evenhand_fairness::Estimator;

    #[test]
    fn the_defaults_make_sense_together() {
        Rules::new(FederationConfig::default()).unwrap();
    }

    #[test]
    fn each_wrong_value_is_one_sentence_with_its_remedy() {
        type Change = fn(&mut FederationConfig);
        let cases: [(Change, &str); 12] = [
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
            (
                |s| {
                    s.contribution.estimator = Estimator::Exact;
                    s.federation.nodes_max = 21;
                },
                "estimator = exact is for at most 20 nodes, and federation.nodes_max = 21; lower it, or set contribution.estimator = \"permutation\"",
            ),
            (
                |s| s.admission.norm_max = 1e20,
                "admission.norm_max = 100000000000000000000 must be a number above 0, and at most 1e18",
            ),
            (
                |s| s.admission.samples_ratio_max = 0.5,
                "admission.samples_ratio_max = 0.5 must be 0 (off), or a number from 1 on",
            ),
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
            let mut settings = FederationConfig::default();
            change(&mut settings);
            assert_eq!(Rules::new(settings).unwrap_err().to_string(), sentence);
        }
    }

    #[test]
    fn only_what_does_not_touch_measurements_can_be_amended() {
        let founded = Rules::new(FederationConfig::default()).unwrap();
        let mut longer = FederationConfig::default();
        longer.federation.rounds = 7;
        longer.admission.norm_max = 3.0;
        longer.exploring.rounds_max = 50;
        let amended = founded.amended(&Rules::new(longer.clone()).unwrap()).unwrap();
        assert_eq!(*amended, longer);
        longer.exploiting.temperature = 1.0;
        let error = founded.amended(&Rules::new(longer).unwrap()).unwrap_err();
        assert!(error.to_string().starts_with("[exploiting] differs"), "{error}");
    }

    #[test]
    fn wrong_rules_do_not_come_in_through_saved_bytes() {
        let mut settings = FederationConfig::default();
        settings.exploiting.k = 100;
        let bytes = postcard::to_allocvec(&settings).unwrap();
        assert!(postcard::from_bytes::<Rules>(&bytes).is_err());
    }
}
