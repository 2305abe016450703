//! The audit agrees with an untouched log, and names differences.

use std::ops::RangeInclusive;
use std::path::Path;

use evenhand_coordinator::store::digests::ReceivedDigests;
use evenhand_coordinator::store::{FILE, Store, StoreError};
use evenhand_fairness::{Utility, UtilityState};
use evenhand_federation::{ClosedRound, FederationConfig, ReceivedRound, Tick};
use evenhand_protocol::codec::EncodedUpdate;
use evenhand_protocol::identity::Digest;
use redb::{Database, ReadableTable, TableDefinition};
use tempfile::TempDir;

use super::run::{StoreHarness, rules};
use evenhand_testkit::federation::scripted::ScriptedFederation;

const ROUNDS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("rounds");
const UPDATES: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("updates");
const FEDERATION: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("federation");

fn history(keep_rounds: u32) -> TempDir {
    let folder = TempDir::new().unwrap();
    let mut harness = StoreHarness::start(folder.path(), &rules(), keep_rounds);
    harness.enrol(&["a", "b", "c", "d"]);
    harness.play(u32::MAX);
    folder
}

/// Changes one value in the file; returns the value before.
fn tamper(
    folder: &Path,
    table: TableDefinition<'_, u32, &'static [u8]>,
    round: u32,
    change: impl FnOnce(&mut Vec<u8>),
) -> Vec<u8> {
    let database = Database::open(folder.join(FILE)).unwrap();
    let transaction = database.begin_write().unwrap();
    let mut rows = transaction.open_table(table).unwrap();
    let before = rows.get(round).unwrap().unwrap().value().to_vec();
    let mut after = before.clone();
    change(&mut after);
    rows.insert(round, after.as_slice()).unwrap();
    drop(rows);
    transaction.commit().unwrap();
    before
}

fn without_checksum(bytes: &[u8]) -> &[u8] {
    bytes.split_last_chunk::<32>().unwrap().0
}

/// Changes a record, with its checksum.
fn tamper_record(folder: &Path, round: u32, change: impl FnOnce(&mut ClosedRound)) -> Vec<u8> {
    tamper(folder, ROUNDS, round, |bytes| {
        let mut record = postcard::from_bytes(without_checksum(bytes)).unwrap();
        change(&mut record);
        *bytes = postcard::to_allocvec(&record).unwrap();
        let digest = Digest::of(bytes);
        bytes.extend_from_slice(&digest.0);
    })
}

/// The number of recomputed rounds, or the difference that the audit names.
fn audited(folder: &Path) -> Result<u32, String> {
    let audit = Store::open(folder).unwrap().audit().map_err(|error| error.to_string())?;
    match audit.difference {
        None => Ok(audit.recomputed),
        Some(difference) => Err(difference.to_string()),
    }
}

#[test]
fn every_round_of_an_untouched_log_agrees() {
    let folder = history(0);
    assert_eq!(audited(folder.path()), Ok(30));
}

#[test]
fn each_difference_is_named_with_its_round() {
    let folder = history(0);
    let path = folder.path();
    let restore = |table, round, bytes: Vec<u8>| {
        tamper(path, table, round, |now| *now = bytes);
    };
    let found = |expected: &str| {
        let named = audited(path).unwrap_err();
        assert!(named.starts_with(expected), "{named} instead of {expected}");
    };

    let before = tamper_record(path, 3, |record| {
        let contribution = &mut record.nodes[1].contribution;
        *contribution = contribution.map(f64::next_up);
    });
    found("round 3: the contribution of b");
    restore(ROUNDS, 3, before);

    // A draw that fell on another node.
    let before = tamper_record(path, 10, |record| {
        let drawn = record.nodes.iter().position(|node| node.was_asked()).unwrap();
        let other = record.nodes.iter().position(|node| !node.was_asked()).unwrap();
        let (a, b) = (record.nodes[drawn].why, record.nodes[other].why);
        (record.nodes[drawn].why, record.nodes[other].why) = (b, a);
    });
    found("round 10: the draw");
    restore(ROUNDS, 10, before);

    // One bit of one number of one update.
    let before = tamper(path, UPDATES, 7, |bytes| {
        let mut received: ReceivedRound = postcard::from_bytes(bytes).unwrap();
        let plain = received.updates.iter_mut().find_map(|(_, update)| match &mut update.vector {
            EncodedUpdate::F32(values) => Some(values),
            _ => None,
        });
        let value = &mut plain.unwrap()[5];
        *value = f32::from_bits(value.to_bits() ^ 1);
        *bytes = postcard::to_allocvec(&received).unwrap();
    });
    found("round 7: ");
    restore(UPDATES, 7, before);

    let before = tamper_record(path, 8, |record| {
        record.verdict.as_mut().unwrap().p_value = Some(0.25);
    });
    found("round 8: the stop rule's verdict");
    restore(ROUNDS, 8, before);

    assert_eq!(audited(path), Ok(30), "everything is restored");
}

