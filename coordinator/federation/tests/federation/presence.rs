//! Presence of nodes after a restart, a change of the token, or a clock set back.

use evenhand_federation::{Command, CommandRejection, FederationConfig, Input, NodeResponse, Tick};
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::{Answer, Refusal, Why};

use evenhand_testkit::federation::scripted::{
    DEADLINE_MS, ScriptedFederation, birth, birth_with_token, node, small_config, update,
};

fn exploring(nodes: u32) -> FederationConfig {
    let mut rules = small_config(nodes);
    rules.exploring.window = 50;
    rules
}

fn with_token(rules: &FederationConfig, token: &str) -> FederationConfig {
    let mut rules = rules.clone();
    rules.admission.token_sha256 = Digest::of(token.as_bytes()).to_string();
    rules
}

fn shows(world: &mut ScriptedFederation, name: &str, token: &str) {
    world.step(Input::Status { node: node(name), status: birth_with_token(Some(token)) });
}

#[test]
fn under_another_token_a_silent_node_gets_no_further_model() {
    let before = with_token(&exploring(2), "old");
    let mut world = ScriptedFederation::new(before.clone(), 1);
    shows(&mut world, "a", "old");
    shows(&mut world, "x", "old");
    assert_eq!(world.asked(1), ["a", "x"]);
    world.tasks.clear();
    let after = with_token(&before, "new");
    world.restart(after.clone());
    // Killed once more while the round is open: it is not forgotten.
    world.saved = Some(world.federation().save());
    world.crash();
    world.step(Input::LinkRestored);
    world.answers("x", Answer::NeedWeights { round: 1 });
    world.answers("x", Answer::Update(update(1, 10, &[1.0])));
    assert!(world.tasks.is_empty());
    assert_eq!(world.refusals, [(node("x"), Refusal::Unknown)]);
    shows(&mut world, "a", "new");
    assert_eq!(world.asked(1), ["a"], "its place was kept");
    world.updates("a", 10, &[1.0]);
    world.wait();
    assert_eq!(world.last().round.nodes[1].response, NodeResponse::Missed);
    for _ in 0..5 {
        world.updates("a", 10, &[1.0]);
    }
    assert!(world.tasks.iter().all(|(node, _)| node.as_str() == "a"));
    assert_eq!(world.last().round.nodes[1].why, Why::Absent);
    shows(&mut world, "x", "new");
    world.updates("a", 10, &[1.0]);
    let round = world.federation().round();
    assert_eq!(world.asked(round), ["a", "x"]);
    // Without a change everybody is where it was.
    world.tasks.clear();
    world.restart(after.clone());
    assert_eq!(world.asked(round), ["a", "x"]);
    // Nor is anybody asked to prove itself where no token is wanted any more.
    world.tasks.clear();
    world.restart(exploring(2));
    assert_eq!(world.asked(round), ["a", "x"]);
}

#[test]
fn under_another_token_everybody_has_a_rounds_time_to_come_back() {
    let mut rules = exploring(2);
    rules.federation.round_interval_ms = DEADLINE_MS / 2;
    let mut world = ScriptedFederation::with(rules.clone(), 1, &["a", "b"]);
    world.updates("a", 10, &[1.0]);
    world.updates("b", 10, &[1.0]);
    world.comes_online("c", 1);
    world.now = Tick(10 * u64::from(DEADLINE_MS));
    world.restart(with_token(&rules, "new"));
    let unknown = Some(CommandRejection::UnknownNode(node("c")));
    let known = world.federation().rejection(&Command::Remove(node("c")));
    assert_eq!(known, unknown, "nor does a node that waited for a place keep it");
    shows(&mut world, "a", "new");
    assert!(world.asked(2).is_empty());
    shows(&mut world, "b", "new");
    world.wait();
    assert_eq!(world.now, Tick(11 * u64::from(DEADLINE_MS)));
    assert_eq!(world.asked(2), ["a", "b"]);
}

