//! Names of enumerations in the API.

use std::collections::BTreeMap;

use evenhand_protocol::message::{Phase, Refusal};
use serde::Serializer;

use evenhand_federation::NodeResponse;

/// The name of a response, with its reason if there is one.
pub(super) fn response_name(response: NodeResponse) -> String {
    match response {
        NodeResponse::Arrived { .. } => "arrived".into(),
        NodeResponse::Declined(reason) => format!("declined: {}", reason.name()),
        NodeResponse::Refused(refusal) => format!("refused: {}", refusal.name()),
        NodeResponse::Disconnected => "disconnected".into(),
        NodeResponse::Missed => "missed".into(),
        NodeResponse::NotAsked => "not-asked".into(),
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
