//! Each phase with known answers.

use evenhand_coordinator::federation::{
    Cause, Command, Dispatch, Effect, Fate, Input, NormPolicy, RuleKind, Tick,
};
use evenhand_coordinator::strategy::StrategyKind;
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::{Answer, Birth, Declined, Life, Phase, Refusal, Status, Why};

use super::world::{DEADLINE_MS, World, birth, node, settings, update};

fn close_to(left: f64, right: f64) -> bool {
    (left - right).abs() < 1e-12
}

#[test]
fn it_begins_when_enough_nodes_are_there_and_asks_them_all() {
    let mut world = World::with(settings(3), 2, &["c", "a"]);
    assert_eq!((world.phase(), world.federation().round()), (Phase::Enrolling, 0));
    world.born("b", 1);
    assert_eq!((world.phase(), world.federation().round()), (Phase::Exploring, 1));
    assert_eq!(world.asked(1), ["a", "b", "c"], "by name, whatever the order of arrival");
    let (_, task) = &world.tasks[0];
    assert_eq!(task.weights().unwrap()[..], [0.0, 1.0]);
    assert_eq!(task.to_train().deadline_ms, DEADLINE_MS);
}

#[test]
fn every_birth_is_answered_with_the_manifest_and_every_round_announced() {
    let world = World::with(settings(2), 2, &["a", "b"]);
    let told: Vec<_> = world
        .manifests
        .iter()
        .map(|(to, manifest)| (to.as_ref().map(|to| to.as_str()), manifest.phase, manifest.round))
        .collect();
    assert_eq!(
        told,
        [(Some("a"), Phase::Enrolling, 0), (Some("b"), Phase::Enrolling, 0), (None, Phase::Exploring, 1),]
    );
    assert_eq!(world.manifests[0].1.parameters, 2);
}

#[test]
fn the_operator_need_not_wait_for_more_nodes() {
    let mut world = World::with(settings(3), 2, &["a", "b"]);
    world.command(Command::Begin);
    assert_eq!(world.asked(1), ["a", "b"]);
}

#[test]
fn an_exploring_round_has_the_contributions_standings_and_model_of_the_formulas() {
    let mut world = World::with(settings(2), 2, &["a", "b"]);
    world.updates("a", 30, &[1.0, 0.0]);
    assert!(world.closed.is_empty(), "one is still to come");
    world.updates("b", 10, &[0.0, 2.0]);
    // p = (3/4, 1/4), g = (0.75, 0.5): φ_a = 3/4·0.75, φ_b = 1/4·2·0.5; θ = (0, 1) − 0.5·g.
    let closed = world.last();
    let phi: Vec<f64> = closed.record.nodes.iter().map(|n| n.contribution.unwrap()).collect();
    assert!(close_to(phi[0], 0.5625) && close_to(phi[1], 0.25), "{phi:?}");
    assert_eq!(closed.weights.values(), [-0.375, 0.75]);
    assert_eq!(closed.record.loss, Some(1.0));
    assert_eq!(closed.record.weights_after, Digest::of_weights(&[-0.375, 0.75]));
    assert_eq!(closed.record.phase, Phase::Exploring);
    assert_eq!(closed.record.nodes[0].why, Why::Exploring);
    assert!(close_to(closed.record.nodes[0].sampling_probability, 0.5), "uniform while exploring");
    // Round 2 is open: everybody received θ₁.
    assert_eq!(world.asked(2), ["a", "b"]);
    assert_eq!(world.tasks.last().unwrap().1.weights().unwrap()[..], [-0.375, 0.75]);
    world.updates("a", 10, &[0.0, 0.0]);
    world.updates("b", 10, &[0.0, 1.0]);
    // φ_b = 1/2·1·1/2 in round 2.
    assert!(close_to(world.standing("a"), 0.5625 / 2.0));
    assert!(close_to(world.standing("b"), 0.25));
    assert!(close_to(world.accounts[&node("b")].standing, 0.25));
}

