//! The words in which enumerations are shown.

use std::collections::BTreeMap;

use evenhand_protocol::message::{Phase, Refusal};
use serde::Serializer;

use evenhand_federation::NodeResponse;

/// What became of a node in a round, and why if there is a reason.
pub(super) fn fate_word(fate: NodeResponse) -> String {
    match fate {
        NodeResponse::Arrived { .. } => "arrived".into(),
        NodeResponse::Declined(reason) => format!("declined: {}", reason.name()),
        NodeResponse::Refused(refusal) => format!("refused: {}", refusal.name()),
        NodeResponse::Disconnected => "died".into(),
        NodeResponse::Missed => "missed".into(),
        NodeResponse::NotAsked => "idle".into(),
    }
}

pub(super) fn phase<S: Serializer>(phase: &Phase, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(phase.name())
}

pub(super) fn refusals<S: Serializer>(
    refusals: &BTreeMap<Refusal, u64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(refusals.iter().map(|(refusal, count)| (refusal.name(), count)))
}
