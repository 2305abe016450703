//! Contributions while exploring, and its end.

use evenhand_fairness::{Estimator, Utility};
use evenhand_federation::{Command, FederationConfig, NodeResponse, StopRuleKind, Tick};
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::{Declined, Phase, Why};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use evenhand_testkit::federation::scripted::{DEADLINE_MS, ScriptedFederation, close_to, node, small_config};

#[test]
fn an_exploring_round_has_the_contributions_standings_and_model_of_the_formulas() {
    let mut world = ScriptedFederation::with(small_config(2), 2, &["a", "b"]);
    world.updates("a", 30, &[1.0, 0.0]);
    assert!(world.closed.is_empty(), "one is still to come");
    world.updates("b", 10, &[0.0, 2.0]);
    // p = (3/4, 1/4), g = (0.75, 0.5): φ_a = 3/4·0.75, φ_b = 1/4·2·0.5; θ = (0, 1) − 0.5·g.
    let closed = world.last();
    let phi: Vec<f64> = closed.round.nodes.iter().map(|n| n.contribution.unwrap()).collect();
    assert!(close_to(phi[0], 0.5625) && close_to(phi[1], 0.25), "{phi:?}");
    assert_eq!(closed.weights.values(), [-0.375, 0.75]);
    assert_eq!(closed.round.loss, Some(1.0));
    assert_eq!(closed.round.weights_after, Digest::of_weights(&[-0.375, 0.75]));
    assert_eq!(closed.round.phase, Phase::Exploring);
    assert_eq!(closed.round.nodes[0].why, Why::Exploring);
    assert!(close_to(closed.round.nodes[0].sampling_probability, 0.5), "uniform while exploring");
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
    let mut world = ScriptedFederation::with(small_config(4), 1, &["a", "b", "c", "d"]);
    world.updates("a", 10, &[1.0]);
    world.declines("b");
    world.goes_offline("c", 1);
    assert!(world.closed.is_empty(), "d may still come");
    assert_eq!(world.federation().alarm(), Some(Tick(DEADLINE_MS.into())));
    world.wait();
    let nodes = &world.last().round.nodes;
    let fates: Vec<NodeResponse> = nodes.iter().map(|node| node.response).collect();
    assert_eq!(
        fates[1..],
        [NodeResponse::Declined(Declined::NoData), NodeResponse::Disconnected, NodeResponse::Missed]
    );
    let phi: Vec<f64> = nodes.iter().map(|node| node.contribution.unwrap()).collect();
    assert_eq!(phi, [1.0, 0.0, 0.0, 0.0]);
    assert_eq!(world.last().round.closed, Tick(DEADLINE_MS.into()));
    // c is away when round 2 is drawn, and everybody is to take part while exploring: φ_c = 0 again.
    assert_eq!(world.asked(2), ["a", "b", "d"]);
    for name in ["a", "b", "d"] {
        world.updates(name, 10, &[1.0]);
    }
    let absent = &world.last().round.nodes[2];
    assert_eq!(
        (absent.why, absent.response, absent.contribution),
        (Why::Absent, NodeResponse::NotAsked, Some(0.0))
    );
}

