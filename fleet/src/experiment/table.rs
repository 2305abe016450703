//! Tables of questions to many trials: asked, answered, and written for terminals, documents and pages.

use serde::Serialize;

use super::estimate::Estimate;
use super::measure::Measure;
use super::record::{Record, notes};
use super::runner::Records;
use super::setup::Setup;
use crate::paper::published;
use crate::report::plot::{escaped, put};

const NOTHING: &str = "–";
/// Where there is no trial at all.
const NOT_RUN: &str = "not run";
/// Where there was one, and its federation gave up.
const FAILED: &str = "failed";

/// What a cell of a table asks: one number of one setup, over the seeds.
#[derive(Debug, Clone)]
pub struct Question {
    /// Of what; its seed is the first one.
    pub setup: Setup,
    /// Which number.
    pub measure: Measure,
}

/// A table before its trials are run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What it shows.
    pub title: String,
    /// The heads of all columns, that of the names first.
    pub heads: Vec<String>,
    /// A name and a question for each further column.
    pub rows: Vec<(String, Vec<Question>)>,
    /// The columns of fairness and of equality, where rows trade one for the other: pages plot them.
    pub trade_off: Option<(usize, usize)>,
}

/// One answer.
#[derive(Debug, Clone, Serialize)]
pub struct Cell {
    /// Over the trials that have a value.
    #[serde(flatten)]
    pub estimate: Option<Estimate>,
    /// What the paper or its code says.
    pub published: Option<&'static str>,
    #[serde(skip)]
    text: String,
}

/// A table with its answers.
#[derive(Debug, Clone, Serialize)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// The heads of all columns, that of the names first.
    pub columns: Vec<String>,
    /// One row a name.
    pub rows: Vec<Row>,
    /// What must be said beside it.
    pub notes: Vec<String>,
    /// The cells of fairness and of equality, where rows trade one for the other.
    #[serde(skip)]
    pub trade_off: Option<(usize, usize)>,
}

/// A row of a table.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// What it is about.
    pub name: String,
    /// One a column, the first aside.
    pub cells: Vec<Cell>,
}

impl Plan {
    /// All setups that must be run, with every seed.
    pub fn setups(&self, trials: u64) -> impl Iterator<Item = Setup> {
        let questions = self.rows.iter().flat_map(|(_, questions)| questions);
        questions.flat_map(move |question| seeds(&question.setup, trials))
    }

    /// The table, from whatever records there are.
    pub fn answer(&self, records: &Records, trials: u64) -> Table {
        let mut behind: Vec<&Record> = Vec::new();
        let mut remarks: Vec<&'static str> = Vec::new();
        let mut cell = |question: &Question| {
            let seen: Vec<&Record> =
                seeds(&question.setup, trials).filter_map(|setup| records.get(&setup)).collect();
            behind.extend(&seen);
            let estimate = Estimate::of(seen.iter().map(|record| question.measure.of(record)));
            let published = published::figure(&question.setup, question.measure);
            let remark = published.and(published::remark(&question.setup));
            remarks.extend(remark.filter(|remark| !remarks.contains(remark)));
            let text = match &estimate {
                Some(estimate) => estimate.text(question.measure.decimals(), trials as usize),
                None if seeds(&question.setup, trials).any(|setup| records.has_failed(&setup)) => {
                    FAILED.into()
                }
                None if seen.is_empty() => NOT_RUN.into(),
                None => NOTHING.into(),
            };
            Cell { estimate, published, text }
        };
        let rows: Vec<Row> = (self.rows.iter())
            .map(|(name, questions)| Row {
                name: name.clone(),
                cells: questions.iter().map(&mut cell).collect(),
            })
            .collect();
        let mut notes = notes(behind);
        notes.extend(remarks.into_iter().map(str::to_owned));
        Table {
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

impl Cell {
    /// As people read it.
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

impl Table {
    /// Without the rows in which no trial has any value.
    pub fn without_empty_rows(mut self) -> Self {
        self.rows.retain(|row| row.cells.iter().any(|cell| cell.estimate.is_some()));
        self
    }

    fn lines(&self) -> Vec<Vec<String>> {
        let head = std::iter::once(self.columns.clone());
        let rows = self
            .rows
            .iter()
            .map(|row| std::iter::once(row.name.clone()).chain(row.cells.iter().map(Cell::text)).collect());
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
