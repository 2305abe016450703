//! Enrolment: admission, manifest, beginning.

use evenhand_federation::{Command, Input};
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::{Birth, Life, Phase, Refusal, Status};

use evenhand_testkit::federation::scripted::{DEADLINE_MS, ScriptedFederation, node, small_config};

#[test]
fn it_begins_when_enough_nodes_are_there_and_asks_them_all() {
    let mut world = ScriptedFederation::with(small_config(3), 2, &["c", "a"]);
    assert_eq!((world.phase(), world.federation().round()), (Phase::Enrolling, 0));
    world.comes_online("b", 1);
    assert_eq!((world.phase(), world.federation().round()), (Phase::Exploring, 1));
    assert_eq!(world.asked(1), ["a", "b", "c"], "by name, whatever the order of arrival");
    let (_, task) = &world.tasks[0];
    assert_eq!(task.weights().unwrap()[..], [0.0, 1.0]);
    assert_eq!(task.to_train().deadline_ms, DEADLINE_MS);
}

#[test]
fn every_birth_is_answered_with_the_manifest_and_every_round_announced() {
    let world = ScriptedFederation::with(small_config(2), 2, &["a", "b"]);
    let sent: Vec<_> = world
        .manifests
        .iter()
        .map(|(to, manifest)| (to.as_ref().map(|to| to.as_str()), manifest.phase, manifest.round))
        .collect();
    assert_eq!(
        sent,
        [(Some("a"), Phase::Enrolling, 0), (Some("b"), Phase::Enrolling, 0), (None, Phase::Exploring, 1),]
    );
    assert_eq!(world.manifests[0].1.parameters, 2);
}

#[test]
fn the_operator_need_not_wait_for_more_nodes() {
    let mut world = ScriptedFederation::with(small_config(3), 2, &["a", "b"]);
    world.command(Command::Begin);
    assert_eq!(world.asked(1), ["a", "b"]);
}

#[test]
fn only_the_listed_who_know_the_token_may_enrol() {
    let mut rules = small_config(1);
    rules.federation.nodes_max = 2;
    rules.admission.nodes = vec![node("a"), node("b"), node("c")];
    rules.admission.token_sha256 = Digest::of(b"open sesame").to_string();
    let mut world = ScriptedFederation::new(rules, 1);
    let birth = |token: &str| Birth {
        graph: None,
        weights: None,
        token: Some(token.into()),
        software: String::new(),
    };
    for (name, token) in [("a", "open sesame"), ("b", "guess"), ("d", "open sesame"), ("b", "open sesame")] {
        let status = Status { session: 1, life: Life::Born(birth(token)) };
        world.step(Input::Status { node: node(name), status });
    }
    assert_eq!(world.refusals, [(node("b"), Refusal::Unknown), (node("d"), Refusal::Unknown)]);
    // The third of two is refused as well.
    let status = Status { session: 1, life: Life::Born(birth("open sesame")) };
    world.step(Input::Status { node: node("c"), status });
    assert_eq!(world.refusals[2..], [(node("c"), Refusal::Unknown)]);
}

#[test]
fn a_node_that_was_shut_out_makes_room_for_another() {
    let mut rules = small_config(2);
    rules.federation.nodes_max = 2;
    let mut world = ScriptedFederation::with(rules, 1, &["a", "b"]);
    world.comes_online("c", 1);
    assert_eq!(world.refusals, [(node("c"), Refusal::Unknown)]);
    world.goes_offline("b", 1);
    world.comes_online("c", 2);
    assert_eq!(world.refusals.len(), 2, "a node that is away keeps its place and its standing");
    world.command(Command::Remove(node("b")));
    world.comes_online("c", 3);
    assert_eq!(world.refusals.len(), 2);
    world.updates("a", 10, &[1.0]);
    assert_eq!(world.asked(2), ["a", "c"]);
}
