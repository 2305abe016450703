//! Configuration of a scenario.

use evenhand_node::window::FEATURES;
use serde::{Deserialize, Serialize};

use super::{Corruption, QualitySpread, ScenarioError, day_ahead, designated};
use crate::data::partition::{BatchSizes, PartitionConfig};
use crate::data::published_split::PublishedSplit;
use crate::data::{AsPublished, DataRequest, Dataset, SamplePool, SampleTargets};

/// Images of a node in the paper's running example.
const EXAMPLE_IMAGES: usize = 600;
/// The share of their samples that designated nodes lack there.
const LACKING: f64 = 0.1;

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
    /// The nodes whose data are worse.
    #[serde(default)]
    pub spread: QualitySpread,
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
        let differ = self.level > 0.0 && self.corruption.has_ranks();
        differ.then_some(Self { level: 0.0, ..*self })
    }

    /// The part of the data set that the scenario can use: a batch for each node and round, and one round more for the
    /// evaluation ahead.
    pub fn data_request(&self) -> DataRequest {
        let partition = self.partition();
        let samples = match self.spread {
            QualitySpread::Ladder => partition.samples_max(),
            QualitySpread::Designated => partition.samples_max().min(self.nodes * EXAMPLE_IMAGES),
        };
        DataRequest {
            as_published: self.as_published,
            seed: self.seed,
            samples_max: samples,
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
            as_published: self.as_published,
            nodes: self.nodes,
            rounds: self.rounds_before() as usize + self.rounds as usize + 1,
            batch: self.batch,
            sizes: self.sizes(),
            split: PublishedSplit::of(
                self.dataset,
                matches!(self.corruption, Corruption::Quantity | Corruption::MissingValues),
            ),
            seed: self.seed,
        }
    }

    fn sizes(&self) -> BatchSizes {
        match (self.corruption, self.spread) {
            (Corruption::Quantity, _) if self.level == 0.0 => BatchSizes::Equal,
            (Corruption::Quantity, QualitySpread::Ladder) => BatchSizes::PowerLaw(self.level),
            (Corruption::Quantity, QualitySpread::Designated) => {
                BatchSizes::Fewer { nodes: designated(self.nodes), share: LACKING }
            }
            _ => BatchSizes::Equal,
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
        if corruption.needs_classes() && matches!(pool.targets, SampleTargets::Values { .. }) {
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
