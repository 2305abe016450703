//! Data sets, in the formats in which they are published.

mod catalogue;
mod cifar;
mod error;
mod fi2010;
mod files;
mod idx;
mod meters;
mod npy;
mod npz;
mod opsd;
mod synthetic;
mod table;
mod windows;

use std::ops::Range;
use std::path::{Path, PathBuf};

use evenhand_federation::Loss;
use evenhand_models::shipped;
use rand::SeedableRng;
use rand::seq::index;
use rand_chacha::ChaCha8Rng;

pub use catalogue::{DataArgs, HELP, run};
pub use error::{DataError, Flaw, Place};

use crate::experiment::names::value_name;
use crate::experiment::setup::{AsPublished, Setup};

/// The folder of all data sets, where no flag names one.
pub const FOLDER_VARIABLE: &str = "EVENHAND_DATA";

/// A data set of the paper, another one for meters, or a made-up one that needs no files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dataset {
    /// Handwritten digits
    Mnist,
    /// Small colour photographs of ten kinds
    Cifar10,
    /// Nine kinds of tissue
    Pathmnist,
    /// Whether the price in an order book will rise
    Hft,
    /// The load of Germany, every 15 minutes
    Electricity,
    /// Smart meters of households: each node is one of them
    Meters,
    /// Made-up clusters of points: needs no files
    Synthetic,
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
        }
    }

    /// The loss it is learned by: the shipped classifiers end in log-probabilities.
    pub fn loss(self) -> Loss {
        match self {
            Dataset::Electricity | Dataset::Meters => Loss::Mse,
            Dataset::Mnist | Dataset::Cifar10 | Dataset::Pathmnist | Dataset::Hft | Dataset::Synthetic => {
                Loss::Nll
            }
        }
    }

    /// Its name on the command line.
    pub fn name(self) -> String {
        value_name(&self)
    }

    /// Where its publisher offers it.
    pub fn home(self) -> &'static str {
        match self {
            Dataset::Mnist => "http://yann.lecun.com/exdb/mnist",
            Dataset::Cifar10 => "https://www.cs.toronto.edu/~kriz/cifar.html (binary version)",
            Dataset::Pathmnist => "https://zenodo.org/record/6496656 (MedMNIST v2)",
            Dataset::Hft => {
                "https://etsin.fairdata.fi/dataset/73eb48d7-4dbc-4a10-a52a-da745b47a649 (FI-2010)"
            }
            Dataset::Electricity => "https://data.open-power-system-data.org/time_series/2020-10-06",
            Dataset::Meters => {
                "https://data.london.gov.uk/dataset/smartmeter-energy-use-data-in-london-households"
            }
            Dataset::Synthetic => "nowhere: it is made up",
        }
    }
}

/// Samples of a data set, clean, in the order in which they were recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool {
    /// The shape of one sample.
    pub shape: Vec<usize>,
    /// The features of all samples, one after the other.
    pub features: Vec<f32>,
    /// What a model shall say about each.
    pub answers: Answers,
    /// Where each node's own samples are, if the data belong to somebody; otherwise they are dealt out.
    pub owners: Option<Vec<Range<usize>>>,
    /// How many samples the files hold; the pool has those that were asked for. Where there are owners, it has all of them.
    pub recorded: usize,
    /// What must be said beside every figure that comes from here, e.g. that the data are a substitute.
    pub note: Option<String>,
}

impl Pool {
    /// How many samples there are.
    pub fn len(&self) -> usize {
        match &self.answers {
            Answers::Classes { of, .. } => of.len(),
            Answers::Values { of, .. } => of.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The features of one sample.
    pub fn sample(&self, at: usize) -> &[f32] {
        let width: usize = self.shape.iter().product();
        &self.features[at * width..(at + 1) * width]
    }
}

/// What a model shall say about each sample.
#[derive(Debug, Clone, PartialEq)]
pub enum Answers {
    /// One of `count` classes.
    Classes {
        /// By sample.
        of: Vec<u32>,
        /// How many there are.
        count: u32,
    },
    /// A number, normalised.
    Values {
        /// By sample.
        of: Vec<f32>,
        /// By sample: mean and deviation that bring the number back to what was measured.
        scales: Vec<(f32, f32)>,
    },
}

/// Which part of a data set an experiment needs, so that no more is unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Whom to follow in how samples are chosen and normalised.
    pub as_published: AsPublished,
    /// Of the choice.
    pub seed: u64,
    /// Samples, at most.
    pub samples_max: usize,
    /// Owners, at most, where the data belong to somebody.
    pub owners_max: usize,
}

impl Request {
    /// What one trial can use: a batch for each node and round, and one round more for the evaluation ahead.
    pub fn of(setup: &Setup) -> Self {
        let rounds = setup.rounds as usize + 1;
        Self {
            as_published: setup.as_published,
            seed: setup.seed,
            samples_max: setup.nodes.saturating_mul(setup.batch).saturating_mul(rounds),
            owners_max: setup.nodes,
        }
    }

    /// Which of `recorded` samples: drawn at random for the paper, the first ones for the published code; in order.
    fn choose(&self, recorded: usize) -> Vec<usize> {
        let count = self.samples_max.min(recorded);
        match self.as_published {
            AsPublished::Code => (0..count).collect(),
            AsPublished::Paper => {
                let mut generator = ChaCha8Rng::seed_from_u64(self.seed);
                let mut chosen = index::sample(&mut generator, recorded, count).into_vec();
                chosen.sort_unstable();
                chosen
            }
        }
    }
}

/// The folder that `flag` names, or else the environment.
pub fn folder(flag: Option<PathBuf>) -> Option<PathBuf> {
    flag.or_else(|| std::env::var_os(FOLDER_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from))
}

/// Reads the part of a data set that is asked for.
pub fn load(dataset: Dataset, folder: Option<&Path>, request: &Request) -> Result<Pool, DataError> {
    if dataset == Dataset::Synthetic {
        return Ok(synthetic::make(request));
    }
    let folder = folder.ok_or(DataError::NoFolder { dataset })?;
    match dataset {
        Dataset::Mnist => idx::load(folder, request),
        Dataset::Cifar10 => cifar::load(folder, request),
        Dataset::Pathmnist => npz::load(folder, request),
        Dataset::Hft => fi2010::load(folder, request),
        Dataset::Electricity => opsd::load(folder, request),
        Dataset::Meters => meters::load(folder, request),
        Dataset::Synthetic => Ok(synthetic::make(request)),
    }
}