#[test]
fn who_was_to_take_part_and_did_not_has_contributed_nothing() {
    let mut world = World::with(settings(4), 1, &["a", "b", "c", "d"]);
    world.updates("a", 10, &[1.0]);
    world.declines("b");
    world.dies("c", 1);
    assert!(world.closed.is_empty(), "d may still come");
    assert_eq!(world.federation().alarm(), Some(Tick(DEADLINE_MS.into())));
    world.wait();
    let nodes = &world.last().record.nodes;
    let fates: Vec<Fate> = nodes.iter().map(|node| node.fate).collect();
    assert_eq!(fates[1..], [Fate::Declined(Declined::NoData), Fate::Died, Fate::Missed]);
    let phi: Vec<f64> = nodes.iter().map(|node| node.contribution.unwrap()).collect();
    assert_eq!(phi, [1.0, 0.0, 0.0, 0.0]);
    assert_eq!(world.last().record.closed, Tick(DEADLINE_MS.into()));
    // c is away when round 2 is drawn, and everybody is to take part while exploring: φ_c = 0 again.
    assert_eq!(world.asked(2), ["a", "b", "d"]);
    for name in ["a", "b", "d"] {
        world.updates(name, 10, &[1.0]);
    }
    let absent = &world.last().record.nodes[2];
    assert_eq!((absent.why, absent.fate, absent.contribution), (Why::Absent, Fate::Idle, Some(0.0)));
}

#[test]
fn a_death_ends_the_wait_and_a_return_in_time_is_awaited_again() {
    let mut world = World::with(settings(2), 1, &["a", "b"]);
    world.dies("b", 1);
    world.born("b", 2);
    assert_eq!(world.asked(1), ["a", "b", "b"], "asked again in its new session");
    world.updates("a", 10, &[1.0]);
    assert!(world.closed.is_empty());
    world.dies("b", 2);
    assert_eq!(world.last().record.nodes[1].fate, Fate::Died);
}

#[test]
fn a_late_will_does_not_kill_a_newer_session() {
    let mut world = World::with(settings(2), 1, &["a", "b"]);
    world.born("b", 7);
    world.dies("b", 1);
    world.updates("a", 10, &[1.0]);
    assert!(world.closed.is_empty(), "b lives in session 7");
    world.updates("b", 10, &[1.0]);
    assert_eq!(world.last().record.arrived(), 2);
    // In the lobby as well.
    let mut world = World::new(settings(2), 1);
    world.born("a", 3);
    world.dies("a", 2);
    world.born("b", 1);
    assert_eq!(world.asked(1), ["a", "b"]);
}

#[test]
fn an_update_counts_once_however_often_it_arrives() {
    let mut world = World::with(settings(2), 1, &["a", "b"]);
    world.updates("a", 10, &[1.0]);
    world.updates("a", 10, &[5.0]);
    world.updates("b", 10, &[1.0]);
    assert_eq!(world.last().weights.values(), [-0.5]);
    // After the round as well.
    world.answers("a", Answer::Update(update(1, 10, &[1.0])));
    assert_eq!(world.refusals, [(node("a"), Refusal::Repeated), (node("a"), Refusal::Repeated)]);
    world.updates("a", 10, &[0.0]);
    world.updates("b", 10, &[0.0]);
    assert_eq!(world.last().weights.values(), [-0.5]);
    assert_eq!(world.last().record.nodes[0].refusals[&Refusal::Repeated], 1);
}

#[test]
fn each_reason_of_refusal_is_told_counted_and_does_not_hold_up_the_round() {
    let mut rules = settings(2);
    rules.training.samples_max = 50;
    let mut world = World::with(rules.clone(), 2, &["a", "b"]);
    world.updates("stranger", 10, &[1.0, 1.0]);
    world.step(Input::Malformed { node: node("b") });
    let bad: [(u32, Vec<f32>, Refusal); 6] = [
        (10, vec![1.0], Refusal::Dimension),
        (10, vec![f32::NAN, 0.0], Refusal::NotFinite),
        (10, vec![f32::INFINITY, 0.0], Refusal::NotFinite),
        (10, vec![100.0, 1.0], Refusal::Norm),
        (0, vec![1.0, 1.0], Refusal::Samples),
        (51, vec![1.0, 1.0], Refusal::Samples),
    ];
    for (samples, vector, _) in &bad {
        world.updates("a", *samples, vector);
    }
    assert!(world.closed.is_empty(), "b may still come");
    let told: Vec<Refusal> = world.refusals.iter().map(|(_, refusal)| *refusal).collect();
    use Refusal::*;
    assert_eq!(told, [Unknown, Malformed, Dimension, NotFinite, Norm, Samples], "each told once a round");
    world.updates("b", 10, &[1.0, 1.0]);
    let record = &world.last().record;
    assert_eq!(record.nodes[0].fate, Fate::Refused(Samples));
    assert_eq!(record.nodes[0].contribution, Some(0.0));
    let counts: Vec<u32> = [Dimension, NotFinite, Norm, Samples].map(|r| record.nodes[0].refusals[&r]).into();
    assert_eq!(counts, [1, 2, 1, 2]);
    assert_eq!(record.nodes[1].refusals[&Malformed], 1);
    assert_eq!(record.strangers[&Unknown], 1);
    // Late for round 1, too early for round 3.
    world.answers("a", Answer::Update(update(1, 10, &[1.0, 1.0])));
    world.answers("a", Answer::Update(update(3, 10, &[1.0, 1.0])));
    assert_eq!(world.refusals[6..], [(node("a"), Late), (node("a"), NotDrawn)]);
    // A loss that is not a number would spoil the record.
    let mut unreal = update(2, 10, &[1.0, 1.0]);
    unreal.loss = f32::NAN;
    world.answers("a", Answer::Update(unreal));
    assert_eq!(world.refusals.last().unwrap().1, NotFinite);
    // A node whose update was refused may mend it in time.
    world.updates("a", 10, &[1.0, 1.0]);
    world.updates("b", 10, &[1.0, 1.0]);
    assert_eq!(world.last().record.arrived(), 2);
}

