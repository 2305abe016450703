//! Tables of words: for terminals, documents and pages.

use evenhand_report::plot::{escaped, put};
use serde::Serialize;

/// Heads of columns that hold sentences.
const WORDS: [&str; 4] = ["about", "caption", "data set", "what differs"];

/// A table whose cells are words.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WordTable {
    /// The title.
    pub title: String,
    /// The heads of all columns.
    pub heads: Vec<String>,
    /// One a row, with a cell a column.
    pub rows: Vec<Vec<String>>,
    /// Remarks below it.
    pub notes: Vec<String>,
}

impl WordTable {
    fn lines(&self) -> impl Iterator<Item = &Vec<String>> {
        std::iter::once(&self.heads).chain(&self.rows)
    }

    /// For terminals.
    pub fn text(&self) -> String {
        let width = |column: usize| {
            self.lines()
                .filter_map(|line| line.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.heads.len()).map(width).collect();
        let mut text = format!("{}\n", self.title);
        for line in self.lines() {
            let mut shown = String::new();
            for (at, (cell, width)) in line.iter().zip(&widths).enumerate() {
                if at == 0 {
                    put(&mut shown, format_args!("{cell:<width$}"));
                } else if self.heads.get(at).is_some_and(|head| WORDS.contains(&head.as_str())) {
                    put(&mut shown, format_args!("  {cell:<width$}"));
                } else {
                    put(&mut shown, format_args!("  {cell:>width$}"));
                }
            }
            text.push_str(shown.trim_end());
            text.push('\n');
        }
        self.notes.iter().for_each(|note| put(&mut text, format_args!("{note}\n")));
        text
    }

    /// For documents.
    pub fn markdown(&self) -> String {
        let mut text = format!("### {}\n\n", self.title);
        for (index, line) in self.lines().enumerate() {
            put(&mut text, format_args!("| {} |\n", line.join(" | ")));
            if index == 0 {
                put(&mut text, format_args!("|---|{}\n", "---:|".repeat(line.len().saturating_sub(1))));
            }
        }
        self.notes.iter().for_each(|note| put(&mut text, format_args!("\n{note}\n")));
        text
    }

    /// For pages.
    pub fn html(&self) -> String {
        let title = escaped(&self.title);
        let mut text = format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\"><table>\n<thead><tr>"
        );
        for head in &self.heads {
            put(&mut text, format_args!("<th scope=\"col\">{}</th>", escaped(head)));
        }
        text.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            text.push_str("<tr>");
            for (at, cell) in row.iter().enumerate() {
                let cell = escaped(cell);
                if at == 0 {
                    put(&mut text, format_args!("<th scope=\"row\">{cell}</th>"));
                } else {
                    put(&mut text, format_args!("<td>{cell}</td>"));
                }
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
