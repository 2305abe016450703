//! Nodes that know more than they should: when exploring will end, and who is best.

use clap::ValueEnum;
use rand::RngExt;
use rand_distr::{Distribution, Poisson};
use serde::{Deserialize, Serialize};

use super::setup::Setup;
use super::trial::{Crew, LateAttendance};
use crate::data::random::{RandomPurpose, generator};
use crate::sim::RecordedRun;

/// Rounds before the end of exploring from which on only some nodes contribute.
const BEFORE: u32 = 5;

/// The round after which the node of the highest standing contributes no more while exploring; θ₀, data and draws are those
/// of the trial in which it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopPrediction {
    /// None: it contributes in every round
    #[default]
    NonStop,
    /// Uniform over all rounds
    Random,
    /// By a Poisson law whose mean is the round after which exploring ends
    Poisson,
}

impl Setup {
    /// The same trial with nodes that know nothing, from which those that do learn; none where there are no such nodes.
    pub(super) fn foreknown(&self) -> Option<Self> {
        let knows = self.attendance < 1.0 || self.prediction != StopPrediction::NonStop;
        knows.then(|| Self { attendance: 1.0, prediction: StopPrediction::NonStop, ..self.clone() })
    }

    /// What nodes do that know how the trial goes without it.
    pub(super) fn forewarned(&self, known: &RecordedRun) -> Crew {
        let end = known.log.explored_until().unwrap_or(self.rounds);
        let after = match self.prediction {
            StopPrediction::NonStop => None,
            StopPrediction::Random => Some(self.prediction_generator().random_range(0..=self.rounds)),
            StopPrediction::Poisson => {
                let law = Poisson::new(f64::from(end.max(1))).ok();
                law.map(|law| law.sample(&mut self.prediction_generator()) as u32)
            }
        };
        let chosen = (self.attendance * self.nodes as f64).round() as usize;
        let late = LateAttendance { after: end.saturating_sub(BEFORE), chosen };
        Crew {
            stops_exploring: best(known).zip(after),
            attendance: (self.attendance < 1.0).then_some(late),
            ..Crew::default()
        }
    }

    fn prediction_generator(&self) -> rand_chacha::ChaCha8Rng {
        generator(self.seed, RandomPurpose::Prediction, 0, 0)
    }
}

/// The node of the highest standing at the end.
pub(super) fn best(run: &RecordedRun) -> Option<usize> {
    let standings = &run.log.rounds.last()?.standings;
    (0..standings.len()).max_by(|a, b| standings[*a].total_cmp(&standings[*b]))
}