#[test]
fn a_norm_can_be_clipped_instead() {
    let mut rules = settings(1);
    rules.admission.norm_max = 5.0;
    rules.admission.norm = NormPolicy::Clip;
    let mut world = World::with(rules, 2, &["a"]);
    world.updates("a", 10, &[30.0, 40.0]);
    assert_eq!(world.last().weights.values(), [-1.5, 1.0 - 2.0]);
    assert!(matches!(world.last().record.nodes[0].fate, Fate::Arrived { norm, .. } if close_to(norm, 50.0)));
}

#[test]
fn a_compressed_update_counts_like_its_vector_and_its_wrong_length_is_refused() {
    use evenhand_protocol::codec::{CodecKind, ErrorFeedback, encode};
    use rand::SeedableRng;
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    let mut encoded =
        |vector: &[f32]| encode(CodecKind::Bf16, vector, &mut ErrorFeedback::default(), &mut rng);
    let mut world = World::with(settings(2), 2, &["a", "b"]);
    for vector in [encoded(&[2.0]), encoded(&[2.0, 4.0])] {
        let update = evenhand_protocol::message::Update { vector, ..update(1, 10, &[]) };
        world.answers("a", Answer::Update(update));
    }
    assert_eq!(world.refusals, [(node("a"), Refusal::Dimension)]);
    world.updates("b", 10, &[2.0, 4.0]);
    assert_eq!(world.last().weights.values(), [-1.0, -1.0]);
}

#[test]
fn a_round_without_updates_is_recorded_and_the_next_begins_after_its_deadline() {
    let mut world = World::with(settings(2), 1, &["a", "b"]);
    world.declines("a");
    world.declines("b");
    let closed = world.last();
    assert_eq!((closed.record.round, closed.record.arrived(), closed.record.loss), (1, 0, None));
    assert_eq!(closed.record.weights_before, closed.record.weights_after);
    assert_eq!(closed.record.nodes[0].contribution, None, "nothing was measured");
    assert!(world.asked(2).is_empty(), "nodes without data must not eat up the rounds");
    assert_eq!(world.federation().alarm(), Some(Tick(DEADLINE_MS.into())));
    world.wait();
    assert_eq!(world.asked(2), ["a", "b"]);
    world.wait();
    assert_eq!(
        (world.last().record.round, world.asked(3).len()),
        (2, 2),
        "at the deadline it goes on at once"
    );
}

#[test]
fn without_any_node_it_waits_and_goes_on_with_the_first_that_comes() {
    let mut world = World::with(settings(2), 1, &["a", "b"]);
    world.dies("a", 1);
    world.dies("b", 1);
    assert_eq!(world.last().record.round, 1);
    assert_eq!(world.federation().alarm(), None);
    world.now = Tick(10 * u64::from(DEADLINE_MS));
    world.born("b", 2);
    assert_eq!(world.asked(2), ["b"]);
}

#[test]
fn rounds_keep_their_distance() {
    let mut rules = settings(1);
    rules.federation.round_interval_ms = 700;
    let mut world = World::with(rules, 1, &["a"]);
    world.now = Tick(20);
    world.updates("a", 1, &[1.0]);
    assert_eq!(world.federation().alarm(), Some(Tick(700)));
    world.wait();
    assert_eq!(world.asked(2), ["a"]);
}

