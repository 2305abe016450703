//! Worth by retraining: the estimator on games with known values, and trainings on synthetic data.
#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};
use std::sync::Arc;

use evenhand_fairness::game::FunctionGame;
use evenhand_fairness::measures::pearson;
use evenhand_fairness::shapley::{self, Effort};
use evenhand_fleet::data::{self, AsPublished, Dataset, SamplePool};
use evenhand_fleet::experiment::worth::node_set::NodeSet;
use evenhand_fleet::experiment::worth::progress::TrainingProgress;
use evenhand_fleet::experiment::worth::regression::{ValuedCoalition, WorthEstimate, shapley_regression};
use evenhand_fleet::experiment::worth::run::{LoadScenario, WorthRunner};
use evenhand_fleet::experiment::worth::sampling::sampled_pairs;
use evenhand_fleet::experiment::worth::settings::WorthSettings;
use evenhand_fleet::experiment::worth::training::RetrainingGame;
use evenhand_fleet::scenario::{Corruption, ScenarioConfig};
use evenhand_fleet::sim::Interrupt;
use evenhand_fleet::sim::progress::ProgressStyle;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

/// The estimate from about `coalitions` valued coalitions.
fn estimated(nodes: usize, coalitions: usize, seed: u64, value: impl Fn(NodeSet) -> f64) -> WorthEstimate {
    let sampled = sampled_pairs(nodes, coalitions, &mut ChaCha8Rng::seed_from_u64(seed));
    let valued = |one: &evenhand_fleet::experiment::worth::sampling::SampledCoalition| ValuedCoalition {
        members: one.members,
        weight: one.weight,
        pair: one.pair,
        value: value(one.members),
    };
    let rows: Vec<ValuedCoalition> = sampled.iter().map(valued).collect();
    shapley_regression(nodes, (value(NodeSet::EMPTY), value(NodeSet::all(nodes))), &rows)
}

fn close(found: &[f64], expected: &[f64], tolerance: f64) {
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < tolerance, "{found} instead of {expected}");
    }
}

/// A runway is as long as the largest aircraft needs.
fn airport(costs: &[f64]) -> impl Fn(NodeSet) -> f64 {
    |members| members.iter().map(|node| costs[node]).fold(0.0, f64::max)
}

#[test]
fn an_additive_game_is_known_from_few_coalitions() {
    let values: Vec<f64> = (0..30).map(|node| f64::from(node * node) / 100.0).collect();
    let found = estimated(30, 150, 1, |members| members.iter().map(|node| values[node]).sum());
    close(&found.values, &values, 1e-6);
    assert!(found.standard_errors.unwrap().iter().all(|error| *error < 1e-6));
}

#[test]
fn gains_by_the_size_of_a_coalition_alone_do_not_disturb() {
    // A sum and a concave function of the size alone: φᵢ = valueᵢ + f(N)/N.
    let values: Vec<f64> = (0..20).map(|node| f64::from(node) / 10.0).collect();
    let gain = |size: usize| 5.0 * (1.0 - 1.0 / (1.0 + size as f64));
    let found = estimated(20, 160, 2, |members| {
        members.iter().map(|node| values[node]).sum::<f64>() + gain(members.len())
    });
    let expected: Vec<f64> = values.iter().map(|value| value + gain(20) / 20.0).collect();
    close(&found.values, &expected, 0.05);
}

#[test]
fn all_coalitions_of_airport_and_glove_games_yield_their_shapley_values() {
    // Littlechild and Owen 1973: each pays its part of every piece of runway that it needs.
    let costs = [1.0, 2.0, 4.0, 7.0];
    let first = 1.0 / 4.0;
    let (second, third) = (first + 1.0 / 3.0, first + 1.0 / 3.0 + 2.0 / 2.0);
    let found = estimated(4, 16, 1, airport(&costs));
    close(&found.values, &[first, second, third, third + 3.0], 1e-7);
    assert_eq!(found.standard_errors, Some(vec![0.0; 4]));
    // One left glove, two right ones.
    let glove = |members: NodeSet| {
        f64::from(u8::from(members.contains(0) && (members.contains(1) || members.contains(2))))
    };
    close(&estimated(3, 8, 1, glove).values, &[2.0 / 3.0, 1.0 / 6.0, 1.0 / 6.0], 1e-7);
}