/// A record without times and refusals, which cannot be recomputed.
fn recomputable(bytes: &[u8]) -> Option<ClosedRound> {
    let mut record: ClosedRound = postcard::from_bytes(without_checksum(bytes)).ok()?;
    (record.opened, record.closed) = (Tick(0), Tick(0));
    record.unknown_refusals.clear();
    record.nodes.iter_mut().for_each(|node| node.refusals.clear());
    Some(record)
}

#[test]
fn every_flipped_bit_is_detected() {
    let folder = history(0);
    let path = folder.path();
    for (table, round, bits) in [(ROUNDS, 11, 1usize), (UPDATES, 11, 7)] {
        let original = tamper(path, table, round, |_| {});
        for place in 0..original.len() {
            let mut flipped = original.clone();
            flipped[place] ^= 1 << (place * bits % 8);
            tamper(path, table, round, |now| *now = flipped.clone());
            if audited(path).is_ok() {
                assert_eq!(table.to_string(), ROUNDS.to_string(), "byte {place} of the updates");
                assert_eq!(recomputable(&flipped), recomputable(&original), "byte {place} of the record");
            }
        }
        tamper(path, table, round, |now| *now = original);
    }
    assert_eq!(audited(path), Ok(30));
}

#[test]
fn missing_and_malformed_rounds_are_named() {
    let folder = history(0);
    tamper(folder.path(), ROUNDS, 9, |bytes| bytes.truncate(20));
    let damaged = Store::open(folder.path()).unwrap().audit().unwrap_err();
    assert!(
        matches!(&damaged, StoreError::Damaged(what) if what.starts_with("round 9: its record")),
        "{damaged}"
    );

    let folder = history(0);
    let database = Database::open(folder.path().join(FILE)).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(ROUNDS).unwrap().remove(20).unwrap();
    transaction.commit().unwrap();
    drop(database);
    assert!(audited(folder.path()).unwrap_err().starts_with("round 20: its record was missing"));
}

#[test]
fn later_rounds_are_recomputed_without_old_updates() {
    let folder = history(8);
    let store = Store::open(folder.path()).unwrap();
    let log = store.log().unwrap();
    assert!(log.received(16).unwrap().is_none());
    assert!(log.received(17).unwrap().is_some());
    assert_eq!(log.records().unwrap().count(), 30, "records are not deleted");
    let audit = store.audit().unwrap();
    assert_eq!((audit.chained, audit.recomputed, audit.difference), (16, 14, None));
    drop(log);
    drop(store);
    tamper_record(folder.path(), 21, |record| record.nodes[0].standing = 0.0);
    assert!(audited(folder.path()).unwrap_err().starts_with("round 21: the standing of a"));
}

#[test]
fn without_updates_the_audit_checks_what_follows_from_records() {
    let folder = TempDir::new().unwrap();
    let mut harness = StoreHarness::start_without_updates(folder.path(), &rules());
    harness.enrol(&["a", "b", "c", "d"]);
    harness.play(u32::MAX);
    let arrived: Vec<usize> = harness.world.closed.iter().map(|round| round.updates.len()).collect();
    let received = harness.world.closed[6].received();
    drop(harness);
    let store = Store::open(folder.path()).unwrap();
    let audit = store.audit().unwrap();
    assert_eq!((audit.recomputed, audit.chained, audit.with_digests, audit.difference), (0, 30, 30, None));
    let log = store.log().unwrap();
    for round in 1..=30 {
        assert!(log.received(round).unwrap().is_none());
        assert_eq!(log.digests(round).unwrap().unwrap().updates.len(), arrived[round as usize - 1]);
    }
    // A node that has its update can show that it is the one that counted.
    assert_eq!(log.digests(7).unwrap(), Some(ReceivedDigests::of(&received)));
    let (node, update) = &received.updates[0];
    let digest = Digest::of(&postcard::to_allocvec(update).unwrap());
    assert_eq!(log.digests(7).unwrap().unwrap().updates[0], (*node, digest));
    drop((log, store));
    let found = |change: &dyn Fn(&mut ClosedRound), expected: &str| {
        let before = tamper_record(folder.path(), 9, change);
        let named = audited(folder.path()).unwrap_err();
        assert!(named.starts_with(expected), "{named} instead of {expected}");
        tamper(folder.path(), ROUNDS, 9, |bytes| *bytes = before);
    };
    found(&|record| record.nodes[0].drawn += 1, "round 9: the number of draws of a");
    found(&|record| record.nodes[1].staleness += 1, "round 9: the staleness of b");
    found(&|record| record.loss = record.loss.map(|loss| loss * 1.001), "round 9: the loss");
    found(&|record| record.weights_before = Digest([1; 32]), "round 9: the model before");
    assert_eq!(audited(folder.path()), Ok(0));
}