#[test]
fn a_node_that_holds_the_weights_is_not_sent_them_again() {
    let initial = Digest::of_weights(&[0.0]);
    let mut world = World::new(settings(2), 1);
    world.born("a", 1);
    world.step(Input::Status { node: node("a"), status: birth(2, Some(initial)) });
    world.born("b", 1);
    assert!(world.tasks[0].1.weights().is_none() && world.tasks[1].1.weights().is_some());
    // A node that lost them after all, and was drawn, gets them.
    world.answers("a", Answer::NeedWeights { round: 1 });
    assert!(world.tasks[2].1.weights().is_some());
    // Nothing moved: both hold θ still.
    world.updates("a", 10, &[0.0]);
    world.updates("b", 10, &[0.0]);
    assert!(world.tasks[3..].iter().all(|(_, task)| task.weights().is_none()));
    // A restarted node has forgotten them.
    world.born("b", 2);
    assert!(world.tasks.last().unwrap().1.weights().is_some());
}

#[test]
fn who_was_not_drawn_does_not_get_the_weights_by_asking() {
    let mut rules = settings(3);
    rules.exploring.rounds_max = 1;
    let mut world = World::with(rules, 1, &["a", "b", "c"]);
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
        world.born(name, 2);
    }
    world.step(Input::Answer { node: node("stranger"), answer: Answer::NeedWeights { round: 2 } });
    assert_eq!(world.tasks.len(), tasks);
    assert_eq!(world.refusals.len(), 2 * 2 + 1, "late or not drawn, each told once; and the stranger");
    world.answers(&drawn, Answer::NeedWeights { round: 2 });
    assert_eq!(world.tasks.len(), tasks + 1);
}

#[test]
fn the_graph_is_no_secret_to_those_who_may_join() {
    let mut world = World::with(settings(2), 1, &["a"]);
    let need = Answer::NeedGraph(Digest::of(b"graph"));
    world.answers("a", need.clone());
    world.answers("stranger", need);
    assert_eq!(world.graphs, [node("a")]);
}

#[test]
fn it_stops_exploring_when_the_rule_says_so() {
    let mut rules = settings(3);
    rules.exploring.watched = 2;
    rules.exploring.window = 3;
    let mut world = World::with(rules.clone(), 3, &["a", "b", "c"]);
    let noise = |round: u32, salt: u32| ((round * 7 + salt * 13) % 11) as f32 / 110.0;
    while world.phase() == Phase::Exploring {
        let round = world.federation().round();
        for (salt, name) in ["a", "b", "c"].into_iter().enumerate() {
            let mut vector = [noise(round, salt as u32); 3];
            vector[salt] += 1.0;
            world.updates(name, 10, &vector);
        }
        assert!(round < 200, "never settles");
    }
    // The verdicts are those of the rule on the contributions in the record.
    let history: Vec<Vec<f64>> = world
        .closed
        .iter()
        .map(|closed| closed.record.nodes.iter().map(|node| node.contribution.unwrap()).collect())
        .collect();
    let (last, before) = world.closed.split_last().unwrap();
    let verdict = last.record.verdict.as_ref().unwrap();
    assert!(verdict.stop && before.iter().all(|closed| !closed.record.verdict.as_ref().unwrap().stop));
    let rule = rules.exploring.stop_rule();
    assert_eq!(rules.exploring.rule, RuleKind::Paper);
    let p = verdict.p_value.unwrap();
    let pairs = [[0, 1], [0, 2], [1, 2]];
    assert!(
        pairs.iter().any(|watched| rule.judge(&history, watched, 1.0).p_value == Some(p)),
        "p is that of one pair of watched nodes"
    );
    assert_eq!(last.record.round as usize, history.len());
    assert_eq!(world.asked(last.record.round + 1).len(), 1, "k = 1 are drawn from now on");
}

