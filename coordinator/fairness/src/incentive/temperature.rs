//! The temperature β that gives a wanted staleness.

use super::{expected_staleness, sampling_probabilities};
use crate::FairnessError;
use std::cmp::Ordering;

/// The temperatures that satisfy a demand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TemperatureRange {
    /// The lowest, 0 if there is none: most reward for contribution.
    pub low: f64,
    /// The one that satisfies it with most room.
    pub best: f64,
    /// The highest, ∞ if there is none: most equality.
    pub high: f64,
}

/// The temperature β at which the worst-placed node's [`expected_staleness`] Γ is `wanted`, by bisection: Γ of the lowest
/// standing falls as β grows, from ∞ towards that of equal probabilities.
///
/// # Errors
/// [`FairnessError::Unreachable`] where equal standings or equal probabilities leave another Γ at every temperature; other
/// variants name an input that is empty, out of range or not finite.
///
/// # Example
/// ```
/// # use evenhand_fairness::{expected_staleness, sampling_probabilities, temperature_for_worst_staleness};
/// let standings = [0.1, 0.2, 0.4];
/// let beta = temperature_for_worst_staleness(&standings, 1, 50.0)?;
/// let worst = expected_staleness(sampling_probabilities(&standings, beta)[0], 1);
/// assert!((worst - 50.0).abs() < 1e-9);
/// # Ok::<(), evenhand_fairness::FairnessError>(())
/// ```
pub fn temperature_for_worst_staleness(standings: &[f64], k: u32, wanted: f64) -> Result<f64, FairnessError> {
    let spread = check(standings, k)?;
    if !wanted.is_finite() {
        return Err(FairnessError::NotFinite { field: "worst_staleness".into() });
    }
    let equal = expected_staleness(1.0 / standings.len() as f64, k);
    let demand = || format!("worst_staleness = {wanted}");
    if spread == 0.0 {
        return Err(FairnessError::Unreachable {
            demand: demand(),
            reachable: format!("all standings are equal, so it is {equal} at every temperature"),
        });
    }
    if wanted <= equal {
        return Err(FairnessError::Unreachable {
            demand: demand(),
            reachable: format!(
                "even equal probabilities leave {equal} with k = {k} of {} nodes; ask for more than that, or raise k",
                standings.len()
            ),
        });
    }
    let worst = |temperature: f64| {
        let probabilities = sampling_probabilities(standings, temperature);
        expected_staleness(probabilities.iter().copied().fold(f64::INFINITY, f64::min), k)
    };
    let satisfied = |temperature: f64| worst(temperature) <= wanted;
    let (mut low, mut high) = (spread, spread);
    while satisfied(low) {
        low /= 16.0;
    }
    while !satisfied(high) && high < f64::MAX / 16.0 {
        high *= 16.0;
    }
    Ok(edge(low, high, satisfied))
}

/// The temperatures at which staleness is inversely proportional to standing, up to a band.
///
/// # Formula
/// r₁ ≤ ψᵢΓᵢ ≤ r₂ for every node i, `band` = (r₁, r₂).
///
/// Neither side is monotone in β (a standing above the mean is drawn most often at some β in between),
/// so the range of all β that tell nodes apart in double precision is searched on a logarithmic grid
/// for the one with most room, and the range around it is then found by bisection.
///
/// # Errors
/// [`FairnessError::Unreachable`] with the nearest band that can be had; other variants name an input that is empty, out of
/// range or not finite.
pub fn temperature_for_band(
    standings: &[f64],
    k: u32,
    band: (f64, f64),
) -> Result<TemperatureRange, FairnessError> {
    let spread = check(standings, k)?;
    if band.0.partial_cmp(&band.1).is_none_or(Ordering::is_gt) {
        return Err(FairnessError::OutOfRange {
            field: "band[0]".into(),
            found: band.0,
            wanted: "a number that is at most band[1]",
        });
    }
    let products = |temperature: f64| {
        let product = |(standing, probability): (&f64, f64)| {
            if *standing == 0.0 { 0.0 } else { standing * expected_staleness(probability, k) }
        };
        let products = standings.iter().zip(sampling_probabilities(standings, temperature)).map(product);
        products.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), x| (least.min(x), most.max(x)))
    };
    // The distance of the products from the band; negative inside.
    let excess = |temperature: f64| {
        let (least, most) = products(temperature);
        (band.0 - least).max(most - band.1)
    };
    let scale = if spread > 0.0 { spread } else { 1.0 };
    let grid: Vec<f64> =
        (0..=GRID).map(|step| scale * (GRID_FROM + GRID_STEP * f64::from(step)).exp()).collect();
    let outside: Vec<f64> = grid.iter().map(|temperature| excess(*temperature)).collect();
    let nearest = (0..grid.len()).min_by(|a, b| outside[*a].total_cmp(&outside[*b])).unwrap_or(0);
    let (below, above) = (nearest.saturating_sub(1), (nearest + 1).min(grid.len() - 1));
    let best = lowest_between(grid[below], grid[above], &excess);
    if excess(best) > 0.0 {
        let (least, most) = products(best);
        return Err(FairnessError::Unreachable {
            demand: format!("band = [{}, {}]", band.0, band.1),
            reachable: format!("nearest to it is [{least}, {most}], at temperature {best}"),
        });
    }
    let inside = |temperature: f64| excess(temperature) <= 0.0;
    let low = match outside[..nearest].iter().rposition(|excess| *excess > 0.0) {
        Some(out) => edge(grid[out], best, inside),
        None => 0.0,
    };
    let high = match outside[nearest..].iter().position(|excess| *excess > 0.0) {
        Some(out) => edge(grid[nearest + out], best, inside),
        None => f64::INFINITY,
    };
    Ok(TemperatureRange { low, best, high })
}

/// The grid spans β from where exp(−spread/β) vanishes to where it is 1, in double precision.
const GRID_FROM: f64 = -7.0;
const GRID_STEP: f64 = 0.02;
const GRID: u32 = 2200;

/// The minimum of a function that falls, then rises, by golden section of the logarithm.
fn lowest_between(low: f64, high: f64, f: &impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (low.ln(), high.ln());
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    for _ in 0..80 {
        let step = golden * (high - low);
        if f((high - step).exp()) <= f((low + step).exp()) { high = low + step } else { low = high - step }
    }
    (0.5 * (low + high)).exp()
}

/// The last temperature between `inside` and `outside` that satisfies a demand, to the last bit.
fn edge(mut outside: f64, mut inside: f64, satisfied: impl Fn(f64) -> bool) -> f64 {
    loop {
        let middle = outside.sqrt() * inside.sqrt();
        if !(outside.min(inside) < middle && middle < outside.max(inside)) {
            return inside;
        }
        if satisfied(middle) { inside = middle } else { outside = middle }
    }
}

/// The spread of the standings, if there is any temperature for them.
fn check(standings: &[f64], k: u32) -> Result<f64, FairnessError> {
    if standings.is_empty() {
        return Err(FairnessError::Empty { field: "standings" });
    }
    if let Some(i) = standings.iter().position(|standing| !standing.is_finite()) {
        return Err(FairnessError::NotFinite { field: format!("standings[{i}]") });
    }
    if k == 0 {
        return Err(FairnessError::OutOfRange { field: "k".into(), found: 0.0, wanted: "at least 1" });
    }
    let most = standings.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = standings.iter().copied().fold(f64::INFINITY, f64::min);
    let spread = most - least;
    if spread.is_infinite() {
        return Err(FairnessError::NotFinite { field: "the spread of standings".into() });
    }
    Ok(spread)
}
