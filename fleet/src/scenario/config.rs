//! Configuration of a scenario.

use evenhand_node::window::FEATURES;
use serde::{Deserialize, Serialize};

use super::{Corruption, ScenarioError, day_ahead};
use crate::data::partition::PartitionConfig;
use crate::data::{AsPublished, DataRequest, Dataset, SamplePool, SampleTargets};

/// Everything that a stream of samples depends on, beside the pool.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioConfig {
    /// The data set.
    pub dataset: Dataset,
    /// The corruption that makes nodes differ.
    pub corruption: Corruption,
    /// The largest ζ.
    pub level: f64,
    /// The authority where the published code differs from the paper.
    pub as_published: AsPublished,
    /// N.
    pub nodes: usize,
    /// T.
    pub rounds: u32,
    /// Samples of a node's batch.
    pub batch: usize,
    /// Seed of everything random.
    pub seed: u64,
}

impl ScenarioConfig {
    /// The control: the same with equally good data for all nodes; none where they are already alike.
    pub fn control(&self) -> Option<Self> {
        let differ = self.level > 0.0 && self.corruption != Corruption::None;
        differ.then_some(Self { level: 0.0, ..*self })
    }

    /// The part of the data set that the scenario can use: a batch for each node and round, and one round more for the
    /// evaluation ahead.
    pub fn data_request(&self) -> DataRequest {
        let rounds = self.rounds_before() as usize + self.rounds as usize + 1;
        DataRequest {
            as_published: self.as_published,
            seed: self.seed,
            samples_max: self.nodes.saturating_mul(self.batch).saturating_mul(rounds),
            owners_max: self.nodes,
        }
    }

    /// Rounds whose data a node has read before the first.
    pub(super) fn rounds_before(&self) -> u32 {
        if self.dataset == Dataset::DayAhead { day_ahead::DAYS_BEFORE } else { 0 }
    }

    /// The partition of the pool: all rounds, those before the first, and one to look ahead.
    pub(super) fn partition(&self) -> PartitionConfig {
        PartitionConfig {
            dataset: self.dataset,
            as_published: self.as_published,
            nodes: self.nodes,
            rounds: self.rounds_before() as usize + self.rounds as usize + 1,
            batch: self.batch,
            power_law: (self.corruption == Corruption::Quantity && self.level > 0.0).then_some(self.level),
            seed: self.seed,
        }
    }

    /// An error if the pool and the scenario do not fit each other.
    pub(super) fn check(&self, pool: &SamplePool) -> Result<(), ScenarioError> {
        let Self { dataset, corruption, nodes, batch, level, .. } = *self;
        if pool.is_empty() {
            return Err(ScenarioError::Empty { dataset });
        }
        if nodes == 0 || batch == 0 {
            return Err(ScenarioError::NoNodes { nodes, batch });
        }
        if !(0.0..=1.0).contains(&level) {
            return Err(ScenarioError::Level { level });
        }
        if let Some(owners) = &pool.owners {
            let owners = owners.iter().filter(|range| !range.is_empty()).count();
            if owners < nodes {
                return Err(ScenarioError::Owners { nodes, owners });
            }
        }
        if corruption == Corruption::Heterogeneity && matches!(pool.targets, SampleTargets::Values { .. }) {
            return Err(ScenarioError::NoClasses { dataset, corruption });
        }
        let is_series = dataset == Dataset::DayAhead
            || matches!(pool.targets, SampleTargets::Values { .. }) && pool.shape.last() == Some(&FEATURES);
        if corruption.needs_series() && !is_series {
            return Err(ScenarioError::NoSeries { dataset, corruption });
        }
        Ok(())
    }
}