#[test]
fn exploiting_draws_by_standing_and_leaves_standings_alone() {
    let mut rules = settings(3);
    rules.exploring.rounds_max = 1;
    rules.exploiting.temperature = 0.5;
    let mut world = World::with(rules, 3, &["a", "b", "c"]);
    for (name, length) in [("a", 3.0), ("b", 1.0), ("c", 1.0)] {
        world.updates(name, 10, &[length, 0.0, 0.0]);
    }
    let standings: Vec<f64> = ["a", "b", "c"].map(|name| world.standing(name)).into();
    // φᵢ = ⅓·Δᵢ·g with g = 5/3.
    assert!(close_to(standings[0], 5.0 / 3.0) && close_to(standings[1], 5.0 / 9.0), "{standings:?}");
    let mut drawn = [0u32; 3];
    for _ in 0..300 {
        let round = world.federation().round();
        let asked = world.asked(round);
        assert_eq!(asked.len(), 1);
        let name = asked[0].to_owned();
        drawn[usize::from(name.as_bytes()[0] - b'a')] += 1;
        world.updates(&name, 10, &[0.0, 0.0, 0.0]);
        let record = &world.last().record;
        assert_eq!(record.phase, Phase::Exploiting);
        assert!(record.nodes.iter().all(|node| node.contribution.is_none()), "nothing is measured");
    }
    // ϱ = softmax(ψ/β): e^{(5/3 − 5/9)/0.5} = e^{20/9} against 1 and 1.
    let odds = (20.0f64 / 9.0).exp();
    let expected = [odds / (odds + 2.0), 1.0 / (odds + 2.0), 1.0 / (odds + 2.0)];
    for (column, expected) in expected.into_iter().enumerate() {
        let found = world.last().record.nodes[column].sampling_probability;
        assert!(close_to(found, expected), "{found} {expected}");
        // Five standard deviations of a binomial share.
        let spread = 5.0 * (expected * (1.0 - expected) / 300.0).sqrt();
        let share = f64::from(drawn[column]) / 300.0;
        assert!((share - expected).abs() < spread, "{share} {expected}");
    }
    assert_eq!(standings, ["a", "b", "c"].map(|name| world.standing(name)));
    let node = &world.last().record.nodes[0];
    assert_eq!(node.drawn, drawn[0] + 1, "and once while exploring");
    assert_eq!(node.staleness, world.last().record.round - node.last_drawn.unwrap());
}

#[test]
fn who_is_away_is_not_drawn_and_keeps_its_standing() {
    let mut rules = settings(2);
    rules.exploring.rounds_max = 1;
    let mut world = World::with(rules, 1, &["a", "b"]);
    world.updates("a", 10, &[3.0]);
    world.updates("b", 10, &[1.0]);
    let standing = world.standing("a");
    world.dies("a", 1);
    for _ in 0..20 {
        if world.asked(world.federation().round()).contains(&"b") {
            world.updates("b", 10, &[1.0]);
        }
    }
    let away = &world.last().record.nodes[0];
    assert_eq!((away.why, away.fate), (Why::Absent, Fate::Idle));
    assert!(away.staleness >= 19);
    world.born("a", 2);
    assert_eq!(world.standing("a"), standing);
    let before = world.federation().round();
    world.updates("b", 10, &[1.0]);
    assert!(world.federation().round() > before);
    assert!(world.federation().members()[0].is_alive());
}

#[test]
fn a_newcomer_while_exploring_enters_at_the_mean_and_is_measured_from_then_on() {
    let mut world = World::with(settings(2), 1, &["a", "b"]);
    world.born("c", 1);
    world.updates("a", 10, &[3.0]);
    world.updates("b", 10, &[1.0]);
    // φ = (3, 1): g = 2, p = ½.
    assert_eq!(world.asked(2), ["a", "b", "c"], "it enters with the next round");
    assert!(close_to(world.standing("c"), 2.0));
    for name in ["a", "b", "c"] {
        world.updates(name, 10, &[0.0]);
    }
    // One of its three rounds is measured (φ = 0): the other two still count as the mean.
    assert!(close_to(world.standing("c"), 2.0 * 2.0 / 3.0));
    assert!(close_to(world.standing("a"), 1.5), "the others are not restarted");
}

