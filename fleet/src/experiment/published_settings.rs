//! The settings with which the paper was measured.

use std::path::PathBuf;

use evenhand_fairness::Utility;
use evenhand_federation::{OptimiserKind, TrainingConfig};
use sha2::{Digest, Sha256};

use super::setup::{Setup, StepKind};
use super::stop_prediction::StopPrediction;
use super::variant::Variant;
use crate::data::{AsPublished, Dataset, day_ahead};
use crate::names::value_name;
use crate::scenario::{Corruption, QualitySpread};

/// The longest name of a folder; file systems allow 255 bytes, and a report's name has it within.
const NAME_MAX: usize = 150;

impl Setup {
    /// The paper's settings; for data sets it does not know, those of the nearest kin.
    pub fn published(
        dataset: Dataset,
        corruption: Corruption,
        variant: Variant,
        as_published: AsPublished,
        seed: u64,
    ) -> Self {
        let (batch, learning_rate) = match dataset {
            Dataset::Mnist => (3, 2e-3),
            Dataset::Cifar10 => (6, 2e-4),
            Dataset::Hft => (14, 2e-4),
            Dataset::Electricity => (4, 2e-4),
            Dataset::Meters => (4, 2e-3),
            Dataset::Pathmnist => (7, 2e-3),
            // The product's own.
            Dataset::DayAhead => (day_ahead::DAY_STEPS, TrainingConfig::default().learning_rate),
            Dataset::Synthetic => (4, 0.05),
        };
        let setup = Self {
            dataset,
            corruption,
            level: corruption.level_default(),
            spread: QualitySpread::Ladder,
            variant,
            as_published,
            nodes: 30,
            rounds: if dataset == Dataset::Mnist { 130 } else { 150 },
            batch,
            learning_rate,
            optimiser: optimiser(dataset, as_published),
            utility: Utility::Cosine,
            step: step(dataset, variant, as_published),
            k: 12,
            temperature: 1.0 / 150.0,
            window: 15,
            tested_nodes: 10,
            alpha: 0.7,
            attendance: 1.0,
            prediction: StopPrediction::NonStop,
            evaluation_samples: 0,
            epsilon: 0.0,
            clip: 1.0,
            seed,
            shuffled: false,
        };
        match dataset {
            // Small, so that it is quick; contributions shrink with the number of nodes, and β with them.
            Dataset::Synthetic => Self {
                nodes: 12,
                rounds: 60,
                k: 5,
                temperature: 1.0 / 60.0,
                window: 9,
                tested_nodes: 4,
                ..setup
            },
            Dataset::DayAhead => Self { nodes: 12, rounds: 90, k: 4, tested_nodes: 4, ..setup },
            _ => setup,
        }
    }

    /// The same trial with another seed.
    pub fn with_seed(&self, seed: u64) -> Self {
        Self { seed, ..self.clone() }
    }

    /// The same trial with each utility, where standings come from one.
    pub fn with_every_utility(&self) -> Vec<Self> {
        if !self.variant.has_utility() {
            return vec![self.clone()];
        }
        let utilities = [Utility::Cosine, Utility::Direction, Utility::Projection, Utility::InnerProduct];
        utilities.map(|utility| Self { utility, ..self.clone() }).into()
    }

    /// The path of its record within a folder of results: settings other than the published ones have a folder of their
    /// own, so that no two setups share a file.
    pub fn path(&self) -> PathBuf {
        let mut path = PathBuf::from(value_name(&self.dataset));
        path.push(value_name(&self.corruption));
        path.push(value_name(&self.as_published));
        path.push(self.variant.name());
        path.extend(self.own_name());
        path.push(format!("seed-{}.json", self.seed));
        path
    }

    /// The settings other than the published ones, for the names of files; none if there are none.
    pub(crate) fn own_name(&self) -> Option<String> {
        let own: Vec<String> =
            self.differences().iter().map(|(flag, value)| format!("{flag}-{value}")).collect();
        (!own.is_empty()).then(|| short(own.join(",")))
    }

    /// True if the paper ran this setup; the number of evaluation samples is no part of it.
    pub(crate) fn is_published(&self) -> bool {
        self.differences().iter().all(|(name, _)| *name == "evaluation-samples")
    }

    /// Flags and values other than the published ones.
    pub fn differences(&self) -> Vec<(&'static str, String)> {
        let Setup { dataset, corruption, variant, as_published, seed, .. } = *self;
        let published = Self::published(dataset, corruption, variant, as_published, seed);
        let mut own: Vec<_> =
            (self.flags().into_iter().zip(published.flags()).filter(|(ours, theirs)| ours != theirs))
                .map(|(ours, _)| ours)
                .collect();
        if self.shuffled {
            own.push(("shuffled", "yes".into()));
        }
        own
    }

