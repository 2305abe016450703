//! Data sets: names, models, losses and publishers.

use clap::ValueEnum;
use evenhand_models::shipped;
use evenhand_protocol::message::LossKind;

use crate::names::value_name;

/// A data set of the paper, another one for meters, or a synthetic one that needs no files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dataset {
    /// Handwritten digits
    Mnist,
    /// Small colour photographs of ten kinds
    Cifar10,
    /// Nine kinds of tissue
    Pathmnist,
    /// Direction of the price in an order book
    Hft,
    /// The load of Germany, every 15 minutes
    Electricity,
    /// Smart meters of households: each node is one of them
    Meters,
    /// The same meters, one day a round, as the product's default model for loads sees them
    DayAhead,
    /// Synthetic clusters of points: needs no files
    Synthetic,
}

/// The authority where the published code differs from the paper.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum AsPublished {
    /// The text
    #[default]
    Paper,
    /// The repository
    Code,
}

impl Dataset {
    /// The shipped model that learns it: its name, and the file.
    pub fn model(self, as_published: AsPublished) -> (&'static str, &'static [u8]) {
        match (self, as_published) {
            (Dataset::Mnist, _) => ("mnist-cnn", shipped::MNIST_CNN),
            (Dataset::Cifar10, _) => ("cifar-cnn", shipped::CIFAR_CNN),
            (Dataset::Pathmnist, _) => ("path-cnn", shipped::PATH_CNN),
            (Dataset::Hft | Dataset::Synthetic, _) => ("hft-mlp", shipped::HFT_MLP),
            (Dataset::Electricity, AsPublished::Code) => ("electricity-mlp", shipped::ELECTRICITY_MLP),
            (Dataset::Electricity, AsPublished::Paper) | (Dataset::Meters, _) => {
                ("electricity-rnn", shipped::ELECTRICITY_RNN)
            }
            (Dataset::DayAhead, _) => ("load-quantiles", shipped::LOAD_QUANTILES),
        }
    }

    /// The loss it is learned by: the shipped classifiers end in log-probabilities.
    pub fn loss(self) -> LossKind {
        match self {
            Dataset::Electricity | Dataset::Meters => LossKind::Mse,
            Dataset::DayAhead => LossKind::Pinball,
            Dataset::Mnist | Dataset::Cifar10 | Dataset::Pathmnist | Dataset::Hft | Dataset::Synthetic => {
                LossKind::Nll
            }
        }
    }

    /// True if its targets are classes, for which an accuracy is defined.
    pub fn has_classes(self) -> bool {
        !matches!(self, Dataset::Electricity | Dataset::Meters | Dataset::DayAhead)
    }

    /// The data sets with files of their own, or with none.
    pub fn published() -> impl Iterator<Item = Self> {
        Self::value_variants().iter().copied().filter(|dataset| *dataset != Dataset::DayAhead)
    }

    /// Its name on the command line.
    pub fn name(self) -> String {
        value_name(&self)
    }

    /// The address at which its publisher offers it.
    pub fn home(self) -> &'static str {
        match self {
            Dataset::Mnist => "http://yann.lecun.com/exdb/mnist",
            Dataset::Cifar10 => "https://www.cs.toronto.edu/~kriz/cifar.html (binary version)",
            Dataset::Pathmnist => "https://zenodo.org/record/6496656 (MedMNIST v2)",
            Dataset::Hft => {
                "https://etsin.fairdata.fi/dataset/73eb48d7-4dbc-4a10-a52a-da745b47a649 (FI-2010)"
            }
            Dataset::Electricity => "https://data.open-power-system-data.org/time_series/2020-10-06",
            Dataset::Meters | Dataset::DayAhead => {
                "https://data.london.gov.uk/dataset/smartmeter-energy-use-data-in-london-households"
            }
            Dataset::Synthetic => "nowhere: it is synthetic",
        }
    }
}
