//! Invented trials, which take no time.

use std::path::Path;

use evenhand_fairness::measures::Summary;
use evenhand_fleet::data::AsPublished;
use evenhand_fleet::data::{Dataset, SamplePool, SampleTargets};
use evenhand_fleet::experiment::ExperimentError;
use evenhand_fleet::experiment::details::TrialDetails;
use evenhand_fleet::experiment::detection::DetectionCounts;
use evenhand_fleet::experiment::progress::TrialProgress;
use evenhand_fleet::experiment::record::{LearningCurve, TrialResult};
use evenhand_fleet::experiment::runner::{RunTrial, TrialRecords, TrialRunner};
use evenhand_fleet::experiment::setup::Setup;
use evenhand_fleet::experiment::variant::Variant;
use evenhand_fleet::scenario::Corruption;
use evenhand_fleet::sim::Interrupt;
use evenhand_fleet::sim::progress::ProgressStyle;
use evenhand_fleet::sim::{NodeFigures, RunEnd, RunFigures};

pub(crate) const TRIALS: u64 = 3;

pub(crate) fn setup(variant: Variant) -> Setup {
    Setup::published(Dataset::Mnist, Corruption::FeatureNoise, variant, AsPublished::Paper, 1)
}

/// One setup a strategy.
pub(crate) fn all() -> Vec<Setup> {
    Variant::all().into_iter().map(setup).collect()
}

/// All trials of all strategies.
pub(crate) fn trials(setups: &[Setup]) -> Vec<Setup> {
    setups.iter().flat_map(|setup| (0..TRIALS).map(|trial| setup.with_seed(setup.seed + trial))).collect()
}

/// What never happened: fairer for ours, with some luck by seed; FedAvg has no correlation at all.
pub(crate) fn invented(setup: &Setup) -> TrialResult {
    let luck = (setup.seed * 7919 % 13) as f64 / 13.0;
    let place = setup.variant.position() as f64;
    let rho = (setup.variant != Variant::Fedavg).then_some(0.9 - 0.11 * place + 0.08 * luck);
    let accuracy = 0.62 - 0.012 * place + 0.01 * luck;
    let node = |index: usize| {
        let zeta = 0.9 * index as f64 / (setup.nodes - 1) as f64;
        let wobble = ((index * 7919 + setup.seed as usize * 31) % 17) as f64 / 17.0;
        NodeFigures {
            id: format!("node-{index:02}"),
            zeta,
            standing: 0.05 - 0.03 * zeta,
            sampling_probability: 1.0 / setup.nodes as f64,
            drawn: 40,
            mean_staleness: 1.0 + 2.0 * zeta + wobble,
            longest_staleness: 9,
            online_loss: 1.2 + 0.1 * zeta + 0.05 * wobble,
            ..node_without_scores()
        }
    };
    let score = |round: u32| accuracy * (1.0 - (-f64::from(round) / 25.0).exp());
    TrialResult {
        details: TrialDetails::default(),
        detections: DetectionCounts::default(),
        figures: RunFigures {
            rho_standing: None,
            rho_loss: rho,
            rho_loss_late: rho,
            rho_staleness: rho,
            rho_accuracy: rho.map(|rho| -rho),
            online_loss: Some(Summary { mean: 1.2, min: 1.1, max: 1.4, std: 0.05 }),
            online_loss_std: Some(0.05),
            online_mape: None,
            online_accuracy: Some(Summary {
                mean: accuracy,
                min: accuracy - 0.05,
                max: accuracy + 0.02,
                std: 0.011,
            }),
            skill: None,
            t_alpha: setup.variant.is_ours().then_some(40 + setup.seed as u32),
            recall: setup.variant.is_ours().then_some(0.8),
            henze_zirkler: None,
            autocorrelation: None,
            rounds: setup.rounds,
            bytes_up: 1,
            bytes_down: 1,
            seconds_training: 12.0,
            seconds_fairness: 0.5,
            ended: RunEnd::Complete,
            nodes: (0..setup.nodes).map(node).collect(),
        },
        curve: LearningCurve {
            losses: (1..=setup.rounds).map(|round| Some(2.0 - score(round))).collect(),
            scores: (1..=setup.rounds).map(|round| Some(score(round))).collect(),
        },
        passes: 1,
    }
}

fn node_without_scores() -> NodeFigures {
    serde_json::from_value(serde_json::json!({
        "id": "", "zeta": 0.0, "standing": 0.0, "sampling_probability": 0.0, "drawn": 0, "mean_staleness": 0.0,
        "longest_staleness": 0, "online_loss": 0.0, "online_mape": 0.0, "online_accuracy": 0.6,
    }))
    .unwrap()
}

pub(crate) fn no_data(_: &Setup) -> Result<SamplePool, ExperimentError> {
    Ok(SamplePool {
        shape: vec![1],
        features: Vec::new(),
        targets: SampleTargets::Classes { of: Vec::new(), count: 1 },
        owners: None,
        recorded: 0,
        note: None,
    })
}

pub(crate) fn run_in(
    out: &Path,
    setups: &[Setup],
    jobs: usize,
    run: &RunTrial<'_>,
) -> Result<TrialRecords, ExperimentError> {
    let interrupt = Interrupt::default();
    let runner = TrialRunner { out, jobs, load: &no_data, run, interrupt: &interrupt };
    runner.records(setups, TrialProgress::new(std::io::sink(), ProgressStyle::Plain))
}

pub(crate) fn finished(out: &Path, jobs: usize) -> TrialRecords {
    run_in(out, &trials(&all()), jobs, &|setup, _, _, _| Ok(invented(setup))).unwrap()
}