#[test]
fn a_sampled_airport_game_is_within_its_errors() {
    let costs: Vec<f64> = (1..=14).map(f64::from).collect();
    let game = airport(&costs);
    let mut oracle =
        FunctionGame::new(14, |members: &[bool]| game((0..14).filter(|node| members[*node]).collect()));
    let exact = shapley::exact(&mut oracle).unwrap().values;
    let (mut within, mut all) = (0, 0);
    for seed in 0..20 {
        let found = estimated(14, 300, seed, &game);
        for ((value, error), exact) in found.values.iter().zip(found.standard_errors.unwrap()).zip(&exact) {
            all += 1;
            within += usize::from((value - exact).abs() <= 2.0 * error);
        }
    }
    // 95 % of normal errors; jackknife errors are rather too large than too small.
    assert!(within as f64 >= 0.9 * f64::from(all), "{within} of {all}");
}

#[test]
fn regression_is_more_precise_than_permutations_of_as_many_trainings() {
    // Saturating, as learning is: the more a coalition has already, the less a node adds; with a little luck.
    let nodes = 16;
    let strengths: Vec<f64> = (0..nodes).map(|node| 0.1 + node as f64 / 20.0).collect();
    let luck = |members: NodeSet| {
        let bits = u64::from_str_radix(&members.text(), 16).unwrap();
        0.02 * ChaCha8Rng::seed_from_u64(bits).random::<f64>()
    };
    let value = |members: NodeSet| {
        1.0 - (-members.iter().map(|node| strengths[node]).sum::<f64>()).exp() + luck(members)
    };
    let mut game = FunctionGame::new(nodes, |s: &[bool]| value((0..nodes).filter(|node| s[*node]).collect()));
    let exact = shapley::exact(&mut game).unwrap().values;
    let error = |found: &[f64]| -> f64 {
        found.iter().zip(&exact).map(|(found, exact)| (found - exact).powi(2)).sum()
    };
    let (mut regression, mut permutations) = (0.0, 0.0);
    for seed in 0..10 {
        // Ten orders, of 15 trainings each beside those of no and of all nodes.
        regression += error(&estimated(nodes, 150, seed, value).values);
        let effort = Effort { samples: 10, standard_error: None };
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        permutations += error(&shapley::permutation(&mut game, effort, &mut rng).unwrap().values);
    }
    assert!(regression < permutations, "squared errors {regression} and {permutations}");
}

fn tiny(nodes: usize) -> WorthSettings {
    let base = WorthSettings::published(Dataset::Synthetic, Corruption::LabelNoise, AsPublished::Paper, 3);
    WorthSettings {
        scenario: ScenarioConfig { nodes, level: 1.0, rounds: 16, batch: 2, ..base.scenario },
        coalitions: 1 << nodes,
        steps: 12,
        step_samples: 6,
        learning_rate: Some(0.02),
        held_out: 30,
    }
}

fn measured(
    out: &std::path::Path,
    settings: &WorthSettings,
) -> evenhand_fleet::experiment::worth::truth::WorthTruth {
    let load: &LoadScenario<'_> =
        &|scenario| Ok(data::load(scenario.dataset, None, &scenario.data_request())?);
    let runner = WorthRunner { out, jobs: 2, load, interrupt: &Interrupt::default() };
    let mut progress = TrainingProgress::new(std::io::sink(), ProgressStyle::Silent, 1);
    runner.truth(settings, &mut progress).unwrap().unwrap()
}

