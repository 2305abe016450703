//! The contributions of newcomers in a round of few nodes.

use evenhand_fairness::Contributions;
use evenhand_protocol::message::Why;

use crate::collected::CollectedRound;
use crate::evaluation::CreditedContributions;
use crate::index::NodeIndex;
use crate::roster::Roster;

/// φ of the newcomers in a round of few, on the scale of the standings.
///
/// Shapley values depend on how many share the value: nodes with standings are in the round as
/// well, so the factor that brings their contributions to their standings brings the newcomers' there.
/// Without such a yardstick nothing is measured in this round. Where the yardstick comes out at nothing or
/// less, the newcomers have outweighed it: those that gained by that are credited nothing, of the others nothing is known.
pub(crate) fn credit_newcomers(
    round: &CollectedRound,
    contributions: &Contributions,
    roster: &Roster,
) -> CreditedContributions {
    let (mut shown, mut known, mut settled) = (0.0, 0.0, false);
    for (arrival, value) in round.arrivals.iter().zip(&contributions.values) {
        let standing = roster.member(arrival.node).standing();
        if !standing.is_entering() {
            settled = true;
            shown += value;
            known += standing.value();
        }
    }
    let asked = round.draw.asked().iter().filter(|asked| asked.why == Why::Newcomer);
    let newcomers = asked.map(|asked| asked.node);
    let scale = known / shown;
    if !(shown > 0.0 && scale.is_finite()) {
        let gained = |node: &NodeIndex| {
            let mut arrivals = round.arrivals.iter().zip(&contributions.values);
            arrivals.any(|(arrival, value)| arrival.node == *node && *value > 0.0)
        };
        return CreditedContributions::zero(newcomers.filter(|node| settled && gained(node)));
    }
    let mut credited = CreditedContributions::zero(newcomers);
    credited.credit_listed(round, contributions, scale);
    credited
}