    /// The numbers of a setup by the names of their flags.
    pub fn flags(&self) -> Vec<(&'static str, String)> {
        vec![
            ("level", self.level.to_string()),
            ("spread", value_name(&self.spread)),
            ("nodes", self.nodes.to_string()),
            ("rounds", self.rounds.to_string()),
            ("batch", self.batch.to_string()),
            ("learning-rate", self.learning_rate.to_string()),
            ("optimiser", self.optimiser.name().to_owned()),
            ("utility", self.utility.to_string()),
            ("step", value_name(&self.step)),
            ("k", self.k.to_string()),
            ("temperature", self.temperature.to_string()),
            ("window", self.window.to_string()),
            ("tested-nodes", self.tested_nodes.to_string()),
            ("alpha", self.alpha.to_string()),
            ("attendance", self.attendance.to_string()),
            ("prediction", value_name(&self.prediction)),
            ("evaluation-samples", self.evaluation_samples.to_string()),
            ("epsilon", self.epsilon.to_string()),
            ("clip", self.clip.to_string()),
        ]
    }
}

/// The name itself, or its beginning and a digest of all of it.
fn short(name: String) -> String {
    if name.len() <= NAME_MAX {
        return name;
    }
    let digest: String = Sha256::digest(&name)[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let beginning: String = name.chars().take(NAME_MAX - digest.len() - 1).collect();
    format!("{beginning}-{digest}")
}

/// The published one, but for the product as it ships, and for our data sets under the paper's text.
fn step(dataset: Dataset, variant: Variant, as_published: AsPublished) -> StepKind {
    let ours = matches!(dataset, Dataset::Synthetic | Dataset::Meters) && as_published == AsPublished::Paper;
    if variant == Variant::Evenhand || ours { StepKind::Mean } else { StepKind::Published }
}

/// The text says SGD, and so do the paper's data sets under it; the optimisers of the code belong to the code. Ours keep what
/// they were first measured with.
fn optimiser(dataset: Dataset, as_published: AsPublished) -> OptimiserKind {
    match (dataset, as_published) {
        (Dataset::Meters, _) => OptimiserKind::Momentum,
        (Dataset::Synthetic | Dataset::DayAhead, _) | (_, AsPublished::Paper) => OptimiserKind::None,
        (Dataset::Cifar10 | Dataset::Hft | Dataset::Pathmnist, AsPublished::Code) => OptimiserKind::Adam,
        (Dataset::Mnist | Dataset::Electricity, AsPublished::Code) => OptimiserKind::Momentum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mnist() -> Setup {
        Setup::published(Dataset::Mnist, Corruption::FeatureNoise, Variant::QFfl, AsPublished::Paper, 3)
    }

    #[test]
    fn published_settings_have_the_shortest_path() {
        assert_eq!(mnist().path(), PathBuf::from("mnist/feature-noise/paper/q-ffl/seed-3.json"));
    }

    #[test]
    fn optimisers_belong_to_the_code() {
        let of = |dataset, as_published| {
            Setup::published(dataset, Corruption::FeatureNoise, Variant::Paper, as_published, 1).optimiser
        };
        for dataset in [Dataset::Mnist, Dataset::Cifar10, Dataset::Electricity] {
            assert_eq!(of(dataset, AsPublished::Paper), OptimiserKind::None, "the text says SGD");
            assert_ne!(of(dataset, AsPublished::Code), OptimiserKind::None);
        }
    }

    #[test]
    fn settings_are_stored_under_the_names_of_their_flags() {
        let setup = Setup { tested_nodes: 4, alpha: 0.5, evaluation_samples: 32, ..mnist() };
        let expected =
            "mnist/feature-noise/paper/q-ffl/tested-nodes-4,alpha-0.5,evaluation-samples-32/seed-3.json";
        assert_eq!(setup.path(), PathBuf::from(expected));
        let json = serde_json::to_value(&setup).expect("plain values");
        for (name, value) in
            [("tested_nodes", "4"), ("alpha", "0.5"), ("evaluation_samples", "32"), ("variant", "\"q-ffl\"")]
        {
            assert_eq!(json[name].to_string(), value, "{name}");
        }
    }

    #[test]
    fn other_settings_have_a_folder_of_their_own() {
        let setup = Setup { nodes: 10, temperature: 0.5, ..mnist() };
        let expected = "mnist/feature-noise/paper/q-ffl/nodes-10,temperature-0.5/seed-3.json";
        assert_eq!(setup.path(), PathBuf::from(expected));
        assert_ne!(Setup { shuffled: true, ..mnist() }.path(), mnist().path());
    }

    #[test]
    fn no_setting_makes_a_name_too_long_for_a_file() {
        let (one, other) =
            (Setup { temperature: 1e-300, ..mnist() }, Setup { temperature: 2e-300, ..mnist() });
        assert!(one.path().iter().all(|part| part.len() <= NAME_MAX), "{}", one.path().display());
        assert_ne!(one.path(), other.path());
    }

    #[test]
    fn the_settings_are_those_of_the_paper() {
        let setup = mnist();
        assert_eq!((setup.nodes, setup.rounds, setup.batch, setup.k), (30, 130, 3, 12));
        assert_eq!((setup.window, setup.tested_nodes, setup.alpha), (15, 10, 0.7));
        let hft =
            Setup::published(Dataset::Hft, Corruption::LabelNoise, Variant::Paper, AsPublished::Paper, 1);
        assert_eq!((hft.rounds, hft.batch, hft.learning_rate), (150, 14, 2e-4));
    }
}
