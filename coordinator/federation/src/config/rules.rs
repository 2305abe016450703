//! Validated settings: later code accepts only [`Rules`].

use std::ops::Deref;

use serde::{Deserialize, Serialize};

use super::check::RuleError;
use super::{FederationConfig, contribution};

/// Settings that are valid together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "FederationConfig", into = "FederationConfig")]
pub struct Rules(FederationConfig);

impl Rules {
    /// Validates `config`, all of it before anything starts.
    pub fn new(config: FederationConfig) -> Result<Self, RuleError> {
        let nodes = config.federation.nodes_min;
        config.federation.check()?;
        config.training.check()?;
        config.exploiting.check(nodes)?;
        config.exploring.check(nodes, config.federation.policy)?;
        config.continuous.check(config.federation.nodes_max, config.exploiting.k)?;
        contribution::check(&config.contribution, "federation.nodes_max", config.federation.nodes_max)?;
        config.admission.check()?;
        Ok(Self(config))
    }

    /// These rules without an end, to replay rounds that were played under a later one.
    pub(crate) fn without_end(&self) -> Rules {
        let mut config = self.0.clone();
        config.federation.rounds = 0;
        Rules(config)
    }

    /// These rules with what may change while a federation is under way taken from `wanted`: how long it
    /// and its explorations last, its size and pace, its admission. Anything else would make what was measured worthless,
    /// and is an error that names it.
    pub fn amended(&self, wanted: &Rules) -> Result<Rules, RuleError> {
        let mut amended = self.0.clone();
        amended.federation.amend(&wanted.federation);
        amended.exploring.amend(&wanted.exploring);
        amended.admission = wanted.admission.clone();
        let fixed = [
            ("federation", amended.federation == wanted.federation),
            ("training", amended.training == wanted.training),
            ("continuous", amended.continuous == wanted.continuous),
            ("contribution", amended.contribution == wanted.contribution),
            ("exploring", amended.exploring == wanted.exploring),
            ("exploiting", amended.exploiting == wanted.exploiting),
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
    fn try_from(config: FederationConfig) -> Result<Self, RuleError> {
        Self::new(config)
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
    use evenhand_fairness::Estimator;

    use super::*;
    use crate::config::Policy;

    #[test]
    fn the_defaults_are_valid() {
        Rules::new(FederationConfig::default()).unwrap();
    }

    #[test]
    fn a_federation_of_a_few_homes_needs_no_settings_of_the_papers_test() {
        let mut config = FederationConfig::default();
        config.federation.nodes_min = 4;
        Rules::new(config.clone()).unwrap();
        config.federation.policy = Policy::Paper;
        assert!(matches!(Rules::new(config), Err(RuleError::TestedAboveNodes { tested: 10, nodes: 4 })));
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
                "window = 10 must be above tested_nodes = 10; raise exploring.window or lower exploring.tested_nodes",
            ),
            (
                |s| {
                    s.federation.policy = Policy::Paper;
                    s.exploring.tested_nodes = 13;
                },
                "tested_nodes = 13 exceeds the 12 nodes the federation begins with; lower exploring.tested_nodes",
            ),
            (|s| s.exploring.alpha = 1.0, "exploring.alpha = 1 must be between 0 and 1"),
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
            (
                |s| s.continuous.worst_wait = 40.0,
                "worst_wait = 40 rounds cannot be promised to 10000 nodes with k = 4: equal odds are a wait of nodes/k; \
                 raise exploiting.k or continuous.worst_wait, or lower federation.nodes_max",
            ),
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
            let mut config = FederationConfig::default();
            change(&mut config);
            assert_eq!(Rules::new(config).unwrap_err().to_string(), sentence);
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
    fn saved_bytes_cannot_hold_invalid_rules() {
        let mut config = FederationConfig::default();
        config.exploiting.k = 100;
        let bytes = postcard::to_allocvec(&config).unwrap();
        assert!(postcard::from_bytes::<Rules>(&bytes).is_err());
    }
}