#[test]
fn the_worth_of_a_tiny_training_is_that_of_all_its_coalitions() {
    let (out, settings) = (tempfile::tempdir().unwrap(), tiny(5));
    let truth = measured(out.path(), &settings);
    assert_eq!((truth.trainings, truth.nodes.len()), (32, 5));
    let pool =
        Arc::new(data::load(settings.scenario.dataset, None, &settings.scenario.data_request()).unwrap());
    let game = RetrainingGame::new(&settings, &pool).unwrap();
    let mut trainer = game.trainer();
    let mut oracle = FunctionGame::new(5, |members: &[bool]| {
        let members = (0..5).filter(|node| members[*node]).collect();
        -game.score(&mut trainer, members, 0.02).unwrap().found.loss
    });
    let exact = shapley::exact(&mut oracle).unwrap().values;
    let found: Vec<f64> = truth.nodes.iter().map(|node| node.worth).collect();
    close(&found, &exact, 1e-6);
    let gained = truth.initial.loss - truth.all.loss;
    assert!((found.iter().sum::<f64>() - gained).abs() < 1e-9, "worths share out what all gain");
    assert!(truth.nodes.iter().all(|node| node.se == Some(0.0)));
}

#[test]
fn what_a_node_gives_is_its_value_where_it_is_no_judge() {
    let (out, settings) = (tempfile::tempdir().unwrap(), tiny(4));
    let owned = |scenario: &ScenarioConfig| {
        let pool = data::load(scenario.dataset, None, &scenario.data_request()).unwrap();
        let each = pool.len() / 4;
        SamplePool { owners: Some((0..4).map(|node| node * each..(node + 1) * each).collect()), ..pool }
    };
    let load: &LoadScenario<'_> = &|scenario| Ok(owned(scenario));
    let runner = WorthRunner { out: out.path(), jobs: 2, load, interrupt: &Interrupt::default() };
    let mut progress = TrainingProgress::new(std::io::sink(), ProgressStyle::Silent, 1);
    let truth = runner.truth(&settings, &mut progress).unwrap().unwrap();

    let game = RetrainingGame::new(&settings, &Arc::new(owned(&settings.scenario))).unwrap();
    let judges = game.judges();
    assert_eq!(judges.iter().map(|(node, _)| *node).collect::<Vec<_>>(), [0, 1, 2, 3]);
    let mut trainer = game.trainer();
    for (node, found) in truth.nodes.iter().enumerate() {
        let mut oracle = FunctionGame::new(4, |members: &[bool]| {
            let members = (0..4).filter(|node| members[*node]).collect();
            let judged = game.score(&mut trainer, members, 0.02).unwrap();
            let mean: f64 = judges.iter().zip(&judged.losses).map(|((_, share), loss)| share * loss).sum();
            assert!((mean - judged.found.loss).abs() < 1e-6, "all judges together are everybody");
            let others = judges.iter().zip(&judged.losses).filter(|((judge, _), _)| *judge != node);
            let (weight, loss) = others
                .fold((0.0, 0.0), |(weight, sum), ((_, share), loss)| (weight + share, sum + share * loss));
            -loss / weight
        });
        let exact = shapley::exact(&mut oracle).unwrap().values[node];
        assert!((found.worth_to_others.unwrap() - exact).abs() < 1e-6, "{found:?}, not {exact}");
    }
    assert!(measured(tempfile::tempdir().unwrap().path(), &tiny(4)).nodes[0].worth_to_others.is_none());
}

#[test]
fn wrong_labels_are_worth_less() {
    let out = tempfile::tempdir().unwrap();
    let truth = measured(out.path(), &WorthSettings { steps: 40, ..tiny(6) });
    assert!(truth.rho_zeta.unwrap() > 0.7, "{truth:?}");
    let (qualities, worths): (Vec<f64>, Vec<f64>) =
        truth.nodes.iter().map(|node| (-node.zeta, node.worth)).unzip();
    assert_eq!(pearson(&qualities, &worths), truth.rho_zeta);
}

