//! Clean meters stand above noisy ones when they are measured on rows of day-ahead forecasts.
#![allow(clippy::unwrap_used)]

use evenhand_fairness::measures::pearson;
use evenhand_fairness::reference::{ReferenceAnswer, ReferenceMeasurement};
use evenhand_models::{Batch, LoadOptions, Loss, Model, Trainer, shipped};
use evenhand_node::source::household::{Household, HouseholdConfig};
use evenhand_node::window::{DayAheadWindow, ReadingsFloor, SeriesConfig};
use evenhand_protocol::reference::reference_weights;

const HOMES: u64 = 12;
const ROUNDS: u64 = 40;
const STEPS_A_ROUND: u64 = 96;

/// ρ of data quality, −ζ, with the standings by gradients of what `rows` takes from each home in each round.
fn rho(seed: u64, loss: Loss, rows: impl Fn(&mut DayAheadWindow) -> Option<Batch>) -> f64 {
    let model = Model::load(shipped::LOAD_QUANTILES, &LoadOptions::default()).unwrap();
    let weights = reference_weights(&model.initial_weights(), seed);
    let mut trainer = Trainer::new(&model);
    let noise = |home: u64| 0.9 * home as f64 / (HOMES - 1) as f64;
    let mut homes: Vec<(Household, DayAheadWindow)> = (0..HOMES)
        .map(|home| {
            let (noise, seed, weather_seed) = (noise(home), seed * 1_000_003 + home, seed);
            let household =
                HouseholdConfig { seed, noise, weather_seed, step_s: 1800, ..HouseholdConfig::default() };
            let series = SeriesConfig { step_s: 1800, history_steps: 384, ..SeriesConfig::default() };
            (Household::new(household), DayAheadWindow::new(series))
        })
        .collect();
    let mut measurement = ReferenceMeasurement::new(200.0);
    for round in 0..ROUNDS {
        let mut gradient = |(household, window): &mut (Household, DayAheadWindow)| {
            for index in round * STEPS_A_ROUND..(round + 1) * STEPS_A_ROUND {
                window.add(household.noisy(index));
            }
            trainer.gradient(&weights, &rows(window)?, loss).ok().map(|found| found.gradient)
        };
        let gradients: Vec<Option<Vec<f32>>> = homes.iter_mut().map(&mut gradient).collect();
        let answers: Vec<ReferenceAnswer<'_>> = (gradients.iter().enumerate())
            .map(|(node, gradient)| ReferenceAnswer { node, gradient: gradient.as_deref() })
            .collect();
        measurement.measure(&answers).unwrap();
    }
    let standings: Vec<f64> = (0..HOMES as usize).map(|node| measurement.standing(node).value).collect();
    let quality: Vec<f64> = (0..HOMES).map(|home| -noise(home)).collect();
    pearson(&quality, &standings).unwrap()
}

#[test]
fn noise_costs_standing() {
    let mean = |rho: &dyn Fn(u64) -> f64| (1..=3).map(rho).sum::<f64>() / 3.0;
    let measured = mean(&|seed| {
        rho(seed, Loss::Mse, |window| {
            let taken = window.unmeasured(512, ReadingsFloor::NONE)?;
            window.mark_measured(taken.upto);
            Some(taken.batch)
        })
    });
    assert!(measured > 0.5, "rho {measured}");
    // The control: by the corrections that are trained on, noise would pay.
    let control = mean(&|seed| {
        rho(seed, Loss::Pinball, |window| {
            let taken = window.fresh_rows(512)?;
            window.mark_measured(taken.upto);
            Some(taken.batch)
        })
    });
    println!("rho {measured}, by corrections {control}");
    assert!(control < 0.0, "rho {control} by corrections");
}
