//! The audit: every decision recomputed from the log.

use std::fmt::Display;
use std::sync::Arc;

use evenhand_protocol::identity::Digest;

use super::log::missing;
use super::record_check::record_difference;
use super::{Store, StoreError, key, restored};
use evenhand_federation::{ClosedRound, Federation, ReplayDifference};

/// The result of an audit.
#[derive(Debug, Clone, PartialEq)]
pub struct Audit {
    /// Rounds that were recomputed from their updates and agree in every figure.
    pub recomputed: u32,
    /// Rounds that could not be recomputed, for want of updates or of an earlier state: checked was that each continues the
    /// one before, and what follows from their records alone: who received the model how often and when, and the loss.
    pub chained: u32,
    /// Those of them of which there are digests of the updates.
    pub with_digests: u32,
    /// The first difference, if there is one.
    pub difference: Option<ReplayDifference>,
}

impl Store {
    /// Recomputes every round whose updates are stored and compares it with the log, up to the first difference; then
    /// compares the latest state with the result of the rounds.
    pub fn audit(&self) -> Result<Audit, StoreError> {
        let log = self.log()?;
        let onnx = self.onnx()?.ok_or_else(|| self.absent())?;
        let from = |bytes: Vec<u8>| restored(self.saved(&bytes)?, Arc::clone(&onnx));
        // The state after the rounds so far; unknown after one that could not be recomputed.
        let mut computed = Some(from(self.value(key::INITIAL)?.ok_or_else(|| self.absent())?)?);
        let mut audit = Audit { recomputed: 0, chained: 0, with_digests: 0, difference: None };
        let mut before: Option<ClosedRound> = None;
        let mut stored = false;
        for record in log.records()? {
            let record = record?;
            audit.difference = chain_difference(before.as_ref(), &record);
            if audit.difference.is_some() {
                return Ok(audit);
            }
            let updates = log.received(record.round)?;
            let digests = log.digests(record.round)?;
            if stored && updates.is_none() && digests.is_none() {
                return Err(missing(record.round, "updates"));
            }
            stored = updates.is_some();
            computed = match (computed, updates) {
                (Some(federation), Some(updates)) => {
                    let mut federation = federation.with_rules(log.rules(record.round)?);
                    match federation.replay(&record, updates) {
                        Ok(()) => {
                            audit.recomputed += 1;
                            Some(federation)
                        }
                        Err(difference) => {
                            audit.difference = Some(difference);
                            return Ok(audit);
                        }
                    }
                }
                _ => {
                    audit.difference = record_difference(before.as_ref(), &record, digests.as_ref());
                    if audit.difference.is_some() {
                        return Ok(audit);
                    }
                    audit.chained += 1;
                    audit.with_digests += u32::from(digests.is_some());
                    log.checkpoint(record.round)?.map(from).transpose()?
                }
            };
            before = Some(record);
        }
        let latest = self.federation()?;
        audit.difference = match (&computed, &before) {
            (Some(computed), _) => state_difference(computed, &latest),
            (None, Some(last)) => model_difference(last.weights_after, &latest),
            (None, None) => None,
        };
        Ok(audit)
    }
}

/// The difference between the end of a round and the begin of the next.
fn chain_difference(before: Option<&ClosedRound>, record: &ClosedRound) -> Option<ReplayDifference> {
    let number = before.map_or(1, |before| before.round + 1);
    if record.round != number {
        return Some(ReplayDifference {
            round: number,
            what: "its record".into(),
            recorded: "missing".into(),
            computed: "there".into(),
        });
    }
    let after = before?.weights_after;
    (record.weights_before != after).then(|| ReplayDifference {
        round: record.round,
        what: "the model before".into(),
        recorded: record.weights_before.to_string(),
        computed: after.to_string(),
    })
}

/// The difference between the computed and the stored model.
fn model_difference(computed: Digest, stored: &Federation) -> Option<ReplayDifference> {
    let found = stored.weights().digest();
    (found != computed).then(|| difference(stored, "the model in the state", found, computed))
}

/// The difference between the state after the recomputed rounds and the stored one.
fn state_difference(computed: &Federation, stored: &Federation) -> Option<ReplayDifference> {
    let model = model_difference(computed.weights().digest(), stored);
    if model.is_some() {
        return model;
    }
    if computed.measurement() != stored.measurement() {
        return Some(difference(
            stored,
            "the measurement in the state",
            "another",
            "what the updates led to",
        ));
    }
    // The stored state may have more members, for the open round.
    for (expected, found) in computed.members().iter().zip(stored.members()) {
        let named = |what: &str| format!("{what} of {} in the state", found.id());
        let standings = [expected, found].map(|member| (member.id(), member.standing().value()));
        if standings[0] != standings[1] {
            return Some(difference(stored, &named("the standing"), standings[1].1, standings[0].1));
        }
    }
    None
}

fn difference(
    stored: &Federation,
    what: &str,
    recorded: impl Display,
    computed: impl Display,
) -> ReplayDifference {
    let (recorded, computed) = (recorded.to_string(), computed.to_string());
    ReplayDifference { round: stored.round(), what: what.into(), recorded, computed }
}
