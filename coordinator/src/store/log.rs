//! The log of closed rounds.

use redb::{ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable, WriteTransaction};
use serde::de::DeserializeOwned;

use super::digests::ReceivedDigests;
use super::guard::catch_damage;
use super::{CHECKPOINTS, DIGESTS, ROUNDS, RULES, Store, StoreError, UPDATES, checksum};
use evenhand_federation::{ClosedRound, ReceivedRound, RoundEvidence, Rules, SavedFederation};

/// A snapshot of the log; rounds closed later are not in it.
pub struct LogSnapshot {
    transaction: ReadTransaction,
    rounds: ReadOnlyTable<u32, &'static [u8]>,
}

impl Store {
    /// A snapshot of the log of closed rounds.
    pub fn log(&self) -> Result<LogSnapshot, StoreError> {
        catch_damage(|| {
            let transaction = self.database.begin_read()?;
            let rounds = transaction.open_table(ROUNDS)?;
            Ok(LogSnapshot { transaction, rounds })
        })
    }
}

impl LogSnapshot {
    /// The record of one round.
    pub fn record(&self, round: u32) -> Result<Option<ClosedRound>, StoreError> {
        catch_damage(|| {
            let bytes = self.rounds.get(round)?;
            bytes.map(|bytes| decoded_record(round, bytes.value())).transpose()
        })
    }

    /// The records of all rounds, in order.
    pub fn records(&self) -> Result<impl Iterator<Item = Result<ClosedRound, StoreError>>, StoreError> {
        let mut entries = catch_damage(|| Ok(self.rounds.iter()?))?;
        let mut next = move || {
            catch_damage(|| {
                let Some(entry) = entries.next() else { return Ok(None) };
                let (round, bytes) = entry?;
                decoded_record(round.value(), bytes.value()).map(Some)
            })
        };
        let mut failed = false;
        Ok(std::iter::from_fn(move || {
            if failed {
                return None;
            }
            let record = next().transpose();
            failed = matches!(record, Some(Err(_)));
            record
        }))
    }

    /// The record of the last round.
    pub fn last(&self) -> Result<Option<ClosedRound>, StoreError> {
        catch_damage(|| match self.rounds.last()? {
            Some((round, bytes)) => decoded_record(round.value(), bytes.value()).map(Some),
            None => Ok(None),
        })
    }

    /// The accepted updates and reference gradients of a round, if they are still stored.
    pub fn received(&self, round: u32) -> Result<Option<ReceivedRound>, StoreError> {
        catch_damage(|| {
            let bytes = self.transaction.open_table(UPDATES)?.get(round)?;
            bytes.map(|bytes| decoded(round, "list of updates", bytes.value())).transpose()
        })
    }

    /// The digests of a round's updates and reference gradients, if they were kept in their place.
    pub fn digests(&self, round: u32) -> Result<Option<ReceivedDigests>, StoreError> {
        catch_damage(|| {
            let table = match self.transaction.open_table(DIGESTS) {
                Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
                table => table?,
            };
            let bytes = table.get(round)?;
            bytes.map(|bytes| decoded(round, "list of digests", bytes.value())).transpose()
        })
    }

    /// The rules of a round.
    pub(super) fn rules(&self, round: u32) -> Result<Rules, StoreError> {
        catch_damage(|| {
            let rules = self.transaction.open_table(RULES)?;
            let latest = rules.range(..=round)?.next_back().transpose()?;
            let (_, bytes) = latest.ok_or_else(|| missing(round, "rules"))?;
            decoded(round, "rules", bytes.value())
        })
    }

    /// The bytes of the state after a round, if it is a checkpoint: later rounds can be recomputed from it.
    pub(super) fn checkpoint(&self, round: u32) -> Result<Option<Vec<u8>>, StoreError> {
        catch_damage(|| {
            let checkpoints = self.transaction.open_table(CHECKPOINTS)?;
            Ok(checkpoints.get(round)?.map(|bytes| bytes.value().to_vec()))
        })
    }
}

/// A record whose checksum is right: histories are read from records without an audit.
fn decoded_record(round: u32, bytes: &[u8]) -> Result<ClosedRound, StoreError> {
    let bytes = checksum::verified(bytes)
        .ok_or_else(|| StoreError::Damaged(format!("round {round}: its record has a wrong checksum")))?;
    decoded(round, "record", bytes)
}

fn decoded<T: DeserializeOwned>(round: u32, what: &str, bytes: &[u8]) -> Result<T, StoreError> {
    postcard::from_bytes(bytes)
        .map_err(|error| StoreError::Damaged(format!("round {round}: its {what} does not decode ({error})")))
}

pub(super) fn missing(round: u32, what: &str) -> StoreError {
    StoreError::Damaged(format!("round {round}: its {what} are missing"))
}

/// Appends a round without its updates.
fn append_record(transaction: &WriteTransaction, record: &ClosedRound) -> Result<(), StoreError> {
    let bytes = checksum::append(postcard::to_allocvec(record).expect("plain data always encodes"));
    transaction.open_table(ROUNDS)?.insert(record.round, bytes.as_slice())?;
    Ok(())
}

/// Appends a round with the digests of its updates, and deletes all updates that are stored.
pub(super) fn append_digests(
    transaction: &WriteTransaction,
    evidence: &RoundEvidence,
) -> Result<(), StoreError> {
    append_record(transaction, &evidence.round)?;
    let digests = ReceivedDigests::of(&evidence.received());
    let digests = postcard::to_allocvec(&digests).expect("plain data always encodes");
    transaction.open_table(DIGESTS)?.insert(evidence.round.round, digests.as_slice())?;
    transaction.open_table(UPDATES)?.retain(|_, _| false)?;
    // What the deleted updates would be recomputed from.
    transaction.open_table(CHECKPOINTS)?.retain(|_, _| false)?;
    Ok(())
}

/// Appends a round with its updates.
pub(super) fn append(transaction: &WriteTransaction, evidence: &RoundEvidence) -> Result<(), StoreError> {
    let round = evidence.round.round;
    append_record(transaction, &evidence.round)?;
    let capacity = evidence.updates.iter().map(|(_, update)| 4 * update.vector().len() + 64).sum();
    let updates = postcard::to_extend(&evidence.received(), Vec::with_capacity(capacity));
    transaction.open_table(UPDATES)?.insert(round, updates.expect("plain data always encodes").as_slice())?;
    Ok(())
}

/// Deletes old updates, `keep` rounds at a time: a checkpoint is stored after every `keep` rounds, and the updates before
/// a checkpoint are deleted with the next one. Only updates before a checkpoint are deleted: `keep` may have been another
/// number in an earlier run.
pub(super) fn prune(
    transaction: &WriteTransaction,
    round: u32,
    keep: u32,
    saved: &SavedFederation,
) -> Result<(), StoreError> {
    if keep == 0 || !round.is_multiple_of(keep) {
        return Ok(());
    }
    let mut checkpoints = transaction.open_table(CHECKPOINTS)?;
    let bytes = checksum::append(saved.clone().without_history().to_bytes());
    checkpoints.insert(round, bytes.as_slice())?;
    let before = checkpoints.range(..=round - keep)?.next_back().transpose()?.map(|(round, _)| round.value());
    if let Some(oldest) = before {
        checkpoints.retain_in(..oldest, |_, _| false)?;
        transaction.open_table(UPDATES)?.retain_in(..=oldest, |_, _| false)?;
    }
    Ok(())
}
