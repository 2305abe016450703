//! Series of readings as they were recorded, one for each owner.

use std::path::Path;

use evenhand_node::reading::Reading;

use super::{DataError, Dataset, meters, opsd};

/// All readings of one owner, in the order of time.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedSeries {
    /// The owner.
    pub name: String,
    /// The readings; a reading that is missing is left out.
    pub readings: Vec<Reading>,
}

/// Every series of a data set of loads, in the order of their names.
pub fn recorded_series(dataset: Dataset, folder: Option<&Path>) -> Result<Vec<RecordedSeries>, DataError> {
    let folder = folder.ok_or(DataError::NoFolder { dataset })?;
    match dataset {
        Dataset::Electricity => opsd::series(folder),
        _ => meters::households(folder),
    }
}
