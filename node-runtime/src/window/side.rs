//! Side series: series beside the household's load.

use serde::{Deserialize, Serialize};

use crate::config::MeterQuantity;

/// A series beside the household's load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SideSeries {
    /// Its name, unlike that of any other.
    pub name: String,
    /// What it is for.
    pub role: SideRole,
}

/// Use of a side series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SideRole {
    /// It is subtracted from the load.
    LeaveOut(MeterQuantity),
    /// It is an input of the model.
    Covariate,
}

#[cfg(test)]
mod tests;
