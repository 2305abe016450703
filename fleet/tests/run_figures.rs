//! The table, the JSON object and the measures behind them.
#![allow(clippy::unwrap_used)]

mod support;

use evenhand_fairness::{Sampler, SamplerKind, sampling_probabilities};
use evenhand_fleet::cli::run_table;
use evenhand_fleet::sim::RunEnd;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

#[test]
fn the_table_has_one_row_a_node_and_the_figures_under_it() {
    let run = support::small();
    assert_eq!(run_table::text(&run, &run.figures()), include_str!("golden/table.txt"));
}

#[test]
fn the_json_object_has_the_promised_names() {
    let json = serde_json::to_value(support::small().figures()).unwrap();
    let mut names: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    let promised = [
        "autocorrelation",
        "bytes_down",
        "bytes_up",
        "ended",
        "henze_zirkler",
        "nodes",
        "online_accuracy",
        "online_loss",
        "online_loss_std",
        "online_mape",
        "recall",
        "rho_accuracy",
        "rho_loss",
        "rho_loss_late",
        "rho_staleness",
        "rho_standing",
        "rounds",
        "seconds_fairness",
        "seconds_training",
        "skill",
        "t_alpha",
    ];
    assert_eq!(names, promised);
    let expected = serde_json::json!({
        "id": "c", "zeta": 0.8, "standing": 0.2, "sampling_probability": 0.2, "drawn": 2,
        "mean_staleness": 1.5, "longest_staleness": 2, "online_loss": 0.625, "online_mape": 0.625,
        "online_accuracy": null, "skill": null,
    });
    assert_eq!(json["nodes"][2], expected);
    assert_eq!(
        (&json["t_alpha"], &json["rounds"], &json["ended"]),
        (&2.into(), &4.into(), &"complete".into())
    );
    assert_eq!((&json["bytes_up"], &json["bytes_down"]), (&1_234.into(), &2_500_000.into()));
    // ζ = 0, 0.4, 0.8 with losses 0.5, 0.5, 0.625: √3/2.
    assert!((json["rho_loss"].as_f64().unwrap() - 0.75f64.sqrt()).abs() < 1e-12);
    assert_eq!(json["recall"], 1.0);
    assert_eq!(json["nodes"][0]["skill"], 0.125);
    assert_eq!(json["skill"]["mean"], 0.06125, "of the nodes that have one");
}

#[test]
fn the_first_fifth_of_the_rounds_is_no_part_of_the_late_loss() {
    let mut run = support::small();
    let figures = run.figures();
    assert_eq!(figures.rho_loss_late, figures.rho_loss, "a fifth of four rounds is no round");
    let mut first = run.online[0].clone();
    first[0].loss = 9.0;
    run.online.insert(0, first);
    let longer = run.figures();
    assert!(longer.rho_loss < Some(0.0), "{longer:?}");
    assert_eq!(longer.rho_loss_late, figures.rho_loss);
}

#[test]
fn staleness_counts_rounds_since_the_model_was_received() {
    let run = support::small();
    assert_eq!(run.log.staleness(), [[0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 1, 2]]);
    let waits: Vec<f64> = run.figures().nodes.iter().map(|node| node.mean_staleness).collect();
    assert_eq!(waits, [0.0, 0.5, 1.5], "only rounds in which nodes are drawn count");
}

#[test]
fn a_run_without_rounds_has_no_figures_and_does_not_panic() {
    let mut run = support::small();
    run.log.rounds.clear();
    run.online.clear();
    run.ended = RunEnd::Interrupted;
    let figures = run.figures();
    assert_eq!((figures.rho_loss, figures.rho_staleness, figures.t_alpha), (None, None, None));
    assert!(run_table::text(&run, &figures).contains("interrupted after 0 of 4 rounds"));
}

/// ρ of ζ with staleness when 30 nodes are drawn by standings that follow ζ, or by the same standings shuffled.
fn rho(seed: u64, shuffled: bool) -> f64 {
    let (nodes, k) = (30, 12);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut standings: Vec<f64> = (0..nodes).map(|node| (1.5 - 0.9 * node as f64 / 29.0) / 30.0).collect();
    if shuffled {
        standings.shuffle(&mut rng);
    }
    let probabilities = sampling_probabilities(&standings, 1.0 / 150.0);
    let mut sampler = Sampler::new(SamplerKind::Credit);
    let run = support::drawn_by(nodes, 130, |_| sampler.draw(&probabilities, k, &mut rng));
    run.figures().rho_staleness.unwrap()
}

#[test]
fn shuffled_standings_destroy_the_correlation() {
    let mean = |shuffled| (0..20).map(|seed| rho(seed, shuffled)).sum::<f64>() / 20.0;
    let (fair, broken) = (mean(false), mean(true));
    assert!(fair > 0.85, "{fair}");
    assert!(broken.abs() < 0.2, "{broken}");
}
