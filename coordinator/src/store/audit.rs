//! Everything that was decided, decided again.

use std::fmt::Display;
use std::sync::Arc;

use evenhand_protocol::identity::Digest;

use super::log::missing;
use super::{Store, StoreError, key, restored};
use evenhand_federation::{ClosedRound, Federation, ReplayDifference, Weights};

/// What an audit found.
#[derive(Debug, Clone, PartialEq)]
pub struct Audit {
    /// Rounds that were recomputed from their updates and agree in every figure.
    pub recomputed: u32,
    /// Rounds whose updates are no longer kept, or no state to begin from: only that each follows on the one before was
    /// checked.
    pub followed: u32,
    /// The first thing that does not agree, if anything does not.
    pub difference: Option<ReplayDifference>,
}

impl Store {
    /// Recomputes every round whose updates are kept and holds it against the log, up to the first difference;
    /// then the latest state against what the rounds led to.
    pub fn audit(&self) -> Result<Audit, StoreError> {
        let log = self.log()?;
        let onnx = self.onnx()?.ok_or_else(|| self.absent())?;
        let from = |bytes: Vec<u8>| restored(self.saved(&bytes)?, Arc::clone(&onnx));
        // What the rounds so far have led to; unknown after one that could not be recomputed.
        let mut computed = Some(from(self.value(key::FOUNDED)?.ok_or_else(|| self.absent())?)?);
        let mut audit = Audit { recomputed: 0, followed: 0, difference: None };
        let mut before: Option<ClosedRound> = None;
        let mut kept = false;
        for record in log.records()? {
            let record = record?;
            audit.difference = follows(before.as_ref(), &record);
            if audit.difference.is_some() {
                return Ok(audit);
            }
            let updates = log.updates(record.round)?;
            if kept && updates.is_none() {
                return Err(missing(record.round, "updates"));
            }
            kept = updates.is_some();
            computed = match (computed, updates) {
                (Some(federation), Some(updates)) => {
                    let federation = federation.governed_by(log.rules(record.round)?);
                    match federation.replay(&record, updates, None) {
                        Ok(next) => {
                            audit.recomputed += 1;
                            Some(next)
                        }
                        Err(difference) => {
                            audit.difference = Some(difference);
                            return Ok(audit);
                        }
                    }
                }
                _ => {
                    audit.followed += 1;
                    log.anchor(record.round)?.map(from).transpose()?
                }
            };
            before = Some(record);
        }
        let latest = self.federation()?;
        audit.difference = match (&computed, &before) {
            (Some(computed), _) => same_state(computed, &latest),
            (None, Some(last)) => same_model(last.weights_after, &latest),
            (None, None) => None,
        };
        Ok(audit)
    }
}

/// Whether a round begins where the one before it ended.
fn follows(before: Option<&ClosedRound>, record: &ClosedRound) -> Option<ReplayDifference> {
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

/// Whether the kept model is this one.
fn same_model(computed: Digest, kept: &Federation) -> Option<ReplayDifference> {
    let found = kept.weights().digest();
    (found != computed).then(|| untrue(kept, "the model in the state", found, computed))
}

/// Whether the kept state is what the rounds led to.
fn same_state(computed: &Federation, kept: &Federation) -> Option<ReplayDifference> {
    let model = same_model(computed.weights().digest(), kept);
    if model.is_some() {
        return model;
    }
    if computed.course() != kept.course() {
        return Some(untrue(kept, "the course in the state", "another", "what the updates led to"));
    }
    // The kept state may have let more nodes in, for the round that is open.
    for (column, (follows, found)) in computed.members().iter().zip(kept.members()).enumerate() {
        let named = |what: &str| format!("{what} of {} in the state", found.id());
        let own = [computed, kept].map(|federation| federation.own().get(column).map(Weights::digest));
        if own[0].is_some() && own[0] != own[1] {
            let word = |digest: Option<Digest>| digest.map_or("none".into(), |digest| digest.to_string());
            return Some(untrue(kept, &named("the model"), word(own[1]), word(own[0])));
        }
        let standings = [follows, found].map(|member| (member.id(), member.standing().value()));
        if standings[0] != standings[1] {
            return Some(untrue(kept, &named("the standing"), standings[1].1, standings[0].1));
        }
    }
    None
}

fn untrue(kept: &Federation, what: &str, recorded: impl Display, computed: impl Display) -> ReplayDifference {
    let (recorded, computed) = (recorded.to_string(), computed.to_string());
    ReplayDifference { round: kept.round(), what: what.into(), recorded, computed }
}
