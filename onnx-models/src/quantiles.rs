//! Quantile levels of the output's columns, for the pinball loss.

use std::collections::BTreeMap;

use crate::error::{ModelError, Result};

/// The metadata key that names the quantile level of each output column, in order: `0.1,0.5,0.9`.
pub const QUANTILES: &str = "evenhand.quantiles";

/// The levels that the metadata name; none if they name none.
///
/// `columns` is the last dimension of the output, where it is known.
pub(crate) fn read(metadata: &BTreeMap<String, String>, columns: Option<usize>) -> Result<Option<Vec<f32>>> {
    let Some(value) = metadata.get(QUANTILES) else { return Ok(None) };
    let fail = |why: String| Err(ModelError::Quantiles { value: value.clone(), why });
    let Ok(levels) =
        value.split(',').map(|level| level.trim().parse()).collect::<std::result::Result<Vec<f32>, _>>()
    else {
        return fail("not a list of numbers".to_owned());
    };
    if let Some(level) = levels.iter().find(|level| !(**level > 0.0 && **level < 1.0)) {
        return fail(format!("{level} is not between 0 and 1"));
    }
    if levels.windows(2).any(|pair| pair[0] >= pair[1]) {
        return fail("the levels do not ascend".to_owned());
    }
    match columns.filter(|&columns| columns != levels.len()) {
        Some(columns) => fail(format!("{} levels for {columns} output columns", levels.len())),
        None => Ok(Some(levels)),
    }
}

/// The levels of a model that names none: they divide (0, 1) evenly, so one column is the median.
///
/// # Formula
///
/// qᵢ = i / (n + 1) for the columns i = 1, …, n.
pub(crate) fn evenly(columns: usize) -> Vec<f32> {
    (1..=columns).map(|column| column as f32 / (columns + 1) as f32).collect()
}
