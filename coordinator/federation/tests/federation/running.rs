//! The policy that measures in every round.

use evenhand_federation::{
    Command, FederationConfig, Input, Intervention, MeasureResponse, NodeResponse, Policy, Tick,
};
use evenhand_protocol::codec::Bf16;
use evenhand_protocol::message::{Answer, Declined, Measured, Phase, Refusal, Why};
use evenhand_testkit::federation::scripted::{DEADLINE_MS, ScriptedFederation, node, small_config, update};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const DIM: usize = 40;

fn config(nodes: u32) -> FederationConfig {
    let mut config = small_config(nodes);
    config.federation.policy = Policy::Continuous;
    config.federation.nodes_max = 12;
    config
}

/// A reference gradient: one direction, and noise.
fn gradient(round: u32, node: u8, noise: f32) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(u64::from(round) << 8 | u64::from(node));
    (0..DIM).map(|_| 1.0 + noise * rng.random_range(-1.0f32..1.0)).collect()
}

fn measured(round: u32, values: &[f32]) -> Answer {
    Answer::Measured(Measured { round, samples: 5, skill: None, vector: Bf16::encode(values) })
}

/// One round in which the named nodes answer everything they are asked for.
fn round(world: &mut ScriptedFederation, names: &[(&str, f32)]) {
    let number = world.federation().round();
    for (name, noise) in names {
        world.answers(name, measured(number, &gradient(number, name.as_bytes()[0], *noise)));
    }
    let drawn: Vec<String> = drawn(world, number);
    for name in drawn {
        world.updates(&name, 5, &[0.01; DIM]);
    }
    assert_eq!(world.federation().round(), number + 1, "the round is over");
}

fn drawn(world: &ScriptedFederation, round: u32) -> Vec<String> {
    let tasks = world.tasks.iter().filter(|(_, task)| task.round() == round);
    tasks.map(|(node, _)| node.to_string()).collect()
}

#[test]
fn everybody_is_measured_and_only_the_drawn_receive_the_model() {
    let mut world = ScriptedFederation::with(config(3), DIM, &["a", "b", "c"]);
    assert_eq!(world.phase(), Phase::Running);
    assert_eq!((world.measures.len(), world.tasks.len()), (3, 1));
    for _ in 0..40 {
        round(&mut world, &[("a", 0.5), ("b", 2.0), ("c", 6.0)]);
    }
    let last = &world.last().round;
    assert_eq!(last.phase, Phase::Running);
    assert_eq!(last.nodes.iter().filter(|node| node.why == Why::Drawn).count(), 1);
    assert!(
        last.nodes.iter().all(|node| node.measured == MeasureResponse::Measured { samples: 5, skill: None })
    );
    let standings: Vec<f64> = last.nodes.iter().map(|node| node.standing).collect();
    assert!(standings.is_sorted_by(|a, b| a > b), "{standings:?}");
    // k = 1 of 3 nodes: three times the wait under equal odds is 9 rounds.
    assert!(last.nodes.iter().all(|node| node.sampling_probability >= 1.0 / 9.0 - 1e-6), "{last:?}");
    assert!(last.verdict.is_some(), "the stop rule reports");
}

#[test]
fn who_takes_the_model_and_sends_no_update_is_credited_nothing() {
    let mut world = ScriptedFederation::with(config(3), DIM, &["a", "b", "c"]);
    for _ in 0..20 {
        round(&mut world, &[("a", 0.5), ("b", 0.5), ("c", 0.5)]);
    }
    let number = world.federation().round();
    let taker = drawn(&world, number).remove(0);
    for name in ["a", "b", "c"] {
        world.answers(name, measured(number, &gradient(number, name.as_bytes()[0], 0.5)));
    }
    world.answers(&taker, Answer::Decline { round: number, reason: Declined::TrainingFailed });
    let substitute = drawn(&world, number).pop().unwrap();
    assert_ne!(substitute, taker, "somebody else is drawn in the same round");
    world.updates(&substitute, 5, &[0.01; DIM]);
    let closed = world.last().round.clone();
    let row = closed.nodes.iter().find(|row| row.node == node(&taker)).unwrap();
    assert_eq!(row.measured, MeasureResponse::Withheld);
    assert_eq!(row.contribution, Some(0.0));
    assert!(
        closed.nodes.iter().filter(|row| row.node != node(&taker)).all(|row| row.contribution > Some(0.3))
    );
}

