//! Data sets, in the formats in which they are published: loaders, pools of samples, and their partition among nodes.

pub mod catalogue;
mod cifar;
mod dataset;
pub(crate) mod day_ahead;
mod error;
mod fi2010;
mod files;
mod idx;
mod meters;
mod npy;
mod npz;
mod opsd;
pub(crate) mod partition;
mod pool;
pub(crate) mod power_law;
pub(crate) mod published_split;
pub(crate) mod random;
mod recorded_series;
mod request;
mod series_table;
mod synthetic;
mod windows;

use std::path::{Path, PathBuf};

pub use dataset::{AsPublished, Dataset};
pub use error::{DataError, FilePosition, FormatError};
pub use pool::{SamplePool, SampleTargets};
pub use recorded_series::{RecordedSeries, recorded_series};
pub use request::DataRequest;

/// The environment variable with the folder of all data sets, where no flag names one.
pub const FOLDER_VARIABLE: &str = "EVENHAND_DATA";

/// The folder that `flag` names, or else the environment.
pub fn folder(flag: Option<PathBuf>) -> Option<PathBuf> {
    flag.or_else(|| std::env::var_os(FOLDER_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from))
}

/// Reads the part of a data set that is asked for.
pub fn load(dataset: Dataset, folder: Option<&Path>, request: &DataRequest) -> Result<SamplePool, DataError> {
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
        Dataset::DayAhead => day_ahead::load(folder, request),
        Dataset::Synthetic => Ok(synthetic::make(request)),
    }
}
