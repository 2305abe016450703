//! FedAvg (McMahan et al., AISTATS 2017), with one gradient for the local epochs.

use serde::{Deserialize, Serialize};

use super::{Harvested, Merged, Strategy};

/// k nodes, everybody alike; θ_t = θ_{t−1} − η Σ pᵢΔθᵢ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FedAvg;

impl Strategy for FedAvg {
    fn merge(&mut self, round: &Harvested<'_>) -> Merged {
        Merged::shared(round.averaged())
    }
}