#[test]
fn a_birth_counts_though_the_clock_was_set_back() {
    let mut world = ScriptedFederation::new(exploring(2), 1);
    // In the lobby as well.
    world.comes_online("a", 900);
    world.comes_online("a", 7);
    world.goes_offline("a", 7);
    world.comes_online("a", 900);
    world.comes_online("b", 1);
    assert_eq!(world.asked(1), ["a", "b"]);
    world.goes_offline("a", 900);
    world.comes_online("a", 8);
    assert_eq!(world.asked(1), ["a", "b", "a"]);
    world.updates("a", 10, &[1.0]);
    // A repeated birth takes nothing away, and the next death is believed.
    world.comes_online("a", 3);
    world.updates("b", 10, &[1.0]);
    assert_eq!(world.last().round.arrived(), 2);
    world.goes_offline("a", 8);
    world.updates("b", 10, &[1.0]);
    assert_eq!(world.last().round.nodes[0].response, NodeResponse::Disconnected);
}

#[test]
fn who_left_while_nobody_could_say_so_is_away_after_three_rounds_without_a_word() {
    let rules = exploring(3);
    let mut world = ScriptedFederation::with(rules.clone(), 1, &["a", "b", "c"]);
    world.restart(rules);
    for round in 1..=3 {
        assert_eq!(world.asked(round).last(), Some(&"c"));
        world.updates("a", 10, &[1.0]);
        world.wait();
    }
    assert_eq!(world.asked(4), ["a"]);
    // The answer of one that is only slow brings it back.
    world.answers("b", Answer::Update(update(1, 10, &[1.0])));
    world.updates("a", 10, &[1.0]);
    assert_eq!(world.asked(5), ["a", "b"]);
    // From now on its silence is its own: the link would tell if it had gone.
    for _ in 0..5 {
        world.updates("a", 10, &[1.0]);
        world.wait();
    }
    assert_eq!(world.asked(10), ["a", "b"]);
    world.comes_online("c", 2);
    world.updates("a", 10, &[1.0]);
    world.updates("b", 10, &[1.0]);
    assert_eq!(world.asked(11), ["a", "b", "c"]);
}

#[test]
fn a_birth_that_the_broker_kept_does_not_show_that_a_node_is_still_there() {
    let rules = exploring(2);
    let mut world = ScriptedFederation::with(rules.clone(), 1, &["a", "b"]);
    world.restart(rules);
    for name in ["a", "b"] {
        world.step(Input::RetainedStatus { node: node(name), status: birth(1, None) });
    }
    for round in 1..=3 {
        assert_eq!(world.asked(round).last(), Some(&"b"));
        world.updates("a", 10, &[1.0]);
        world.wait();
    }
    assert_eq!(world.asked(4), ["a"], "a has answered since");
    // Kept from before, and yet the first word of a node that is there.
    world.step(Input::RetainedStatus { node: node("b"), status: birth(2, None) });
    world.updates("a", 10, &[1.0]);
    assert_eq!(world.asked(5), ["a", "b"]);
    world.answers("b", Answer::Update(update(5, 10, &[1.0])));
    for _ in 0..5 {
        world.updates("a", 10, &[1.0]);
        world.wait();
    }
    assert_eq!(world.asked(10), ["a", "b"], "it was received: its silence is its own");
}

#[test]
fn who_left_while_waiting_to_be_enrolled_is_away_as_soon() {
    let mut rules = exploring(1);
    rules.federation.round_interval_ms = DEADLINE_MS;
    let mut world = ScriptedFederation::with(rules.clone(), 1, &["a"]);
    world.updates("a", 10, &[1.0]);
    world.comes_online("b", 1);
    world.restart(rules);
    world.wait();
    for round in 2..=4 {
        assert_eq!(world.asked(round), ["a", "b"]);
        world.updates("a", 10, &[1.0]);
        world.wait();
    }
    assert_eq!(world.asked(5), ["a"]);
}