#[test]
fn a_newcomer_while_exploiting_is_measured_beside_the_draw_on_the_scale_of_the_standings() {
    let mut rules = settings(3);
    rules.exploring.rounds_max = 1;
    let mut world = World::with(rules, 1, &["a", "b", "c"]);
    for name in ["a", "b", "c"] {
        world.updates(name, 10, &[3.0]);
    }
    // φ = 3·3/3 = 3 each.
    assert_eq!(world.phase(), Phase::Exploiting);
    world.born("d", 1);
    for measured in 0..4 {
        let round = world.federation().round();
        let asked: Vec<String> = world.asked(round).into_iter().map(str::to_owned).collect();
        let expected_parts = if measured == 0 { 1 } else { 2 };
        assert_eq!(asked.len(), expected_parts, "{asked:?}");
        for name in &asked {
            let vector = if name == "d" { [1.0] } else { [3.0] };
            world.updates(name, 10, &vector);
        }
        if measured > 0 {
            // In the round of two: φ_drawn = ½·3·2, φ_d = ½·1·2; the drawn one's standing is 3: d's is 1.
            let newcomer = world.last().record.nodes.iter().find(|n| n.node.as_str() == "d").unwrap();
            assert_eq!(newcomer.why, Why::Newcomer);
            assert!(close_to(newcomer.contribution.unwrap(), 1.0), "{newcomer:?}");
        }
    }
    assert!(close_to(world.standing("d"), 1.0), "after its three rounds the standing is its own");
    assert!(close_to(world.standing("a"), 3.0));
    assert_eq!(world.asked(world.federation().round()).len(), 1, "from now on it waits for its draw");
}

#[test]
fn it_is_finished_after_its_rounds() {
    let mut rules = settings(1);
    rules.federation.rounds = 2;
    let mut world = World::with(rules, 1, &["a"]);
    world.updates("a", 1, &[1.0]);
    world.updates("a", 1, &[1.0]);
    assert_eq!(world.phase(), Phase::Finished);
    assert_eq!(world.manifests.last().unwrap().1.phase, Phase::Finished);
    assert_eq!(world.federation().alarm(), None);
    world.answers("a", Answer::Update(update(2, 1, &[1.0])));
    assert_eq!(world.refusals, [(node("a"), Refusal::Repeated)]);
    assert_eq!(world.federation().weights().values(), [-1.0]);
}

#[test]
fn a_model_that_diverges_fails_with_a_remedy_and_keeps_the_last_good_one() {
    let mut rules = settings(1);
    rules.training.learning_rate = 1e300;
    let mut world = World::with(rules, 1, &["a"]);
    world.updates("a", 1, &[1.0]);
    assert_eq!(world.phase(), Phase::Failed);
    let cause = world.federation().failure().unwrap();
    assert_eq!(cause, &Cause::Diverged { round: 1 });
    assert!(cause.to_string().contains("lower training.learning_rate"));
    assert_eq!(world.federation().weights().values(), [0.0]);
    assert_eq!(world.manifests.last().unwrap().1.phase, Phase::Failed);
}

#[test]
fn a_utility_that_needs_an_examiner_fails_clearly_without_one() {
    use evenhand_coordinator::fairness::Utility;
    let mut rules = settings(1);
    rules.contribution.utility = Utility::NegativeLoss;
    let mut world = World::with(rules, 1, &["a"]);
    world.updates("a", 1, &[1.0]);
    let cause = world.federation().failure().unwrap().to_string();
    assert!(cause.contains("negative-loss"), "{cause}");
}

#[test]
fn an_examiner_scores_the_model_moved_by_each_coalition() {
    use evenhand_coordinator::fairness::{Estimator, Utility};
    use evenhand_coordinator::federation::{Examiner, Federation, Rules};

    /// Worth 10 − 2·θ₀ − θ₁: linear, so that each node's value is that of its own move.
    struct Linear;
    impl Examiner for Linear {
        fn score(&mut self, weights: &[f32]) -> f64 {
            10.0 - 2.0 * f64::from(weights[0]) - f64::from(weights[1])
        }
    }
    let mut rules = settings(2);
    rules.contribution.utility = Utility::NegativeLoss;
    rules.contribution.estimator = Estimator::Exact;
    let mut federation = Federation::new(Rules::new(rules).unwrap(), super::world::blueprint(2));
    let mut effects = Vec::new();
    for input in [
        Input::Status { node: node("a"), status: birth(1, None) },
        Input::Status { node: node("b"), status: birth(1, None) },
        Input::Answer { node: node("a"), answer: Answer::Update(update(1, 10, &[1.0, 0.0])) },
        Input::Answer { node: node("b"), answer: Answer::Update(update(1, 30, &[0.0, 1.0])) },
    ] {
        (federation, effects) = federation.step_examined(Tick(0), input, Some(&mut Linear));
    }
    let Effect::Record(closed) = &effects[0] else { panic!("{:?}", effects[0]) };
    // θ moves by −0.5·pᵢΔᵢ: worth 2·0.5·¼ for a and 0.5·¾ for b.
    let phi: Vec<f64> = closed.record.nodes.iter().map(|node| node.contribution.unwrap()).collect();
    assert!((phi[0] - 0.25).abs() < 1e-6 && (phi[1] - 0.375).abs() < 1e-6, "{phi:?}");
}

