//! Comparisons of all strategies, Evenhand's among them, with and without settings of the paper.

mod table_name;
mod tables;

pub use table_name::ComparisonTable;
pub use tables::{CORRUPTIONS, TableScope, plans};
