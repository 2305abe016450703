//! Corruptions of data: ways in which nodes' data differ in quality.

use crate::names::value_name;

/// The way in which ζ, the quality that a node's owner knows and the coordinator does not, enters its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Corruption {
    /// Nothing: all nodes are alike
    None,
    /// A share ζ of the samples carries Gaussian noise in its features
    FeatureNoise,
    /// A share ζ of the samples has a random label
    LabelNoise,
    /// Batches shrink with ζ by a power law
    Quantity,
    /// A share ζ of the samples lacks half of its features
    MissingValues,
    /// The higher ζ, the fewer classes a node sees
    Heterogeneity,
    /// Every node sees the same number of classes, chosen by chance: no node is better than another
    FewClasses,
    /// A node is away in a share ζ of the rounds
    Unstable,
    /// Feature noise; nodes that are drawn withhold their update, by chance
    StrategicRandom,
    /// Feature noise; nodes stop contributing for good, some time after exploring
    StrategicPoisson,
    /// Label noise, which grows on one node and fades on another
    NonStationary,
    /// Series: a share ζ of the samples was taken by a clock that is half a day off
    ShiftedClock,
    /// Series: in a share ζ of the samples the meter was stuck, and repeats one reading
    StuckMeter,
    /// Series: in a share ζ of the samples all readings are made up
    MadeUp,
}

impl Corruption {
    /// Its name on the command line.
    pub fn name(self) -> String {
        value_name(&self)
    }

    /// True if it is about the classes that nodes see.
    pub fn needs_classes(self) -> bool {
        matches!(self, Corruption::Heterogeneity | Corruption::FewClasses)
    }

    /// True if some nodes have worse data than others.
    pub(super) fn has_ranks(self) -> bool {
        !matches!(self, Corruption::None | Corruption::FewClasses)
    }

    /// True if it is about readings of a series with their times.
    pub(super) fn needs_series(self) -> bool {
        matches!(self, Corruption::ShiftedClock | Corruption::StuckMeter | Corruption::MadeUp)
    }

    /// The largest ζ of the published experiments; for quantity and heterogeneity, all of the published spread.
    pub fn level_default(self) -> f64 {
        match self {
            Corruption::None => 0.0,
            Corruption::FeatureNoise
            | Corruption::MissingValues
            | Corruption::StrategicRandom
            | Corruption::StrategicPoisson
            | Corruption::ShiftedClock
            | Corruption::StuckMeter
            | Corruption::MadeUp => 0.9,
            // Two classes of ten.
            Corruption::LabelNoise | Corruption::NonStationary | Corruption::FewClasses => 0.2,
            Corruption::Unstable => 0.5,
            Corruption::Quantity | Corruption::Heterogeneity => 1.0,
        }
    }
}
