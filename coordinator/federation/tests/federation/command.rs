//! Commands of the operator while a federation runs.

use evenhand_federation::{Command, CommandRejection, Input};
use evenhand_protocol::message::{Answer, Phase, Refusal};

use evenhand_testkit::federation::scripted::{
    ScriptedFederation, UniformDraws, close_to, node, small_config, update,
};

#[test]
fn a_pause_lets_the_round_end_and_opens_no_other() {
    let mut world = ScriptedFederation::with(small_config(1), 1, &["a"]);
    world.command(Command::Pause);
    assert_eq!(world.phase(), Phase::Paused);
    world.updates("a", 1, &[1.0]);
    assert_eq!(world.last().round.round, 1);
    assert!(world.asked(2).is_empty());
    assert_eq!(world.federation().alarm(), None);
    world.command(Command::Resume);
    assert_eq!((world.phase(), world.asked(2)), (Phase::Exploring, vec!["a"]));
}

#[test]
fn the_operator_can_have_contributions_measured_anew() {
    let mut rules = small_config(2);
    rules.exploring.rounds_max = 1;
    let mut world = ScriptedFederation::with(rules, 1, &["a", "b"]);
    world.updates("a", 10, &[3.0]);
    world.updates("b", 10, &[1.0]);
    assert_eq!(world.phase(), Phase::Exploiting);
    world.command(Command::Explore);
    assert_eq!(world.phase(), Phase::Exploiting, "the open round ends first");
    let drawn = world.asked(2)[0].to_owned();
    world.updates(&drawn, 10, &[1.0]);
    assert_eq!(world.phase(), Phase::Exploring);
    assert_eq!(world.asked(3), ["a", "b"]);
    assert!(close_to(world.standing("a"), 3.0), "the old standing holds until there is a new one");
    world.updates("a", 10, &[1.0]);
    world.updates("b", 10, &[3.0]);
    assert!(close_to(world.standing("a"), 1.0) && close_to(world.standing("b"), 3.0));
}

#[test]
fn a_node_that_is_away_while_others_are_measured_anew_keeps_its_old_standing() {
    let mut rules = small_config(2);
    rules.exploring.rounds_max = 1;
    let mut world = ScriptedFederation::with(rules, 1, &["a", "b"]);
    world.updates("a", 10, &[3.0]);
    world.updates("b", 10, &[1.0]);
    world.goes_offline("a", 1);
    world.command(Command::Explore);
    while world.phase() == Phase::Exploiting {
        match world.asked(world.federation().round()).contains(&"b") {
            true => world.updates("b", 10, &[1.0]),
            false => world.wait(),
        }
    }
    world.updates("b", 10, &[2.0]);
    assert!(close_to(world.standing("a"), 3.0));
    assert!(close_to(world.standing("b"), 4.0));
}

#[test]
fn a_removed_node_is_out_for_good() {
    let mut world = ScriptedFederation::with(small_config(2), 1, &["a", "b"]);
    world.updates("a", 10, &[1.0]);
    world.command(Command::Remove(node("b")));
    assert_eq!(world.last().round.round, 1, "nobody waits for it");
    assert_eq!(world.asked(2), ["a"]);
    world.comes_online("b", 2);
    world.answers("b", Answer::Update(update(2, 10, &[1.0])));
    assert_eq!(world.refusals, [(node("b"), Refusal::Unknown)]);
    world.updates("a", 10, &[1.0]);
    assert_eq!(world.asked(3), ["a"]);
    assert_eq!(world.last().round.nodes[1].sampling_probability, 0.0);
    assert_eq!(world.last().round.nodes[0].sampling_probability, 1.0);
}

#[test]
fn the_operator_can_end_it_with_what_was_reached() {
    let mut world = ScriptedFederation::with(small_config(2), 1, &["a", "b"]);
    world.updates("a", 10, &[1.0]);
    world.command(Command::Finish);
    assert_eq!(world.phase(), Phase::Finished);
    assert_eq!(world.federation().weights().values(), [0.0]);
    assert!(world.closed.is_empty());
}

#[test]
fn a_pause_does_not_hide_what_else_can_be_asked_for() {
    let mut world = ScriptedFederation::with(small_config(2), 1, &["a"]);
    world.command(Command::Pause);
    let rejection = |world: &ScriptedFederation, command| world.federation().rejection(&command);
    assert_eq!(rejection(&world, Command::Explore), Some(CommandRejection::Unsettled));
    assert_eq!(rejection(&world, Command::Begin), None);
    world.command(Command::Begin);
    world.command(Command::Resume);
    assert_eq!((world.phase(), world.asked(1)), (Phase::Exploring, vec!["a"]));
    assert_eq!(rejection(&world, Command::Begin), Some(CommandRejection::Begun));
    assert_eq!(rejection(&world, Command::Remove(node("b"))), Some(CommandRejection::UnknownNode(node("b"))));
    world.command(Command::Finish);
    assert_eq!(rejection(&world, Command::Pause), Some(CommandRejection::Over));
}

#[test]
fn a_rejected_command_changes_nothing() {
    let uniform = ScriptedFederation::with_strategy(small_config(2), 1, || Box::new(UniformDraws));
    let mut world = uniform.joined_by(&["a", "b"]);
    assert_eq!(world.phase(), Phase::Exploiting);
    let never = CommandRejection::NeverExplores("uniform-draws");
    for (command, rejection) in [
        (Command::Explore, never),
        (Command::Begin, CommandRejection::Begun),
        (Command::Remove(node("c")), CommandRejection::UnknownNode(node("c"))),
    ] {
        let before = world.federation().clone();
        assert_eq!(before.rejection(&command), Some(rejection));
        assert!(world.step(Input::Command(command)).is_empty());
        assert_eq!(world.federation(), &before);
    }
}
