//! The federation on disk: it resumes, and its decisions can be recomputed.
#![allow(clippy::unwrap_used)]

mod audit;
mod file;
mod run;

use evenhand_coordinator::store::Store;
use evenhand_protocol::message::Phase;
use tempfile::TempDir;

use self::run::{StoreHarness, rules};

#[test]
fn a_store_reopened_after_every_round_ends_as_one_that_was_not() {
    let (undisturbed, reopened) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let mut harness = StoreHarness::start(undisturbed.path(), &rules(), 0);
    harness.enrol(&["a", "b", "c", "d"]);
    harness.play(u32::MAX);
    drop(harness);

    StoreHarness::start(reopened.path(), &rules(), 0).enrol(&["a", "b", "c", "d"]);
    for rounds in 1..=30 {
        StoreHarness::start(reopened.path(), &rules(), 0).play(rounds);
    }
    let (undisturbed, reopened) =
        (Store::open(undisturbed.path()).unwrap(), Store::open(reopened.path()).unwrap());
    let (undisturbed, reopened) = (undisturbed.federation().unwrap(), reopened.federation().unwrap());
    assert_eq!(reopened.phase(), Phase::Finished);
    assert_eq!(reopened.round(), 30);
    assert_eq!(reopened.weights(), undisturbed.weights());
    assert_eq!(reopened.members(), undisturbed.members());
}

#[test]
fn the_bytes_written_for_a_round_do_not_grow_with_the_rounds() {
    let folder = TempDir::new().unwrap();
    let mut rules = rules();
    rules.federation.rounds = 300;
    rules.exploring.rounds_max = 300;
    rules.exploring.alpha = 0.999_999;
    let mut harness = StoreHarness::start(folder.path(), &rules, 10);
    harness.enrol(&["a", "b", "c", "d", "e"]);
    let size = |harness: &StoreHarness| harness.world.federation().save().without_history().to_bytes().len();
    harness.play(50);
    let early = size(&harness);
    harness.play(250);
    assert_eq!(harness.world.phase(), Phase::Exploring, "the longest possible history");
    // Rounds are numbered, at two bytes each; their contributions would be forty.
    assert!(size(&harness) - early < 3 * 200, "{} after {early}", size(&harness));
}
