//! Tables over many trials: planned, filled, and written for terminals, documents and pages.

use serde::Serialize;

use super::estimate::Estimate;
use super::measure::Measure;
use super::published_figures;
use super::record::{TrialRecord, notes};
use super::runner::TrialRecords;
use super::setup::Setup;
use evenhand_report::plot::{escaped, put};

const NOTHING: &str = "–";
/// The text of a cell without trials.
const NOT_RUN: &str = "not run";
/// The text of a cell whose federations failed.
const FAILED: &str = "failed";

/// The query of a cell: one measure of one setup, over the seeds.
#[derive(Debug, Clone)]
pub struct CellQuery {
    /// The setup; its seed is the first one.
    pub setup: Setup,
    /// The measure.
    pub measure: Measure,
}

/// A table before its trials are run.
#[derive(Debug, Clone)]
pub struct TablePlan {
    /// The title.
    pub title: String,
    /// The heads of all columns, that of the names first.
    pub heads: Vec<String>,
    /// A name and a query for each further column.
    pub rows: Vec<(String, Vec<CellQuery>)>,
    /// The columns of fairness and of equality, where rows trade one for the other: pages plot them.
    pub trade_off: Option<(usize, usize)>,
}

/// One cell.
#[derive(Debug, Clone, Serialize)]
pub struct TableCell {
    /// Over the trials that have a value.
    #[serde(flatten)]
    pub estimate: Option<Estimate>,
    /// The figure of the paper.
    pub published: Option<&'static str>,
    #[serde(skip)]
    text: String,
}

/// A filled table.
#[derive(Debug, Clone, Serialize)]
pub struct ResultTable {
    /// The title.
    pub title: String,
    /// The heads of all columns, that of the names first.
    pub columns: Vec<String>,
    /// One row a name.
    pub rows: Vec<TableRow>,
    /// Remarks beside it.
    pub notes: Vec<String>,
    /// The cells of fairness and of equality, where rows trade one for the other.
    #[serde(skip)]
    pub trade_off: Option<(usize, usize)>,
}

/// A row of a table.
#[derive(Debug, Clone, Serialize)]
pub struct TableRow {
    /// Its name.
    pub name: String,
    /// One a column, the first aside.
    pub cells: Vec<TableCell>,
}

impl TablePlan {
    /// All setups that must be run, with every seed.
    pub fn setups(&self, trials: u64) -> impl Iterator<Item = Setup> {
        let queries = self.rows.iter().flat_map(|(_, queries)| queries);
        queries.flat_map(move |query| seeds(&query.setup, trials))
    }

    /// The table, filled from the records that there are.
    pub fn fill(&self, records: &TrialRecords, trials: u64) -> ResultTable {
        let mut used: Vec<&TrialRecord> = Vec::new();
        let mut cell = |query: &CellQuery| {
            let records_of_cell: Vec<&TrialRecord> =
                seeds(&query.setup, trials).filter_map(|setup| records.get(&setup)).collect();
            used.extend(&records_of_cell);
            let estimate = Estimate::of(records_of_cell.iter().map(|record| query.measure.of(record)));
            let published = published_figures::figure(&query.setup, query.measure);
            let text = match &estimate {
                Some(estimate) => estimate.text(query.measure.decimals(), trials as usize),
                None if seeds(&query.setup, trials).any(|setup| records.has_failed(&setup)) => FAILED.into(),
                None if records_of_cell.is_empty() => NOT_RUN.into(),
                None => NOTHING.into(),
            };
            TableCell { estimate, published, text }
        };
        let rows: Vec<TableRow> = (self.rows.iter())
            .map(|(name, queries)| TableRow {
                name: name.clone(),
                cells: queries.iter().map(&mut cell).collect(),
            })
            .collect();
        let notes = notes(used);
        ResultTable {
            title: self.title.clone(),
            columns: self.heads.clone(),
            rows,
            notes,
            trade_off: self.trade_off,
        }
    }
}

/// A setup with its own seed and those after it.
pub(crate) fn seeds(setup: &Setup, trials: u64) -> impl Iterator<Item = Setup> {
    let setup = setup.clone();
    (0..trials).map(move |trial| setup.with_seed(setup.seed.wrapping_add(trial)))
}

impl TableCell {
    /// The cell as text.
    pub fn text(&self) -> String {
        match self.published {
            Some(published) => format!("{} [{published}]", self.text),
            None => self.text.clone(),
        }
    }

    /// The error smaller than the mean.
    fn html(&self) -> String {
        let text = escaped(&self.text());
        match text.split_once(' ') {
            Some((mean, rest)) => format!("{mean} <small>{rest}</small>"),
            None => text,
        }
    }
}

impl ResultTable {
    /// Without the rows in which no trial has any value.
    pub fn without_empty_rows(mut self) -> Self {
        self.rows.retain(|row| row.cells.iter().any(|cell| cell.estimate.is_some()));
        self
    }

    fn lines(&self) -> Vec<Vec<String>> {
        let head = std::iter::once(self.columns.clone());
        let rows = self.rows.iter().map(|row| {
            std::iter::once(row.name.clone()).chain(row.cells.iter().map(TableCell::text)).collect()
        });
        head.chain(rows).collect()
    }

    /// For terminals.
    pub fn text(&self) -> String {
        let lines = self.lines();
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let mut text = format!("{}\n", self.title);
        for line in &lines {
            let mut shown = format!("{:<1$}", line[0], widths[0]);
            for (cell, width) in line.iter().zip(&widths).skip(1) {
                put(&mut shown, format_args!("  {cell:>width$}"));
            }
            text.push_str(shown.trim_end());
            text.push('\n');
        }
        for note in &self.notes {
            put(&mut text, format_args!("{note}\n"));
        }
        text
    }

    /// For documents.
    pub fn markdown(&self) -> String {
        let mut text = format!("#### {}\n\n", self.title);
        for (index, line) in self.lines().iter().enumerate() {
            put(&mut text, format_args!("| {} |\n", line.join(" | ")));
            if index == 0 {
                put(&mut text, format_args!("|---|{}\n", "---:|".repeat(line.len() - 1)));
            }
        }
        for note in &self.notes {
            put(&mut text, format_args!("\n{note}\n"));
        }
        text
    }

    /// For pages.
    pub fn html(&self) -> String {
        let title = escaped(&self.title);
        let mut text = format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\"><table>\n<thead><tr>"
        );
        for head in &self.columns {
            put(&mut text, format_args!("<th scope=\"col\">{}</th>", escaped(head)));
        }
        text.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            put(&mut text, format_args!("<tr><th scope=\"row\">{}</th>", escaped(&row.name)));
            for cell in &row.cells {
                put(&mut text, format_args!("<td>{}</td>", cell.html()));
            }
            text.push_str("</tr>\n");
        }
        text.push_str("</tbody>\n</table></div>\n");
        for note in &self.notes {
            put(&mut text, format_args!("<p class=\"say\">{}</p>\n", escaped(note)));
        }
        text
    }
}
