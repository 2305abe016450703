//! The paper's tables, from the trials of experiments.

mod table_name;
mod tables;

pub use table_name::PaperTable;
pub use tables::{CORRUPTIONS, TableScope, plans};
