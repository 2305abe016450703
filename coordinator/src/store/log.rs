//! The rounds that are over.

use evenhand_protocol::message::Update;
use redb::{ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable, WriteTransaction};
use serde::de::DeserializeOwned;

use super::{ANCHORS, ROUNDS, RULES, Store, StoreError, UPDATES, sealed};
use evenhand_federation::{ClosedRound, RoundEvidence, Rules, SavedFederation};

/// The log as it was when it was opened; rounds that end later do not show.
pub struct Log {
    transaction: ReadTransaction,
    rounds: ReadOnlyTable<u32, &'static [u8]>,
}

impl Store {
    /// The rounds that are over.
    pub fn log(&self) -> Result<Log, StoreError> {
        let transaction = self.database.begin_read()?;
        let rounds = transaction.open_table(ROUNDS)?;
        Ok(Log { transaction, rounds })
    }
}

impl Log {
    /// The figures of one round.
    pub fn record(&self, round: u32) -> Result<Option<ClosedRound>, StoreError> {
        let bytes = self.rounds.get(round)?;
        bytes.map(|bytes| decoded(round, "record", bytes.value())).transpose()
    }

    /// The figures of every round, in order.
    pub fn records(&self) -> Result<impl Iterator<Item = Result<ClosedRound, StoreError>>, StoreError> {
        Ok(self.rounds.iter()?.map(|entry| {
            let (round, bytes) = entry?;
            decoded(round.value(), "record", bytes.value())
        }))
    }

    /// The last round that is over.
    pub fn last(&self) -> Result<Option<ClosedRound>, StoreError> {
        match self.rounds.last()? {
            Some((round, bytes)) => decoded(round.value(), "record", bytes.value()).map(Some),
            None => Ok(None),
        }
    }

    /// The updates that counted in a round, with the columns of their senders, if they are still kept.
    pub fn updates(&self, round: u32) -> Result<Option<Vec<(usize, Update)>>, StoreError> {
        let bytes = self.transaction.open_table(UPDATES)?.get(round)?;
        bytes.map(|bytes| decoded(round, "list of updates", bytes.value())).transpose()
    }

    /// The rules a round was held by.
    pub(super) fn rules(&self, round: u32) -> Result<Rules, StoreError> {
        let rules = self.transaction.open_table(RULES)?;
        let latest = rules.range(..=round)?.next_back().transpose()?;
        let (_, bytes) = latest.ok_or_else(|| missing(round, "rules"))?;
        decoded(round, "rules", bytes.value())
    }

    /// The state after a round as bytes, if it was kept: later rounds can be recomputed from it.
    pub(super) fn anchor(&self, round: u32) -> Result<Option<Vec<u8>>, StoreError> {
        let anchors = self.transaction.open_table(ANCHORS)?;
        Ok(anchors.get(round)?.map(|bytes| bytes.value().to_vec()))
    }
}

fn decoded<T: DeserializeOwned>(round: u32, what: &str, bytes: &[u8]) -> Result<T, StoreError> {
    postcard::from_bytes(bytes)
        .map_err(|error| StoreError::Damaged(format!("round {round}: its {what} does not decode ({error})")))
}

pub(super) fn missing(round: u32, what: &str) -> StoreError {
    StoreError::Damaged(format!("round {round}: its {what} are missing"))
}

/// Adds a round.
pub(super) fn append(transaction: &WriteTransaction, closed: &RoundEvidence) -> Result<(), StoreError> {
    let round = closed.record.round;
    let record = postcard::to_allocvec(&closed.record).expect("plain data always encodes");
    transaction.open_table(ROUNDS)?.insert(round, record.as_slice())?;
    let room = closed.updates.iter().map(|(_, update)| 4 * update.vector().len() + 64).sum();
    let updates = postcard::to_extend(&closed.received(), Vec::with_capacity(room));
    transaction.open_table(UPDATES)?.insert(round, updates.expect("plain data always encodes").as_slice())?;
    Ok(())
}

/// Drops updates that are too old, a whole span of `keep` rounds at a time: an anchor is kept after each span, and
/// when the next one is full, the updates before the anchor go. Never more than an anchor makes up for: `keep` may have
/// been another number in an earlier run.
pub(super) fn thin(
    transaction: &WriteTransaction,
    round: u32,
    keep: u32,
    saved: &SavedFederation,
) -> Result<(), StoreError> {
    if keep == 0 || !round.is_multiple_of(keep) {
        return Ok(());
    }
    let mut anchors = transaction.open_table(ANCHORS)?;
    let bytes = sealed::close(saved.clone().without_history().to_bytes());
    anchors.insert(round, bytes.as_slice())?;
    let before = anchors.range(..=round - keep)?.next_back().transpose()?.map(|(round, _)| round.value());
    if let Some(oldest) = before {
        anchors.retain_in(..oldest, |_, _| false)?;
        transaction.open_table(UPDATES)?.retain_in(..=oldest, |_, _| false)?;
    }
    Ok(())
}
