//! Recipients of the weights and the graph.

use evenhand_federation::Input;
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::{Answer, Phase};

use evenhand_testkit::federation::scripted::{ScriptedFederation, birth, node, small_config};

#[test]
fn a_node_that_holds_the_weights_is_not_sent_them_again() {
    let initial = Digest::of_weights(&[0.0]);
    let mut world = ScriptedFederation::new(small_config(2), 1);
    world.comes_online("a", 1);
    world.step(Input::Status { node: node("a"), status: birth(2, Some(initial)) });
    world.comes_online("b", 1);
    assert!(world.tasks[0].1.weights().is_none() && world.tasks[1].1.weights().is_some());
    // A node that lost them after all, and was drawn, gets them.
    world.answers("a", Answer::NeedWeights { round: 1 });
    assert!(world.tasks[2].1.weights().is_some());
    // Nothing moved: both hold θ still.
    world.updates("a", 10, &[0.0]);
    world.updates("b", 10, &[0.0]);
    assert!(world.tasks[3..].iter().all(|(_, task)| task.weights().is_none()));
    // A restarted node has forgotten them.
    world.comes_online("b", 2);
    assert!(world.tasks.last().unwrap().1.weights().is_some());
}

#[test]
fn who_was_not_drawn_does_not_get_the_weights_by_asking() {
    let mut rules = small_config(3);
    rules.exploring.rounds_max = 1;
    let mut world = ScriptedFederation::with(rules, 1, &["a", "b", "c"]);
    for name in ["a", "b", "c"] {
        world.updates(name, 10, &[1.0]);
    }
    assert_eq!(world.phase(), Phase::Exploiting);
    let drawn = world.asked(2)[0].to_owned();
    let tasks = world.tasks.len();
    for name in ["a", "b", "c"].into_iter().filter(|name| *name != drawn) {
        for round in [1, 2, 3] {
            world.answers(name, Answer::NeedWeights { round });
        }
        world.comes_online(name, 2);
    }
    world.step(Input::Answer { node: node("stranger"), answer: Answer::NeedWeights { round: 2 } });
    assert_eq!(world.tasks.len(), tasks);
    assert_eq!(world.refusals.len(), 2 * 2 + 1, "late or not drawn, each told once; and the stranger");
    world.answers(&drawn, Answer::NeedWeights { round: 2 });
    assert_eq!(world.tasks.len(), tasks + 1);
}

#[test]
fn the_graph_is_no_secret_to_those_who_may_join() {
    let mut world = ScriptedFederation::with(small_config(2), 1, &["a"]);
    let need = Answer::NeedGraph(Digest::of(b"graph"));
    world.answers("a", need.clone());
    world.answers("stranger", need);
    assert_eq!(world.graphs, [node("a")]);
}
