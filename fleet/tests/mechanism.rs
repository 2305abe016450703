//! Whether whoever gives more receives more: whole experiments with bounds that a broken mechanism does not reach.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use clap::ValueEnum;
use evenhand_fairness::Utility;
use evenhand_fleet::corruption::Corruption;
use evenhand_fleet::data::{self, DataError, Dataset, Request};
use evenhand_fleet::experiment::setup::{AsPublished, Contender, Setup};
use evenhand_fleet::experiment::trial;
use evenhand_fleet::outcome::Figures;
use evenhand_fleet::transport::Interrupt;

/// What a fair mechanism exceeds in both correlations with ζ, and one whose rewards go astray does not.
const FAIR: f64 = 0.45;

fn figures(setup: &Setup, folder: Option<&Path>) -> Figures {
    let pool = Arc::new(data::load(setup.dataset, folder, &Request::of(setup)).unwrap());
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
    assert!(loss < FAIR && staleness < FAIR, "with rewards gone astray still rho {loss} and {staleness}");
}

fn published(dataset: Dataset, corruption: Corruption, contender: Contender) -> Setup {
    Setup::published(dataset, corruption, contender, AsPublished::Paper, 0)
}

#[test]
fn cleaner_points_are_rewarded_on_made_up_data() {
    let setup = published(Dataset::Synthetic, Corruption::FeatureNoise, Contender::EvenhandCredit);
    assert_fair_unless_shuffled(&setup, None, 11..16);
}

#[test]
fn cleaner_points_are_rewarded_by_the_course_as_well() {
    let setup = published(Dataset::Synthetic, Corruption::FeatureNoise, Contender::EvenhandCredit);
    assert_fair_unless_shuffled(&Setup { utility: Utility::Course, ..setup }, None, 11..16);
}

#[test]
fn drawing_everybody_alike_is_not_fair() {
    let setup = published(Dataset::Synthetic, Corruption::FeatureNoise, Contender::Fedavg);
    let (loss, staleness) = fairness(&setup, None, 11..16);
    assert!(loss < FAIR && staleness < FAIR, "rho {loss} and {staleness}");
}

#[test]
fn every_strategy_learns_and_equal_setups_have_equal_figures() {
    let timeless = |figures: Figures| Figures { seconds_fairness: 0.0, seconds_training: 0.0, ..figures };
    for contender in Contender::value_variants() {
        let setup = Setup {
            nodes: 6,
            k: 3,
            rounds: 40,
            window: 5,
            watched: 2,
            ..published(Dataset::Synthetic, Corruption::LabelNoise, *contender)
        };
        let found = timeless(figures(&setup, None));
        assert_eq!(found, timeless(figures(&setup, None)), "{contender:?}");
        let accuracy = found.online_accuracy.unwrap();
        assert!(accuracy.min > 0.5, "{contender:?}: {accuracy:?}, where guessing would reach a third");
    }
}

/// Only ten digit readers, noisier ones than in the paper and an impatient stop rule, so that it takes seconds.
#[test]
fn better_labels_are_rewarded_on_handwritten_digits() {
    let setup = Setup {
        level: 0.9,
        nodes: 10,
        rounds: 60,
        k: 4,
        temperature: 0.02,
        window: 9,
        watched: 4,
        strictness: 0.3,
        ..published(Dataset::Mnist, Corruption::LabelNoise, Contender::EvenhandCredit)
    };
    let folder = data::folder(None);
    match data::load(setup.dataset, folder.as_deref(), &Request::of(&setup)) {
        Ok(_) => assert_fair_unless_shuffled(&setup, folder.as_deref(), 11..14),
        Err(error @ (DataError::NoFolder { .. } | DataError::Missing { .. })) => {
            eprintln!("nothing checked: {error}");
        }
        Err(error) => panic!("{error}"),
    }
}
