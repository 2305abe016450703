//! The published tables, compiled in.

use std::sync::LazyLock;

use serde::Deserialize;

/// All tables of the paper and their cells, as one JSON object.
pub const PUBLISHED_JSON: &str = include_str!("published.json");

/// The tables of the paper.
#[derive(Debug, Deserialize)]
pub struct PublishedTables {
    /// One a table, in the order of the paper.
    pub tables: Vec<PublishedTable>,
    /// One a number, in the order of tables and rows.
    pub cells: Vec<PublishedCell>,
}

/// One table of the paper.
#[derive(Debug, Clone, Deserialize)]
pub struct PublishedTable {
    /// Its label.
    pub label: String,
    /// Its caption, in LaTeX.
    pub caption: String,
    /// Its rows, where it holds text.
    #[serde(default)]
    pub text_rows: Vec<Vec<String>>,
}

/// One number of a table.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct PublishedCell {
    /// The label of its table.
    pub table: String,
    /// The name of its row, as printed.
    pub row: String,
    /// The strategy, by the name in the paper.
    pub method: String,
    /// β, where rows are β.
    #[serde(default)]
    pub beta: Option<f64>,
    /// Share of the nodes that take part, where rows are that.
    #[serde(default)]
    pub r_sub: Option<f64>,
    /// Classes of a node, where rows are that.
    #[serde(default)]
    pub classes: Option<u32>,
    /// Behaviour of the best node, where rows are that.
    #[serde(default)]
    pub behaviour: Option<String>,
    /// The kind of bad data.
    pub corruption: Option<String>,
    /// The data set.
    pub dataset: String,
    /// The number.
    pub value: f64,
    /// The number in brackets.
    pub second: Option<f64>,
    /// The meaning of the number in brackets.
    pub second_is: String,
    /// The direction in which the number is better.
    pub better: BetterDirection,
    /// Both numbers, as printed.
    pub text: String,
}

/// The direction in which a number is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BetterDirection {
    /// The higher, the better.
    Higher,
    /// The lower, the better.
    Lower,
    /// Neither is.
    None,
}

impl PublishedCell {
    /// The standard error, where the number in brackets is one.
    pub fn standard_error(&self) -> Option<f64> {
        self.second.filter(|_| self.second_is.starts_with("standard error"))
    }
}

impl PublishedTables {
    /// The cells of a table.
    pub fn of(&self, label: &str) -> impl Iterator<Item = &PublishedCell> {
        self.cells.iter().filter(move |cell| cell.table == label)
    }

    /// A table.
    pub fn table(&self, label: &str) -> Option<&PublishedTable> {
        self.tables.iter().find(|table| table.label == label)
    }
}

/// The published tables.
pub fn published() -> &'static PublishedTables {
    static TABLES: LazyLock<PublishedTables> = LazyLock::new(|| {
        serde_json::from_str(PUBLISHED_JSON).expect("the compiled-in tables are well formed")
    });
    &TABLES
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use sha2::{Digest, Sha256};

    use super::*;

    /// Of the file as it was transcribed from the paper.
    const DIGEST: &str = "b27d9cbfb457ce24b5060b0ac26c3854e46668491954983a54dab1adc650e79d";

    /// A path to another copy of the tables, to be compared with.
    const COPY_VARIABLE: &str = "EVENHAND_PUBLISHED";

    #[test]
    fn what_is_compiled_in_is_what_was_transcribed() {
        let digest: String =
            Sha256::digest(PUBLISHED_JSON).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digest, DIGEST);
        if let Some(path) = std::env::var_os(COPY_VARIABLE) {
            let copy: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
            assert_eq!(copy, serde_json::from_str::<serde_json::Value>(PUBLISHED_JSON).unwrap());
        }
    }

    #[test]
    fn all_tables_and_cells_are_there() {
        let all = published();
        assert_eq!((all.tables.len(), all.cells.len()), (30, 1269));
        let cell = all
            .of("tab:by-class-vs-not-by-class-pearson")
            .find(|cell| cell.method == "ours" && cell.dataset == "mnist");
        let cell = cell.unwrap();
        assert_eq!((cell.value, cell.standard_error()), (0.647, Some(0.018)));
        let beta = all.of("table:fairness-varying-beta").next().unwrap();
        assert_eq!((beta.beta, beta.standard_error()), (Some(1.0 / 350.0), None));
    }
}
