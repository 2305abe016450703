//! Events that happen to a federation under test.

use evenhand_federation::Command;
use evenhand_protocol::identity::NodeId;
use proptest::prelude::*;

use crate::federation::scripted::{DEADLINE_MS, node};

/// Values of an update.
pub(super) const DIM: usize = 3;
/// Nodes, with the one that is never admitted.
pub(super) const NODES: u8 = 6;

/// One event. Nodes are numbers; the last is never admitted.
#[derive(Debug, Clone)]
pub(super) enum Event {
    Born {
        node: u8,
        session: u8,
        holds: bool,
    },
    Died {
        node: u8,
        session: u8,
    },
    Update {
        node: u8,
        lag: i8,
        samples: u8,
        vector: SentVector,
    },
    EveryoneAnswers,
    Decline {
        node: u8,
        lag: i8,
    },
    NeedWeights {
        node: u8,
        lag: i8,
    },
    NeedGraph {
        node: u8,
    },
    Malformed {
        node: u8,
    },
    Tick {
        ms: u16,
    },
    Command(Command),
    LinkRestored,
    /// The process is killed and goes on from what was saved last.
    Crash,
    /// The process saves where it stands, in the middle of everything, and goes on from that.
    SaveAndRestore,
}

/// The vector of an update.
#[derive(Debug, Clone)]
pub(super) enum SentVector {
    Good([i8; DIM]),
    Short,
    Nan,
    Huge,
}

/// Any event, the usual ones more often.
pub(super) fn event() -> impl Strategy<Value = Event> {
    let who = 0..NODES;
    let lag = prop_oneof![6 => Just(0i8), 1 => -2..2i8];
    let session = 0..4u8;
    let vector = prop_oneof![
        8 => any::<[i8; DIM]>().prop_map(SentVector::Good),
        1 => Just(SentVector::Short),
        1 => Just(SentVector::Nan),
        1 => Just(SentVector::Huge),
    ];
    let command = prop_oneof![
        2 => Just(Command::Begin),
        2 => Just(Command::Pause),
        4 => Just(Command::Resume),
        3 => Just(Command::Explore),
        1 => (0..NODES).prop_map(|n| Command::Remove(name(n))),
    ];
    prop_oneof![
        6 => (who.clone(), session.clone(), any::<bool>())
            .prop_map(|(node, session, holds)| Event::Born { node, session, holds }),
        4 => (who.clone(), session).prop_map(|(node, session)| Event::Died { node, session }),
        20 => (who.clone(), lag.clone(), 0..12u8, vector)
            .prop_map(|(node, lag, samples, vector)| Event::Update { node, lag, samples, vector }),
        8 => Just(Event::EveryoneAnswers),
        2 => (who.clone(), lag.clone()).prop_map(|(node, lag)| Event::Decline { node, lag }),
        3 => (who.clone(), lag).prop_map(|(node, lag)| Event::NeedWeights { node, lag }),
        1 => who.clone().prop_map(|node| Event::NeedGraph { node }),
        1 => who.prop_map(|node| Event::Malformed { node }),
        5 => (0..2 * DEADLINE_MS as u16).prop_map(|ms| Event::Tick { ms }),
        2 => command.prop_map(Event::Command),
        1 => Just(Event::LinkRestored),
        1 => Just(Event::Crash),
        1 => Just(Event::SaveAndRestore),
    ]
}

pub(super) fn name(number: u8) -> NodeId {
    node(&format!("n{number}"))
}