/// Reference gradients of a, b and c for the open round.
fn all_measured(world: &mut ScriptedFederation) -> u32 {
    let number = world.federation().round();
    for name in ["a", "b", "c"] {
        world.answers(name, measured(number, &gradient(number, name.as_bytes()[0], 0.5)));
    }
    number
}

#[test]
fn a_drawn_node_that_is_silent_has_a_substitute_at_half_the_deadline_and_may_still_answer() {
    let mut world = ScriptedFederation::with(config(3), DIM, &["a", "b", "c"]);
    let number = all_measured(&mut world);
    let silent = drawn(&world, number).remove(0);
    assert_eq!(world.federation().alarm(), Some(Tick(u64::from(DEADLINE_MS) / 2)));
    world.wait();
    let both = drawn(&world, number);
    assert_eq!(both.len(), 2, "{both:?}");
    let saved = world.saved.as_ref().unwrap();
    assert_eq!(saved.members().iter().filter(|member| member.last_drawn() == Some(1)).count(), 2);
    world.updates(&both[1], 5, &[0.01; DIM]);
    assert_eq!(world.federation().round(), number, "the first is still awaited");
    assert_eq!(world.federation().alarm(), Some(Tick(DEADLINE_MS.into())));
    world.updates(&silent, 5, &[0.01; DIM]);
    assert_eq!((world.federation().round(), world.last().round.arrived()), (number + 1, 2));
}

#[test]
fn who_declines_cannot_hand_the_model_round() {
    let mut world = ScriptedFederation::with(config(3), DIM, &["a", "b", "c"]);
    let number = all_measured(&mut world);
    for _ in 0..2 {
        let last = drawn(&world, number).pop().unwrap();
        world.answers(&last, Answer::Decline { round: number, reason: Declined::TrainingFailed });
    }
    assert_eq!(drawn(&world, number).len(), 2, "k substitutes are the most");
    assert_eq!(world.last().round.asked().count(), 2);
    assert!(world.last().round.asked().all(|row| row.measured == MeasureResponse::Withheld));
}

#[test]
fn a_round_nobody_answers_is_not_a_round() {
    let mut world = ScriptedFederation::with(config(3), DIM, &["a", "b", "c"]);
    let founded = ScriptedFederation::new(config(3), DIM).federation().clone();
    for _ in 0..3 {
        round(&mut world, &[("a", 0.5), ("b", 0.5), ("c", 0.5)]);
    }
    let without_data = |world: &mut ScriptedFederation| {
        let (number, attempt) = (world.federation().round(), world.federation().attempt());
        let members = world.federation().members().to_vec();
        for name in ["a", "b", "c"] {
            world.answers(name, Answer::Unmeasured { round: attempt, reason: Declined::NoData });
        }
        for name in drawn(world, attempt) {
            world.answers(&name, Answer::Decline { round: attempt, reason: Declined::NoData });
        }
        assert_eq!(world.federation().round(), number - 1, "it is still to come");
        assert_eq!(world.closed.len() as u32, number - 1, "and not recorded");
        members
    };
    let mut waits = Vec::new();
    for _ in 0..30 {
        without_data(&mut world);
        let outrun = world.federation().outruns_meters().unwrap();
        assert_eq!((outrun.without_data, outrun.answered), (3, 3));
        waits.push(world.federation().alarm().unwrap().0 - world.now.0);
        // Killed while it waits, it goes on all the same.
        world.crash();
        world.step(Input::LinkRestored);
        world.wait();
        assert_eq!(world.federation().round(), 4);
    }
    assert_eq!(waits[0], 1000);
    assert!(waits[1..20].is_sorted() && *waits.last().unwrap() == 3_600_000, "{waits:?}");
    assert_eq!(world.federation().attempt(), 34);
    // A node that joins meanwhile, and one that is removed, are where they belong in the record.
    world.comes_online("0", 1);
    without_data(&mut world);
    world.command(Command::Remove(node("c")));
    world.wait();
    let attempt = world.federation().attempt();
    for name in ["a", "b", "0"] {
        world.answers(name, measured(attempt, &gradient(attempt, name.as_bytes()[0], 0.5)));
    }
    for name in drawn(&world, attempt) {
        world.answers(&name, Answer::Update(update(attempt, 5, &[0.01; DIM])));
    }
    assert_eq!((world.last().round.round, world.federation().round()), (4, 4));
    assert!(world.federation().outruns_meters().is_none());
    assert_eq!(world.last().round.nodes[2].removed, Some(3));
    assert!(world.last().round.nodes.iter().all(|row| row.staleness <= 4), "attempts are no staleness");
    let mut replayed = founded;
    for closed in &world.closed {
        replayed.replay(&closed.round, closed.received()).unwrap();
    }
}