#[test]
fn updates_are_deleted_when_only_digests_are_wanted_and_kept_again_afterwards() {
    let folder = TempDir::new().unwrap();
    let mut harness = StoreHarness::start(folder.path(), &rules(), 4);
    harness.enrol(&["a", "b", "c", "d"]);
    harness.play(10);
    drop(harness);
    StoreHarness::start_without_updates(folder.path(), &rules()).play(15);
    let (store, recomputed) =
        (Store::open(folder.path()).unwrap(), |store: &Store| store.audit().unwrap().recomputed);
    assert!((1..=15).all(|round| store.log().unwrap().received(round).unwrap().is_none()));
    assert_eq!(recomputed(&store), 0);
    drop(store);
    StoreHarness::start(folder.path(), &rules(), 4).play(u32::MAX);
    let audit = Store::open(folder.path()).unwrap().audit().unwrap();
    assert_eq!(audit.difference, None);
    assert_eq!((audit.recomputed + audit.chained, audit.with_digests), (30, 5));
    assert!(audit.recomputed >= 4, "{audit:?}");
}

#[test]
fn rounds_after_an_amendment_are_recomputed_with_the_amended_rules() {
    let folder = TempDir::new().unwrap();
    let mut harness = StoreHarness::start(folder.path(), &rules(), 0);
    harness.enrol(&["a", "b", "c", "d"]);
    harness.play(9);
    drop(harness);
    let mut amended = rules();
    amended.admission.norm_max = 5.0;
    amended.federation.rounds = 20;
    StoreHarness::start(folder.path(), &amended, 0).play(u32::MAX);
    assert_eq!(audited(folder.path()), Ok(20));
}

/// Removes rounds from a table of the file.
fn delete(folder: &Path, table: TableDefinition<'_, u32, &'static [u8]>, rounds: RangeInclusive<u32>) {
    let database = Database::open(folder.join(FILE)).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(table).unwrap().retain_in(rounds, |_, _| false).unwrap();
    transaction.commit().unwrap();
}

#[test]
fn keep_rounds_can_change_between_runs() {
    for (before, after) in [(10, 4), (4, 10), (0, 3), (3, 0), (7, 5)] {
        let folder = TempDir::new().unwrap();
        let mut harness = StoreHarness::start(folder.path(), &rules(), before);
        harness.enrol(&["a", "b", "c", "d"]);
        harness.play(12);
        drop(harness);
        for rounds in 13..=30 {
            StoreHarness::start(folder.path(), &rules(), after).play(rounds);
            let store = Store::open(folder.path()).unwrap();
            let audit = store.audit().unwrap();
            assert_eq!(audit.difference, None, "{before}, then {after}, after round {rounds}");
            assert_eq!(audit.chained + audit.recomputed, rounds);
            let expected = before.min(after).min(rounds);
            assert!(audit.recomputed >= expected, "{} of {rounds} are recomputed", audit.recomputed);
        }
        if after > 0 {
            let log = Store::open(folder.path()).unwrap().log().unwrap();
            assert!(log.received(30 - 2 * after).unwrap().is_none(), "at most twice as many are stored");
        }
    }
}

#[test]
fn deleted_updates_are_no_difference_but_a_gap_is_damage() {
    let folder = history(8);
    delete(folder.path(), UPDATES, 17..=19);
    let audit = Store::open(folder.path()).unwrap().audit().unwrap();
    assert_eq!(
        (audit.chained, audit.recomputed, audit.difference),
        (24, 6, None),
        "it continues from round 24"
    );
    delete(folder.path(), UPDATES, 22..=22);
    let damaged = audited(folder.path()).unwrap_err();
    assert!(damaged.contains("round 22: its updates are missing"), "{damaged}");
}

/// A federation of nine rounds, whose state is then changed by one bit where it holds these numbers. The checksum is
/// corrected: it protects against accidents, not against the owner.
fn altered_state(rules: &FederationConfig, numbers: impl FnOnce(&ScriptedFederation) -> Vec<f32>) -> TempDir {
    let folder = TempDir::new().unwrap();
    let mut harness = StoreHarness::start(folder.path(), rules, 0);
    harness.enrol(&["a", "b", "c", "d"]);
    harness.play(9);
    let numbers: Vec<u8> = numbers(&harness.world).iter().flat_map(|value| value.to_le_bytes()).collect();
    drop(harness);
    assert_eq!(audited(folder.path()), Ok(9));
    let database = Database::open(folder.path().join(FILE)).unwrap();
    let transaction = database.begin_write().unwrap();
    let mut table = transaction.open_table(FEDERATION).unwrap();
    let mut state = table.get("latest").unwrap().unwrap().value().to_vec();
    state.truncate(state.len() - 32);
    let place = state.windows(numbers.len()).position(|part| part == numbers).unwrap();
    state[place] ^= 1;
    let digest = Digest::of(&state);
    state.extend_from_slice(&digest.0);
    table.insert("latest", state.as_slice()).unwrap();
    drop(table);
    transaction.commit().unwrap();
    folder
}

#[test]
fn an_altered_measurement_is_named() {
    let mut rules = rules();
    rules.contribution.utility = Utility::Direction;
    let folder = altered_state(&rules, |world| {
        let state = world.federation().measurement().state();
        let UtilityState::Direction(direction) = state else { panic!("{state:?}") };
        direction.values().to_vec()
    });
    let named = audited(folder.path()).unwrap_err();
    assert!(named.starts_with("round 10: the measurement in the state"), "{named}");
}
