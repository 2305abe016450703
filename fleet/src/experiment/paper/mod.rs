//! The paper's own tables and figures: what is published, the trials behind each, and ours beside it.

pub mod agreement;
mod causes;
pub mod cost;
mod costs;
pub mod document;
pub mod figures;
mod grid;
mod items;
pub mod page;
mod published_cells;
pub mod report;
pub mod results;
pub mod selection;
mod units;

pub use grid::{CellPlan, PaperScope, plan};
pub use items::{ITEMS, ItemKind, PaperItem, Unavailable, item};
pub use published_cells::{
    BetterDirection, PUBLISHED_JSON, PublishedCell, PublishedTable, PublishedTables, published,
};
