//! Nodes that contribute more receive more: whole experiments with bounds that a broken mechanism does not reach.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use clap::ValueEnum;
use evenhand_fairness::Utility;
use evenhand_federation::OptimiserKind;
use evenhand_fleet::data::AsPublished;
use evenhand_fleet::data::{self, Dataset};
use evenhand_fleet::experiment::setup::Setup;
use evenhand_fleet::experiment::trial;
use evenhand_fleet::experiment::variant::Variant;
use evenhand_fleet::scenario::Corruption;
use evenhand_fleet::sim::Interrupt;
use evenhand_fleet::sim::RunFigures;

/// What a fair mechanism exceeds in both correlations with ζ, and one with shuffled rewards does not.
const FAIR: f64 = 0.45;

fn figures(setup: &Setup, folder: Option<&Path>) -> RunFigures {
    let pool = Arc::new(data::load(setup.dataset, folder, &setup.scenario().data_request()).unwrap());
    trial::run(setup, &pool, &Interrupt::default(), &mut |_| {}).unwrap().figures()
}

/// ρ(ζ, online loss) and ρ(ζ, staleness), means over seeds on which nothing was tuned.
fn fairness(setup: &Setup, folder: Option<&Path>, seeds: std::ops::Range<u64>) -> (f64, f64) {
    let count = (seeds.end - seeds.start) as f64;
    let each = seeds.map(|seed| {
        let found = figures(&Setup { seed, ..setup.clone() }, folder);
        (found.rho_loss.unwrap(), found.rho_staleness.unwrap())
    });
    let (loss, staleness) = each.fold((0.0, 0.0), |sum, each| (sum.0 + each.0, sum.1 + each.1));
    (loss / count, staleness / count)
}

fn assert_fair_unless_shuffled(setup: &Setup, folder: Option<&Path>, seeds: std::ops::Range<u64>) {
    let (loss, staleness) = fairness(setup, folder, seeds.clone());
    assert!(loss > FAIR && staleness > FAIR, "rho {loss} and {staleness}");
    let control = Setup { shuffled: true, ..setup.clone() };
    let (loss, staleness) = fairness(&control, folder, seeds);
    assert!(loss < FAIR && staleness < FAIR, "with shuffled rewards still rho {loss} and {staleness}");
}

fn published(dataset: Dataset, corruption: Corruption, variant: Variant) -> Setup {
    Setup::published(dataset, corruption, variant, AsPublished::Paper, 0)
}

#[test]
fn cleaner_points_are_rewarded_on_synthetic_data() {
    let setup = published(Dataset::Synthetic, Corruption::FeatureNoise, Variant::PaperCredit);
    assert_fair_unless_shuffled(&setup, None, 11..16);
}

#[test]
fn cleaner_points_are_rewarded_by_the_direction_as_well() {
    let setup = published(Dataset::Synthetic, Corruption::FeatureNoise, Variant::PaperCredit);
    assert_fair_unless_shuffled(&Setup { utility: Utility::Direction, ..setup }, None, 11..16);
}

#[test]
fn equal_sampling_probabilities_are_not_fair() {
    let setup = published(Dataset::Synthetic, Corruption::FeatureNoise, Variant::Fedavg);
    let (loss, staleness) = fairness(&setup, None, 11..16);
    assert!(loss < FAIR && staleness < FAIR, "rho {loss} and {staleness}");
}

#[test]
fn every_strategy_learns_and_equal_setups_have_equal_figures() {
    let timeless =
        |figures: RunFigures| RunFigures { seconds_fairness: 0.0, seconds_training: 0.0, ..figures };
    for variant in Variant::value_variants() {
        let setup = Setup {
            nodes: 6,
            k: 3,
            rounds: 40,
            window: 5,
            tested_nodes: 2,
            ..published(Dataset::Synthetic, Corruption::LabelNoise, *variant)
        };
        let found = timeless(figures(&setup, None));
        assert_eq!(found, timeless(figures(&setup, None)), "{variant:?}");
        let accuracy = found.online_accuracy.unwrap();
        assert!(accuracy.min > 0.5, "{variant:?}: {accuracy:?}, where guessing would reach a third");
    }
}

/// Only ten digit readers with the momentum of the published code, noisier ones than in the paper and an impatient stop rule,
/// so that it takes seconds.
#[test]
#[ignore = "needs EVENHAND_DATA"]
fn better_labels_are_rewarded_on_handwritten_digits() {
    let setup = Setup {
        level: 0.9,
        nodes: 10,
        rounds: 60,
        k: 4,
        temperature: 0.02,
        window: 9,
        tested_nodes: 4,
        alpha: 0.3,
        optimiser: OptimiserKind::Momentum,
        ..published(Dataset::Mnist, Corruption::LabelNoise, Variant::PaperCredit)
    };
    let folder = data::folder(None).expect("EVENHAND_DATA names a folder");
    assert_fair_unless_shuffled(&setup, Some(&folder), 11..14);
}