#[test]
fn a_pause_lets_the_round_end_and_opens_no_other() {
    let mut world = World::with(settings(1), 1, &["a"]);
    world.command(Command::Pause);
    assert_eq!(world.phase(), Phase::Paused);
    world.updates("a", 1, &[1.0]);
    assert_eq!(world.last().record.round, 1);
    assert!(world.asked(2).is_empty());
    assert_eq!(world.federation().alarm(), None);
    world.command(Command::Resume);
    assert_eq!((world.phase(), world.asked(2)), (Phase::Exploring, vec!["a"]));
}

#[test]
fn the_operator_can_have_contributions_measured_anew() {
    let mut rules = settings(2);
    rules.exploring.rounds_max = 1;
    let mut world = World::with(rules, 1, &["a", "b"]);
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
    let mut rules = settings(2);
    rules.exploring.rounds_max = 1;
    let mut world = World::with(rules, 1, &["a", "b"]);
    world.updates("a", 10, &[3.0]);
    world.updates("b", 10, &[1.0]);
    world.dies("a", 1);
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
    let mut world = World::with(settings(2), 1, &["a", "b"]);
    world.updates("a", 10, &[1.0]);
    world.command(Command::Remove(node("b")));
    assert_eq!(world.last().record.round, 1, "nobody waits for it");
    assert_eq!(world.asked(2), ["a"]);
    world.born("b", 2);
    world.answers("b", Answer::Update(update(2, 10, &[1.0])));
    assert_eq!(world.refusals, [(node("b"), Refusal::Unknown)]);
    world.updates("a", 10, &[1.0]);
    assert_eq!(world.asked(3), ["a"]);
    assert_eq!(world.last().record.nodes[1].sampling_probability, 0.0);
    assert_eq!(world.last().record.nodes[0].sampling_probability, 1.0);
}

#[test]
fn the_operator_can_end_it_with_what_was_reached() {
    let mut world = World::with(settings(2), 1, &["a", "b"]);
    world.updates("a", 10, &[1.0]);
    world.command(Command::Finish);
    assert_eq!(world.phase(), Phase::Finished);
    assert_eq!(world.federation().weights().values(), [0.0]);
    assert!(world.closed.is_empty());
}

#[test]
fn only_the_listed_who_know_the_token_may_enrol() {
    let mut rules = settings(1);
    rules.federation.nodes_max = 2;
    rules.admission.nodes = vec![node("a"), node("b"), node("c")];
    rules.admission.token_sha256 = Digest::of(b"open sesame").to_string();
    let mut world = World::new(rules, 1);
    let knock = |token: &str| Birth {
        graph: None,
        weights: None,
        token: Some(token.into()),
        software: String::new(),
    };
    for (name, token) in [("a", "open sesame"), ("b", "guess"), ("d", "open sesame"), ("b", "open sesame")] {
        let status = Status { session: 1, life: Life::Born(knock(token)) };
        world.step(Input::Status { node: node(name), status });
    }
    assert_eq!(world.refusals, [(node("b"), Refusal::Unknown), (node("d"), Refusal::Unknown)]);
    // The third of two is refused as well.
    let status = Status { session: 1, life: Life::Born(knock("open sesame")) };
    world.step(Input::Status { node: node("c"), status });
    assert_eq!(world.refusals[2..], [(node("c"), Refusal::Unknown)]);
}

#[test]
fn fedavg_draws_everybody_alike_and_never_measures() {
    let mut rules = settings(3);
    rules.federation.strategy = StrategyKind::FedAvg;
    rules.exploiting.k = 3;
    let mut world = World::with(rules, 1, &["a", "b", "c"]);
    assert_eq!(world.phase(), Phase::Exploiting);
    let mut drawn = [0u32; 3];
    for _ in 0..100 {
        let round = world.federation().round();
        for name in world.asked(round).into_iter().map(str::to_owned).collect::<Vec<_>>() {
            drawn[usize::from(name.as_bytes()[0] - b'a')] += 1;
            world.updates(&name, 10, &[1.0]);
        }
        assert!(world.last().record.nodes.iter().all(|n| close_to(n.sampling_probability, 1.0 / 3.0)));
    }
    // q = 1 − (2/3)³ = 0.70; five standard deviations are 0.23.
    assert!(drawn.iter().all(|count| (48..=93).contains(count)), "{drawn:?}");
}

