//! The federation on disk: it goes on where it was left, and what it decided can be recomputed.
#![allow(clippy::unwrap_used)]

mod audit;
mod file;
mod run;
#[allow(dead_code)]
#[path = "../../federation/tests/federation/world.rs"]
mod world;

use evenhand_coordinator::store::Store;
use evenhand_protocol::message::Phase;
use tempfile::TempDir;

use self::run::{Kept, rules};

#[test]
fn reopened_after_every_round_it_ends_as_if_it_had_never_been_closed() {
    let (calm, torn) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let mut kept = Kept::start(calm.path(), &rules(), 0);
    kept.enrol(&["a", "b", "c", "d"]);
    kept.play(u32::MAX);
    drop(kept);

    Kept::start(torn.path(), &rules(), 0).enrol(&["a", "b", "c", "d"]);
    for rounds in 1..=30 {
        Kept::start(torn.path(), &rules(), 0).play(rounds);
    }
    let (calm, torn) = (Store::open(calm.path()).unwrap(), Store::open(torn.path()).unwrap());
    let (calm, torn) = (calm.federation().unwrap(), torn.federation().unwrap());
    assert_eq!(torn.phase(), Phase::Finished);
    assert_eq!(torn.round(), 30);
    assert_eq!(torn.weights(), calm.weights());
    assert_eq!(torn.members(), calm.members());
}

#[test]
fn what_is_written_for_a_round_does_not_grow_with_the_rounds() {
    let folder = TempDir::new().unwrap();
    let mut rules = rules();
    rules.federation.rounds = 300;
    rules.exploring.rounds_max = 300;
    rules.exploring.strictness = 0.999_999;
    let mut kept = Kept::start(folder.path(), &rules, 10);
    kept.enrol(&["a", "b", "c", "d", "e"]);
    let size = |kept: &Kept| kept.world.federation().save().without_history().to_bytes().len();
    kept.play(50);
    let early = size(&kept);
    kept.play(250);
    assert_eq!(kept.world.phase(), Phase::Exploring, "the longest history there can be");
    // Rounds are numbered, at two bytes each; their contributions would be forty.
    assert!(size(&kept) - early < 3 * 200, "{} after {early}", size(&kept));
}