#[test]
fn coalitions_that_share_their_data_share_their_order() {
    let settings = tiny(4);
    let pool =
        Arc::new(data::load(settings.scenario.dataset, None, &settings.scenario.data_request()).unwrap());
    let game = RetrainingGame::new(&settings, &pool).unwrap();
    let mut trainer = game.trainer();
    let mut score =
        |members: &[usize]| game.score(&mut trainer, members.iter().copied().collect(), 0.02).unwrap();
    assert_eq!(score(&[0, 2]), score(&[2, 0]));
    assert_ne!(score(&[0, 2]), score(&[0, 1, 2]));
    let initial = score(&[]);
    assert!(score(&[0]).found.loss < initial.found.loss, "one honest node teaches something");
}

const SMALL: &str = "--nodes 4 --trials 2 --rounds 12 --batch 2 --steps 10 --held-out 20 --corruption label-noise \
                     --level 1 --learning-rate 0.01";

fn worth(out: &std::path::Path, flags: &str, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenhand-fleet"));
    command
        .arg("worth")
        .args(flags.split_whitespace())
        .args(more)
        .arg("--out")
        .arg(out)
        .env_remove("EVENHAND_DATA");
    command.output().unwrap()
}

#[test]
fn worth_is_measured_once_and_standings_are_compared_with_it() {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().join("worth");
    let first = worth(&folder, SMALL, &["--json", "--no-progress"]);
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    let json: Value = serde_json::from_slice(&first.stdout).unwrap();
    let node = &json["trials"][1]["nodes"][0];
    assert!(node["zeta"].is_f64() && node["worth"].is_f64() && node["se"].is_f64(), "{node}");
    assert!(json["rho_zeta"]["mean"].is_f64() && json["level_0"]["rho_zeta"]["mean"].is_f64(), "{json}");
    // Without the results, the trainings are still there.
    std::fs::remove_dir_all(folder.join("synthetic")).unwrap();
    let trained = || -> u64 {
        let files = std::fs::read_dir(folder.join("games")).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
    };
    let before = trained();
    let again = worth(&folder, SMALL, &["--json"]);
    assert!(before > 0 && trained() == before, "nothing to train");
    assert_eq!(
        serde_json::from_slice::<Value>(&again.stdout).unwrap()["trials"][0]["nodes"][0]["id"],
        "node-1"
    );
    let table = String::from_utf8(worth(&folder, SMALL, &[]).stdout).unwrap();
    assert!(table.contains("level 0: ") && table.contains("node-4"), "{table}");

    let flags = "experiment --corruption label-noise --level 1 --nodes 4 --rounds 12 --k 2 --tested-nodes 2 --window 4 --batch 2 --trials 3 --json \
                 --no-control --strategy evenhand,fedavg";
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenhand-fleet"));
    command
        .args(flags.split_whitespace())
        .arg("--worth")
        .arg(&folder)
        .arg("--out")
        .arg(out.path().join("trials"));
    let output = command.output().unwrap();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let values = json["strategies"][0]["rho_worth"]["values"].as_array().unwrap();
    assert_eq!(values.len(), 2, "the third seed has no worth");
    assert!(json["strategies"][1]["rho_worth"].is_null(), "FedAvg measures nothing");
}

#[test]
fn impossible_worths_are_answered_with_a_sentence() {
    let out = tempfile::tempdir().unwrap();
    for (flags, words) in [
        ("--nodes 129 --coalitions 200", "--nodes 129: between 2 and 128 nodes"),
        ("--coalitions 3", "--coalitions 3: at least as many as nodes"),
        ("--learning-rate 0", "--learning-rate 0: a number above 0"),
        ("--dataset mnist", "--data DIR"),
        ("--corruption stuck-meter", "no series of readings"),
    ] {
        let output = worth(out.path(), flags, &[]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(64), "{flags}: {said}");
        assert!(said.contains(words), "{flags}: {said}");
    }
}
