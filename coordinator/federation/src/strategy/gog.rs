//! GoG (Nagalapatti and Narayanam, *Game of Gradients: Mitigating Irrelevant Clients in Federated Learning*, AAAI 2021), its
//! algorithm S-FedAvg.

use serde::{Deserialize, Serialize};

use super::{Baseline, Harvested, Merged, Strategy};
use evenhand_fairness as fairness;

/// Draws by relevance, which the Shapley values of the drawn nodes' updates keep up to date, from the first round on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gog {
    kept: f64,
    temperature: f64,
    /// By column.
    relevances: Vec<f64>,
}

impl Gog {
    pub(super) fn new(baseline: &Baseline) -> Self {
        Self {
            kept: baseline.relevance_kept,
            temperature: baseline.relevance_temperature,
            relevances: Vec::new(),
        }
    }
}

impl Strategy for Gog {
    fn measures(&self) -> bool {
        true
    }

    /// softmax(relevance / temperature), whatever the standings: there are none.
    fn sampling_probabilities(&self, columns: &[usize], _standings: &[f64], _temperature: f64) -> Vec<f64> {
        let relevance = |column: &usize| self.relevances.get(*column).copied().unwrap_or(0.0);
        let relevances: Vec<f64> = columns.iter().map(relevance).collect();
        fairness::sampling_probabilities(&relevances, self.temperature)
    }

    fn opinion(&self, column: usize) -> Option<f64> {
        self.relevances.get(column).copied()
    }

    /// # Formula
    /// For the drawn nodes, relevanceᵢ ← a·relevanceᵢ + (1 − a)·φᵢ, with φᵢ = 0 for whoever sent nothing, and
    /// θ_t = θ_{t−1} − η Σ pᵢΔθᵢ.
    ///
    /// Departs from the paper: φᵢ is by the federation's own utility. S-FedAvg scores coalitions on validation data of
    /// the server, of which there is none here. A round in which nothing could be measured changes no relevance.
    fn merge(&mut self, round: &Harvested<'_>) -> Merged {
        self.relevances.resize(self.relevances.len().max(round.members), 0.0);
        if let Some(contributions) = round.contributions {
            for column in round.asked {
                self.relevances[*column] *= self.kept;
            }
            for (column, value) in round.columns.iter().zip(contributions) {
                self.relevances[*column] += (1.0 - self.kept) * value;
            }
        }
        Merged::shared(round.averaged())
    }
}
