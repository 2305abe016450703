//! What follows from the records of rounds without their updates.

use evenhand_federation::{ClosedRound, NodeResponse, ReplayDifference};

use super::digests::ReceivedDigests;

/// Relative difference up to which two sums of the same numbers are the same.
const ROUNDING: f64 = 1e-12;

/// The first figure of a record that does not follow from it and from the record before: how often each node received the
/// model, when it last did, its staleness, and the loss; and whose updates there are digests of.
pub(super) fn record_difference(
    before: Option<&ClosedRound>,
    record: &ClosedRound,
    digests: Option<&ReceivedDigests>,
) -> Option<ReplayDifference> {
    let round = record.round;
    let differs = |what: String, recorded: String, computed: String| {
        (recorded != computed).then_some(ReplayDifference { round, what, recorded, computed })
    };
    for (index, row) in record.nodes.iter().enumerate() {
        let earlier = before.and_then(|before| before.nodes.get(index));
        let (drawn, last_drawn) = earlier.map_or((0, None), |row| (row.drawn, row.last_drawn));
        let (drawn, last_drawn) = match row.was_asked() {
            true => (drawn + 1, Some(round)),
            false => (drawn, last_drawn),
        };
        let named = |what: &str| format!("{what} of {}", row.node);
        let draws = differs(
            named("the number of draws"),
            format!("{:?}", (row.drawn, row.last_drawn)),
            format!("{:?}", (drawn, last_drawn)),
        );
        let staleness = round.saturating_sub(last_drawn.unwrap_or(0));
        let found = draws
            .or_else(|| differs(named("the staleness"), row.staleness.to_string(), staleness.to_string()));
        if found.is_some() {
            return found;
        }
    }
    let arrived = || {
        record.nodes.iter().enumerate().filter_map(|(index, row)| match row.response {
            NodeResponse::Arrived { weight, loss, .. } => Some((index, weight, f64::from(loss))),
            _ => None,
        })
    };
    let loss = (arrived().count() > 0).then(|| arrived().map(|(_, weight, loss)| weight * loss).sum::<f64>());
    let same_loss = match (record.loss, loss) {
        (Some(recorded), Some(computed)) => {
            (recorded - computed).abs() <= ROUNDING * recorded.abs().max(computed.abs())
                || recorded.to_bits() == computed.to_bits()
        }
        (recorded, computed) => recorded.is_none() && computed.is_none(),
    };
    if !same_loss {
        return differs("the loss".into(), format!("{:?}", record.loss), format!("{loss:?}"));
    }
    let digests = digests?;
    let mut of: Vec<usize> = digests.updates.iter().map(|(node, _)| node.get()).collect();
    of.sort_unstable();
    let arrived: Vec<usize> = arrived().map(|(index, ..)| index).collect();
    differs("the list of updates".into(), format!("{of:?}"), format!("{arrived:?}"))
}
