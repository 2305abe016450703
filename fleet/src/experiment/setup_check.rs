//! Ranges of a setup's settings.

use super::setup::Setup;

/// A setting outside its range.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("--{flag} {value}: {expected}")]
pub struct SettingError {
    /// The flag.
    pub flag: &'static str,
    /// The given value.
    pub value: String,
    /// The range of values.
    pub expected: String,
}

/// Samples of all nodes and rounds together: more would not fit into memory, and not be done in a week.
const SAMPLES_MAX: usize = 20_000_000;
/// The largest number of anything that is counted.
const COUNT_MAX: usize = 1_000_000;

impl Setup {
    /// An error if a setting is outside its range.
    pub fn check(&self) -> Result<(), SettingError> {
        let Setup { nodes, batch, tested_nodes, window, .. } = *self;
        let rounds = self.rounds as usize;
        let samples = nodes.saturating_mul(batch).saturating_mul(rounds.saturating_add(1));
        let countable = |count: usize| (1..=COUNT_MAX).contains(&count);
        let positive = |value: f64| value > 0.0 && value.is_finite();
        let rules = [
            ("nodes", nodes >= 2, "fairness needs at least 2 nodes".to_owned()),
            ("nodes", nodes <= COUNT_MAX, format!("at most {COUNT_MAX} nodes")),
            ("rounds", countable(rounds), format!("between 1 and {COUNT_MAX} rounds")),
            ("batch", countable(batch), format!("between 1 and {COUNT_MAX} samples")),
            (
                "rounds",
                samples <= SAMPLES_MAX,
                format!(
                    "{nodes} nodes with batches of {batch} may see {SAMPLES_MAX} samples in all, not {samples}"
                ),
            ),
            ("k", (1..=nodes).contains(&self.k), format!("between 1 and the {nodes} nodes")),
            ("tested-nodes", (1..=nodes).contains(&tested_nodes), format!("between 1 and the {nodes} nodes")),
            ("window", window > tested_nodes, format!("above the {tested_nodes} tested nodes")),
            ("window", countable(window), format!("between 1 and {COUNT_MAX} rounds")),
            ("learning-rate", positive(self.learning_rate), "a number above 0".into()),
            ("temperature", positive(self.temperature), "a number above 0".into()),
            ("alpha", self.alpha > 0.0 && self.alpha < 1.0, "between 0 and 1".into()),
            ("epsilon", self.epsilon >= 0.0 && self.epsilon.is_finite(), "0, or a number above 0".into()),
            ("clip", positive(self.clip), "a number above 0".into()),
            ("attendance", (0.0..=1.0).contains(&self.attendance), "between 0 and 1".into()),
            ("level", (0.0..=1.0).contains(&self.level), "between 0 and 1".into()),
        ];
        match rules.into_iter().find(|(_, holds, _)| !holds) {
            None => Ok(()),
            Some((flag, _, expected)) => {
                let value = self.flags().into_iter().find(|(name, _)| *name == flag);
                Err(SettingError { flag, value: value.map_or(String::new(), |(_, value)| value), expected })
            }
        }
    }
}
