//! Exploration: how often an agent acts at random.

use serde::{Deserialize, Serialize};

/// ε, the probability of a random action, over the decisions of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ExplorationSchedule {
    /// ε at first.
    pub first: f64,
    /// ε in the end.
    pub last: f64,
    /// Decisions until then; ε falls linearly.
    pub decisions: u64,
}

impl ExplorationSchedule {
    /// The same ε all the time.
    pub fn constant(probability: f64) -> Self {
        Self { first: probability, last: probability, decisions: 0 }
    }

    /// ε after so many decisions.
    pub fn at(&self, decisions: u64) -> f64 {
        if decisions >= self.decisions {
            return self.last;
        }
        self.first + (self.last - self.first) * decisions as f64 / self.decisions as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_falls_linearly_and_stays_at_its_end() {
        let schedule = ExplorationSchedule { first: 1.0, last: 0.1, decisions: 1000 };
        assert_eq!(
            (schedule.at(0), schedule.at(500), schedule.at(1000), schedule.at(9999)),
            (1.0, 0.55, 0.1, 0.1)
        );
        assert_eq!(ExplorationSchedule::constant(0.4).at(0), 0.4);
    }
}