#[test]
fn a_newcomer_while_exploring_enters_at_the_mean_and_is_measured_from_then_on() {
    let mut world = ScriptedFederation::with(small_config(2), 1, &["a", "b"]);
    world.comes_online("c", 1);
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
fn it_stops_exploring_when_the_rule_says_so() {
    let mut rules = small_config(3);
    rules.exploring.tested_nodes = 2;
    rules.exploring.window = 3;
    let mut world = ScriptedFederation::with(rules.clone(), 3, &["a", "b", "c"]);
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
        .map(|closed| closed.round.nodes.iter().map(|node| node.contribution.unwrap()).collect())
        .collect();
    let (last, before) = world.closed.split_last().unwrap();
    let verdict = last.round.verdict.as_ref().unwrap();
    assert!(verdict.stop && before.iter().all(|closed| !closed.round.verdict.as_ref().unwrap().stop));
    let rule = rules.exploring.stop_rule();
    assert_eq!(rules.exploring.rule, StopRuleKind::Paper);
    let p = verdict.p_value.unwrap();
    let pairs = [[0, 1], [0, 2], [1, 2]];
    assert!(
        pairs.iter().any(|tested| rule.judge(&history, tested, 1.0).p_value == Some(p)),
        "p is that of one pair of tested nodes"
    );
    assert_eq!(last.round.round as usize, history.len());
    assert_eq!(world.asked(last.round.round + 1).len(), 1, "k = 1 are drawn from now on");
}

/// Plays until it exploits, with an update of each node that `silent` does not name; in how many rounds.
fn settles(rules: FederationConfig, silent: &[&str]) -> u32 {
    let mut world = ScriptedFederation::with(rules, 3, &["a", "b", "c"]);
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    while world.phase() == Phase::Exploring {
        let round = world.federation().round();
        for (place, name) in ["a", "b", "c"].into_iter().enumerate() {
            let mut vector: [f32; 3] = std::array::from_fn(|_| rng.random_range(-0.2..0.2));
            vector[place] += 1.0;
            match silent.contains(&name) {
                true => world.declines(name),
                false => world.updates(name, 10, &vector),
            }
        }
        let verdict = world.last().round.verdict.as_ref().unwrap();
        assert!(round < 200, "never settles: {}", verdict.reason);
    }
    world.closed.len() as u32
}

fn watching_all() -> FederationConfig {
    let mut rules = small_config(3);
    rules.exploring.tested_nodes = 3;
    rules.exploring.window = 5;
    rules
}

/// Calibrated, so that the standing of a node that was shut out has to be left out as well.
#[test]
fn a_node_that_was_shut_out_does_not_keep_everybody_exploring() {
    for skip_uninformative in [false, true] {
        let mut rules = watching_all();
        rules.exploring.rule = StopRuleKind::Calibrated;
        rules.exploring.skip_uninformative = skip_uninformative;
        rules.exploring.precision = 0.1;
        let mut world = ScriptedFederation::with(rules, 3, &["a", "b", "c"]);
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        while world.phase() == Phase::Exploring {
            let round = world.federation().round();
            let asked: Vec<String> = world.asked(round).into_iter().map(str::to_owned).collect();
            for name in asked {
                let mut noise = || rng.random_range(-0.02..0.02);
                match (name.as_str(), round) {
                    // So much at once that its standing would not be known for long.
                    ("c", 3) => world.updates("c", 10, &[0.0, 0.0, 30.0]),
                    ("c", _) => world.declines("c"),
                    (name, _) => world.updates(name, 10, &[1.0 + noise(), 1.0 + noise(), 0.0]),
                }
            }
            if round == 10 {
                world.command(Command::Remove(node("c")));
            }
            assert!(round < 60, "never settles: {:?}", world.last().round.verdict);
        }
        let last = &world.last().round;
        let text = last.verdict_text().unwrap();
        assert!(last.verdict.as_ref().unwrap().stop && text.ends_with("; not tested: c"), "{text}");
    }
}

#[test]
fn silent_nodes_do_not_keep_everybody_exploring() {
    assert!(settles(watching_all(), &["c"]) > 5);
    assert!(settles(watching_all(), &["a", "c"]) > 5);
    let mut one = watching_all();
    one.exploring.tested_nodes = 1;
    for silent in ["a", "b", "c"] {
        assert!(settles(one.clone(), &[silent]) > 5, "another is tested instead");
    }
}

#[test]
fn contributions_that_sum_to_a_constant_settle_with_everybody_watched() {
    for utility in [Utility::Projection, Utility::Cosine] {
        let mut rules = watching_all();
        rules.federation.nodes_max = 3;
        rules.contribution.utility = utility;
        rules.contribution.estimator = Estimator::Exact;
        assert!(settles(rules, &[]) > 5);
    }
}
