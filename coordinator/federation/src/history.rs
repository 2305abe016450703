//! Contributions over rounds.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::closed::ClosedRound;

/// Contributions of several rounds: a row a round, a column a member.
///
/// It grows at its end, and every row is in the record of its round as well. So the state
/// can be kept without the rows: what is written each round then does not grow with the rounds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct History {
    rounds: Vec<u32>,
    /// Shared with the states that were saved, so that saving copies nothing.
    #[serde(with = "arc_rows")]
    rows: Arc<Vec<Vec<f64>>>,
}

impl History {
    pub(crate) fn push(&mut self, round: u32, row: Vec<f64>) {
        self.rounds.push(round);
        Arc::make_mut(&mut self.rows).push(row);
    }

    /// Drops all but the last `rounds`.
    pub(crate) fn keep_last(&mut self, rounds: usize) {
        let surplus = self.rounds.len().saturating_sub(rounds);
        if surplus > 0 {
            self.rounds.drain(..surplus);
            Arc::make_mut(&mut self.rows).drain(..surplus);
        }
    }

    pub(crate) fn rows(&self) -> &[Vec<f64>] {
        &self.rows
    }

    pub(crate) fn len(&self) -> usize {
        self.rounds.len()
    }

    /// True if every row is present, with no more columns than members.
    pub(crate) fn is_sound(&self, members: usize) -> bool {
        self.rows.len() == self.rounds.len() && self.rows.iter().all(|row| row.len() <= members)
    }

    /// The same without its rows.
    pub(crate) fn emptied(&self) -> Self {
        Self { rounds: self.rounds.clone(), rows: Arc::default() }
    }

    /// Reads the rows from the records again; false if one is missing.
    pub(crate) fn reload<E>(
        &mut self,
        record: &mut impl FnMut(u32) -> Result<Option<ClosedRound>, E>,
    ) -> Result<bool, E> {
        let mut rows = Vec::with_capacity(self.rounds.len());
        for round in &self.rounds {
            rows.extend(record(*round)?.map(|record| record.contributions()));
        }
        self.rows = Arc::new(rows);
        Ok(self.rows.len() == self.rounds.len())
    }
}

mod arc_rows {
    use super::{Arc, Deserialize, Serialize};
    use serde::{Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(rows: &Arc<Vec<Vec<f64>>>, to: S) -> Result<S::Ok, S::Error> {
        Vec::serialize(rows, to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<Vec<Vec<f64>>>, D::Error> {
        Vec::deserialize(from).map(Arc::new)
    }
}