/// k = 1 of 2 is drawn, η = 0.5: its update of 1 moves θ by 0.5, or by 0.25 if the other counts as zero.
#[test]
fn few_updates_make_a_short_step_where_that_is_wanted() {
    for (dilute, wanted) in [(false, -0.5), (true, -0.25)] {
        let mut rules = settings(2);
        rules.federation.strategy = StrategyKind::FedAvg;
        rules.training.dilute = dilute;
        let mut world = World::with(rules, 1, &["a", "b"]);
        let asked = world.asked(1)[0].to_owned();
        world.updates(&asked, 10, &[1.0]);
        assert_eq!(world.last().weights.values(), [wanted]);
    }
}

#[test]
fn after_a_lost_link_the_round_is_asked_for_again_with_the_full_deadline() {
    let mut world = World::with(settings(2), 1, &["a", "b"]);
    world.updates("a", 10, &[1.0]);
    world.now = Tick(u64::from(DEADLINE_MS) - 1);
    let effects = world.step(Input::LinkRestored);
    assert!(matches!(&effects[0], Effect::Manifest { to: None, .. }));
    let [_, Effect::Publish { node, dispatch: Dispatch::Train(task) }] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!((node.as_str(), task.round()), ("b", 1), "a's update is in");
    assert_eq!(world.federation().alarm(), Some(Tick(2 * u64::from(DEADLINE_MS) - 1)));
}

#[test]
fn a_restored_coordinator_asks_the_same_nodes_for_the_same_round() {
    let mut rules = settings(3);
    rules.exploring.rounds_max = 1;
    let mut world = World::with(rules, 1, &["a", "b", "c"]);
    for name in ["a", "b", "c"] {
        world.updates(name, 10, &[1.0]);
    }
    let drawn = world.asked(2)[0].to_owned();
    let undisturbed = world.federation().clone();
    world.crash();
    assert_eq!(world.federation().alarm(), None, "nobody is late before it was asked");
    world.now = Tick(5);
    world.step(Input::Tick);
    world.step(Input::LinkRestored);
    assert_eq!(world.asked(2), [drawn.clone(), drawn.clone()]);
    world.updates(&drawn, 10, &[1.0]);
    let input = Input::Answer { node: node(&drawn), answer: Answer::Update(update(2, 10, &[1.0])) };
    let (undisturbed, _) = undisturbed.step(Tick(5), input);
    assert_eq!(world.federation().save().to_bytes().len(), undisturbed.save().to_bytes().len());
    assert_eq!(world.federation().members(), undisturbed.members());
    assert_eq!(world.federation().weights(), undisturbed.weights());
}

#[test]
fn saved_bytes_that_were_tampered_with_are_refused_without_panic() {
    use evenhand_coordinator::federation::{Federation, RestoreError, Saved};
    let mut world = World::with(settings(2), 1, &["a", "b"]);
    world.updates("a", 10, &[1.0]);
    let bytes = world.federation().save().to_bytes();
    assert!(matches!(Saved::from_bytes(&bytes[..1]), Err(RestoreError::Format(0))));
    let mut newer = bytes.clone();
    newer[0] = 99;
    assert!(matches!(Saved::from_bytes(&newer), Err(RestoreError::Format(99))));
    let other = Federation::restore(Saved::from_bytes(&bytes).unwrap(), b"other"[..].into());
    assert!(matches!(other, Err(RestoreError::Onnx)));
    for position in 2..bytes.len() {
        for flip in [1u8, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[position] ^= flip;
            if let Ok(saved) = Saved::from_bytes(&damaged)
                && let Ok(federation) = Federation::restore(saved, b"onnx"[..].into())
            {
                let (federation, _) = federation.step(Tick(1), Input::LinkRestored);
                let answer = Answer::Update(update(1, 10, &[1.0]));
                let (federation, _) = federation.step(Tick(1), Input::Answer { node: node("b"), answer });
                federation.step(Tick(9_000), Input::Tick);
            }
        }
        assert!(Saved::from_bytes(&bytes[..position]).is_err(), "cut off at {position}");
    }
}
