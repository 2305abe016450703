//! The words in which enumerations are shown.

use std::collections::BTreeMap;

use evenhand_protocol::message::{Phase, Refusal, Why};
use serde::Serializer;

use crate::federation::Fate;

/// `NotDrawn` becomes `not-drawn`.
fn kebab(name: &str) -> String {
    let mut word = String::with_capacity(name.len() + 2);
    for c in name.chars().take_while(|c| c.is_ascii_alphanumeric()) {
        if c.is_ascii_uppercase() && !word.is_empty() {
            word.push('-');
        }
        word.push(c.to_ascii_lowercase());
    }
    word
}

/// A phase.
pub fn phase_word(phase: Phase) -> String {
    kebab(&format!("{phase:?}"))
}

/// A reason to refuse.
pub fn refusal_word(refusal: Refusal) -> String {
    kebab(&format!("{refusal:?}"))
}

pub(super) fn why_word(why: Why) -> String {
    kebab(&format!("{why:?}"))
}

/// What became of a node in a round, and why if there is a reason.
pub(super) fn fate_word(fate: Fate) -> String {
    match fate {
        Fate::Arrived { .. } => "arrived".into(),
        Fate::Declined(reason) => format!("declined: {}", kebab(&format!("{reason:?}"))),
        Fate::Refused(refusal) => format!("refused: {}", refusal_word(refusal)),
        Fate::Died => "died".into(),
        Fate::Missed => "missed".into(),
        Fate::Idle => "idle".into(),
    }
}

pub(super) fn phase<S: Serializer>(phase: &Phase, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&phase_word(*phase))
}

pub(super) fn refusals<S: Serializer>(
    refusals: &BTreeMap<Refusal, u64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(refusals.iter().map(|(refusal, count)| (refusal_word(*refusal), count)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_protocol::message::Declined;

    #[test]
    fn words_are_those_of_the_enumerations() {
        assert_eq!(phase_word(Phase::Exploring), "exploring");
        assert_eq!(refusal_word(Refusal::NotFinite), "not-finite");
        assert_eq!(fate_word(Fate::Declined(Declined::NoData)), "declined: no-data");
        assert_eq!(why_word(Why::NotDrawn), "not-drawn");
    }
}