#[test]
fn rounds_at_an_interval_that_outruns_the_meters_say_so() {
    let mut rules = config(3);
    rules.federation.round_interval_ms = 2000;
    let mut world = ScriptedFederation::with(rules, DIM, &["a", "b", "c"]);
    world.answers("a", measured(1, &gradient(1, b'a', 0.5)));
    for name in ["b", "c"] {
        world.answers(name, Answer::Unmeasured { round: 1, reason: Declined::NoData });
    }
    for name in drawn(&world, 1) {
        world.updates(&name, 5, &[0.01; DIM]);
    }
    assert_eq!(world.last().round.round, 1, "somebody answered");
    assert_eq!(world.federation().alarm(), Some(Tick(2000)), "the operator's word stands");
    let told = world.federation().outruns_meters().unwrap().to_string();
    assert_eq!(
        told,
        "2 of 3 nodes had no new data when they were asked last; rounds outrun the meters: raise \
         federation.round_interval_ms = 2000, or set it to 0 to follow them"
    );
    let rows = &world.last().round.nodes;
    assert!(rows[1].contribution.is_none() && rows[2].contribution.is_none(), "no data yet is no fault");
}

#[test]
fn a_node_that_was_said_to_be_dead_is_back_when_it_answers() {
    let mut world = ScriptedFederation::with(config(3), DIM, &["a", "b", "c"]);
    world.goes_offline("c", 1);
    let mut asked = None;
    for _ in 0..11 {
        let number = world.federation().round();
        let to_c = |world: &ScriptedFederation| {
            world.measures.iter().any(|(to, request)| *to == node("c") && request.round == number)
        };
        if number > 1 && to_c(&world) {
            asked = Some(number);
            break;
        }
        round(&mut world, &[("a", 0.5), ("b", 0.5)]);
    }
    let number = asked.unwrap();
    world.answers("c", measured(number, &gradient(number, b'c', 0.5)));
    assert!(world.refusals.is_empty(), "{:?}", world.refusals);
    round(&mut world, &[("a", 0.5), ("b", 0.5)]);
    round(&mut world, &[("a", 0.5), ("b", 0.5), ("c", 0.5)]);
    assert_eq!(world.last().round.nodes[2].measured, MeasureResponse::Measured { samples: 5, skill: None });
}

#[test]
fn a_name_that_gives_nothing_is_given_nothing() {
    let mut world = ScriptedFederation::with(config(3), DIM, &["a", "b", "c"]);
    round(&mut world, &[("a", 0.5), ("b", 0.5), ("c", 0.5)]);
    world.comes_online("d", 1);
    for _ in 0..100 {
        let number = world.federation().round();
        world.answers("d", Answer::Unmeasured { round: number, reason: Declined::NoData });
        round(&mut world, &[("a", 0.5), ("b", 0.5), ("c", 0.5)]);
    }
    assert!(world.tasks.iter().all(|(to, _)| *to != node("d")));
}

#[test]
fn nodes_are_told_nothing_by_which_they_could_try_out_what_pays() {
    let mut world = ScriptedFederation::with(config(3), DIM, &["a", "b", "c"]);
    let mut told = Vec::new();
    for _ in 0..60 {
        round(&mut world, &[("a", 0.5), ("b", 2.0), ("c", 6.0)]);
        let account = &world.accounts[&node("a")];
        told.push((account.standing, account.sampling_probability));
        let newest = &world.manifests.last().unwrap().1;
        assert_eq!(newest.phase, Phase::Running);
        assert!(world.accounts.values().all(|account| matches!(account.why, Why::Drawn | Why::NotDrawn)));
    }
    told.dedup();
    assert_eq!(told.len(), 4, "one standing in twenty rounds, and none before the first: {told:?}");
}

