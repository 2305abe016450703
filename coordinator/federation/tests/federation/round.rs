//! Answers that a round waits for, and the beginning of the next one.

use evenhand_federation::{NodeResponse, Tick};

use evenhand_testkit::federation::scripted::{DEADLINE_MS, ScriptedFederation, small_config};

#[test]
fn a_death_ends_the_wait_and_a_return_in_time_is_awaited_again() {
    let mut world = ScriptedFederation::with(small_config(2), 1, &["a", "b"]);
    world.goes_offline("b", 1);
    world.comes_online("b", 2);
    assert_eq!(world.asked(1), ["a", "b", "b"], "asked again in its new session");
    world.updates("a", 10, &[1.0]);
    assert!(world.closed.is_empty());
    world.goes_offline("b", 2);
    assert_eq!(world.last().round.nodes[1].response, NodeResponse::Disconnected);
}

#[test]
fn a_late_will_does_not_kill_a_newer_session() {
    let mut world = ScriptedFederation::with(small_config(2), 1, &["a", "b"]);
    world.comes_online("b", 7);
    world.goes_offline("b", 1);
    world.updates("a", 10, &[1.0]);
    assert!(world.closed.is_empty(), "b lives in session 7");
    world.updates("b", 10, &[1.0]);
    assert_eq!(world.last().round.arrived(), 2);
    // In the lobby as well.
    let mut world = ScriptedFederation::new(small_config(2), 1);
    world.comes_online("a", 3);
    world.goes_offline("a", 2);
    world.comes_online("b", 1);
    assert_eq!(world.asked(1), ["a", "b"]);
}

#[test]
fn a_round_without_updates_is_recorded_and_the_next_begins_after_its_deadline() {
    let mut world = ScriptedFederation::with(small_config(2), 1, &["a", "b"]);
    world.declines("a");
    world.declines("b");
    let closed = world.last();
    assert_eq!((closed.round.round, closed.round.arrived(), closed.round.loss), (1, 0, None));
    assert_eq!(closed.round.weights_before, closed.round.weights_after);
    assert_eq!(closed.round.nodes[0].contribution, None, "nothing was measured");
    assert!(world.asked(2).is_empty(), "nodes without data must not eat up the rounds");
    assert_eq!(world.federation().alarm(), Some(Tick(DEADLINE_MS.into())));
    world.wait();
    assert_eq!(world.asked(2), ["a", "b"]);
    world.wait();
    assert_eq!(
        (world.last().round.round, world.asked(3).len()),
        (2, 2),
        "at the deadline it goes on at once"
    );
}

#[test]
fn without_any_node_it_waits_and_goes_on_with_the_first_that_comes() {
    let mut world = ScriptedFederation::with(small_config(2), 1, &["a", "b"]);
    world.goes_offline("a", 1);
    world.goes_offline("b", 1);
    assert_eq!(world.last().round.round, 1);
    assert_eq!(world.federation().alarm(), None);
    world.now = Tick(10 * u64::from(DEADLINE_MS));
    world.comes_online("b", 2);
    assert_eq!(world.asked(2), ["b"]);
}

#[test]
fn rounds_keep_their_distance() {
    let mut rules = small_config(1);
    rules.federation.round_interval_ms = 700;
    let mut world = ScriptedFederation::with(rules, 1, &["a"]);
    world.now = Tick(20);
    world.updates("a", 1, &[1.0]);
    assert_eq!(world.federation().alarm(), Some(Tick(700)));
    world.wait();
    assert_eq!(world.asked(2), ["a"]);
}
