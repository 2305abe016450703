//! Everything that was decided, decided again.

use super::{Store, StoreError, key, restored};
use crate::federation::{Difference, Federation, RoundRecord};

/// What an audit found.
#[derive(Debug, Clone, PartialEq)]
pub struct Audit {
    /// Rounds that were recomputed from their updates and agree in every figure.
    pub recomputed: u32,
    /// Earlier rounds, whose updates are no longer kept: only that each follows on the one before was checked.
    pub followed: u32,
    /// The first thing that does not agree, if anything does not.
    pub difference: Option<Difference>,
}

impl Store {
    /// Recomputes every round whose updates are kept and holds it against the log, up to the first difference;
    /// then the latest state against what the rounds led to.
    pub fn audit(&self) -> Result<Audit, StoreError> {
        let log = self.log()?;
        let onnx = self.onnx()?.ok_or_else(|| self.absent())?;
        let (anchored, bytes) = match log.anchor()? {
            Some((round, bytes)) => (round, bytes),
            None => (0, self.value(key::FOUNDED)?.ok_or_else(|| self.absent())?),
        };
        let mut federation = restored(self.saved(&bytes)?, onnx)?;
        let mut audit = Audit { recomputed: 0, followed: 0, difference: None };
        let mut before: Option<RoundRecord> = None;
        for record in log.records()? {
            let record = record?;
            audit.difference = follows(before.as_ref(), &record);
            if audit.difference.is_some() {
                return Ok(audit);
            }
            if record.round <= anchored {
                audit.followed += 1;
            } else {
                let updates = log.updates(record.round)?.unwrap_or_default();
                federation = federation.governed_by(log.rules(record.round)?);
                federation = match federation.replay(&record, updates, None) {
                    Ok(next) => next,
                    Err(difference) => {
                        audit.difference = Some(difference);
                        return Ok(audit);
                    }
                };
                audit.recomputed += 1;
            }
            before = Some(record);
        }
        audit.difference = same_model(&federation, &self.federation()?);
        Ok(audit)
    }
}

/// Whether a round begins where the one before it ended.
fn follows(before: Option<&RoundRecord>, record: &RoundRecord) -> Option<Difference> {
    let number = before.map_or(1, |before| before.round + 1);
    if record.round != number {
        return Some(Difference {
            round: number,
            what: "its record".into(),
            recorded: "missing".into(),
            computed: "there".into(),
        });
    }
    let after = before?.weights_after;
    (record.weights_before != after).then(|| Difference {
        round: record.round,
        what: "the model before".into(),
        recorded: record.weights_before.to_string(),
        computed: after.to_string(),
    })
}

/// Whether the kept state is what the rounds led to.
fn same_model(computed: &Federation, kept: &Federation) -> Option<Difference> {
    let standings = |federation: &Federation| -> Vec<(String, f64)> {
        let members = federation.members().iter();
        members.map(|member| (member.id().to_string(), member.standing().value())).collect()
    };
    let differs = |what: &str, recorded: String, computed: String| {
        Some(Difference { round: kept.round(), what: what.into(), recorded, computed })
    };
    let (kept_model, model) = (kept.weights().digest(), computed.weights().digest());
    if kept_model != model {
        return differs("the model in the state", kept_model.to_string(), model.to_string());
    }
    let known: Vec<(String, f64)> = standings(kept).into_iter().take(computed.members().len()).collect();
    let follow = standings(computed);
    let wrong = known.iter().zip(&follow).find(|(kept, computed)| kept != computed);
    wrong.and_then(|((node, kept), (_, computed))| {
        differs(&format!("the standing of {node} in the state"), kept.to_string(), computed.to_string())
    })
}