#[test]
fn a_newcomer_is_measured_before_it_can_be_drawn() {
    let mut rules = config(3);
    rules.continuous.newcomer_rounds = 5;
    let mut world = ScriptedFederation::with(rules, DIM, &["a", "b", "c"]);
    for _ in 0..10 {
        round(&mut world, &[("a", 0.5), ("b", 0.5), ("c", 0.5)]);
    }
    world.comes_online("d", 1);
    round(&mut world, &[("a", 0.5), ("b", 0.5), ("c", 0.5)]);
    let from = world.federation().round();
    for _ in 0..30 {
        round(&mut world, &[("a", 0.5), ("b", 0.5), ("c", 0.5), ("d", 0.5)]);
    }
    let first = (from..from + 30).find(|number| drawn(&world, *number).contains(&"d".to_owned())).unwrap();
    assert!((from + 5..from + 20).contains(&first), "drawn first in round {first}, there from {from}");
}

#[test]
fn answers_to_requests_that_were_not_made_are_refused() {
    let mut world = ScriptedFederation::with(config(3), DIM, &["a", "b", "c"]);
    world.answers("a", measured(1, &[1.0; 3]));
    world.answers("b", measured(2, &[1.0; DIM]));
    world.answers("c", measured(1, &[f32::INFINITY; DIM]));
    let refused: Vec<Refusal> = world.refusals.iter().map(|(_, refusal)| *refusal).collect();
    assert_eq!(refused, [Refusal::Dimension, Refusal::NotDrawn, Refusal::NotFinite]);
}

#[test]
fn a_silent_node_does_not_hold_every_round_to_its_deadline() {
    let mut world = ScriptedFederation::with(config(3), DIM, &["a", "b", "c"]);
    let mut late = 0;
    for _ in 0..20 {
        let number = world.federation().round();
        for name in ["a", "b"] {
            world.answers(name, measured(number, &gradient(number, name.as_bytes()[0], 0.5)));
        }
        for name in drawn(&world, number).into_iter().filter(|name| name != "c") {
            world.updates(&name, 5, &[0.01; DIM]);
        }
        if world.federation().round() == number {
            late += 1;
            world.wait();
        }
    }
    assert!(late <= 3, "{late} rounds lasted until their deadline");
    // When it speaks, it is there again.
    let number = world.federation().round();
    world.answers("c", Answer::Unmeasured { round: number, reason: Declined::NoData });
    for name in ["a", "b"] {
        world.answers(name, measured(number, &gradient(number, name.as_bytes()[0], 0.5)));
    }
    for name in drawn(&world, number) {
        world.updates(&name, 5, &[0.01; DIM]);
    }
    let next = world.federation().round();
    assert!(world.measures.iter().any(|(to, request)| *to == node("c") && request.round == next));
}

#[test]
fn a_model_that_gets_lost_is_taken_back() {
    let mut rules = config(3);
    rules.admission.norm_max = 1e9;
    let mut world = ScriptedFederation::with(rules, DIM, &["a", "b", "c"]);
    for _ in 0..12 {
        round(&mut world, &[("a", 0.5), ("b", 0.5), ("c", 0.5)]);
    }
    let good = world.federation().weights().clone();
    let number = world.federation().round();
    for name in ["a", "b", "c"] {
        world.answers(name, measured(number, &gradient(number, name.as_bytes()[0], 0.5)));
    }
    let name = drawn(&world, number).remove(0);
    let mut update = update(number, 5, &[1e8; DIM]);
    update.loss = 1e6;
    world.answers(&name, Answer::Update(update));
    let closed = &world.last().round;
    assert!(matches!(closed.intervention, Some(Intervention::Restored { .. })), "{:?}", closed.intervention);
    let moved: f32 = world
        .federation()
        .weights()
        .values()
        .iter()
        .zip(good.values())
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f32::max);
    assert!(moved <= 0.01, "{moved}");
    assert!(matches!(
        closed.nodes.iter().find(|row| row.node == node(&name)).unwrap().response,
        NodeResponse::Arrived { .. }
    ));
}
