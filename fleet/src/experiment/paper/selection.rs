//! A selection of the paper's items, their trials, and what these show.

use super::agreement::Verdict;
use super::costs;
use super::document::WordTable;
use super::figures::{self, DrawnFigure, FigureSource};
use super::grid::{PaperScope, plan};
use super::items::{ItemKind, PaperItem};
use super::page::{agreement_tables, item_tables};
use super::published_cells::{PublishedCell, published};
use super::results::{self, CellResult, results};
use crate::data::Dataset;
use crate::experiment::runner::TrialRecords;
use crate::experiment::setup::Setup;
use crate::experiment::variant::Variant;
use crate::scenario::Corruption;

/// Items, and which of their numbers are asked for.
#[derive(Debug, Clone)]
pub struct PaperSelection {
    /// The items.
    pub items: Vec<&'static PaperItem>,
    /// The data sets that there are.
    pub datasets: Vec<Dataset>,
    /// Only these kinds of bad data; all if empty.
    pub corruptions: Vec<Corruption>,
    /// Only these strategies; all if empty.
    pub variants: Vec<Variant>,
    /// What all trials have in common.
    pub scope: PaperScope,
    /// Trials behind each number.
    pub trials: u64,
    /// Whether controls are run.
    pub controls: bool,
}

/// An item with what its trials show.
#[derive(Debug, Clone)]
pub struct ShownItem {
    /// The item.
    pub item: &'static PaperItem,
    /// One a published number.
    pub results: Vec<CellResult>,
    /// Its drawings.
    pub figure: DrawnFigure,
    /// Its tables.
    pub tables: Vec<WordTable>,
}

impl PaperSelection {
    /// All trials that the selection needs.
    pub fn setups(&self) -> Vec<Setup> {
        self.items.iter().flat_map(|item| self.setups_of(item)).collect()
    }

    /// The trials that one item needs.
    pub fn setups_of(&self, item: &PaperItem) -> Vec<Setup> {
        if item.unavailable.is_some() {
            return Vec::new();
        }
        match item.kind {
            ItemKind::Figure => {
                let setups = figures::setups(item.label, &self.source());
                setups.into_iter().filter(|setup| self.wants(setup)).collect()
            }
            ItemKind::Formulas if item.label == COMMUNICATIONS => {
                let setups = costs::setups(&self.scope, &self.datasets).into_iter();
                let trials = self.trials;
                setups
                    .filter(|setup| self.wants(setup))
                    .flat_map(|setup| crate::experiment::table::seeds(&setup, trials).collect::<Vec<_>>())
                    .collect()
            }
            ItemKind::Formulas => Vec::new(),
            ItemKind::Table => {
                published().of(item.label).flat_map(|cell| self.setups_of_cell(cell)).collect()
            }
        }
    }

    fn setups_of_cell(&self, cell: &PublishedCell) -> Vec<Setup> {
        match plan(cell, &self.scope) {
            Ok(planned) if self.wants(&planned.setup) => {
                results::setups(&planned, self.trials, self.controls)
            }
            _ => Vec::new(),
        }
    }

    fn wants(&self, setup: &Setup) -> bool {
        self.datasets.contains(&setup.dataset)
            && (self.corruptions.is_empty() || self.corruptions.contains(&setup.corruption))
            && (self.variants.is_empty() || self.variants.contains(&setup.variant))
    }

    fn source(&self) -> FigureSource<'_> {
        FigureSource { scope: &self.scope, datasets: &self.datasets, trials: self.trials }
    }

    /// Every item with what its trials show.
    pub fn shown(&self, records: &TrialRecords) -> Vec<ShownItem> {
        self.items.iter().map(|item| self.shown_item(item, records)).collect()
    }

    fn shown_item(&self, item: &'static PaperItem, records: &TrialRecords) -> ShownItem {
        let results = results(item.label, &self.scope, self.trials, records);
        let is_drawn = item.kind == ItemKind::Figure && item.unavailable.is_none();
        let figure = if is_drawn {
            figures::draw(item.label, &self.source(), records)
        } else {
            DrawnFigure::default()
        };
        let mut tables = match item.kind {
            ItemKind::Table => item_tables(item, &results, self.trials),
            ItemKind::Formulas => vec![costs::formulas(item.label)],
            ItemKind::Figure => figure.tables.clone(),
        };
        if item.label == COMMUNICATIONS {
            tables.extend(costs::communications(&self.scope, &self.datasets, self.trials, records));
        }
        if let (Some(why), true) = (item.unavailable, item.kind != ItemKind::Table) {
            let title = format!("{}: {}", item.name(), item.about);
            tables = vec![WordTable {
                title,
                notes: vec![format!("Not repeated: {why}.")],
                ..WordTable::default()
            }];
        }
        ShownItem { item, results, figure, tables }
    }
}

/// How many numbers agree, and which are worse.
pub fn agreement(shown: &[ShownItem]) -> Vec<WordTable> {
    let tables: Vec<(&PaperItem, Vec<CellResult>)> = (shown.iter())
        .filter(|one| !one.results.is_empty())
        .map(|one| (one.item, one.results.clone()))
        .collect();
    agreement_tables(&tables)
}

impl ShownItem {
    /// True if any trial of it was run.
    pub fn is_run(&self) -> bool {
        let was_run = |result: &CellResult| !matches!(result.verdict, Verdict::NotRun | Verdict::Unavailable);
        self.results.iter().any(was_run) || !self.figure.drawings.is_empty()
    }
}

const COMMUNICATIONS: &str = "table:communication-costs";
