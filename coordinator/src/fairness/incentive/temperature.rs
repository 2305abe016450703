//! The temperature β that gives a wanted staleness.

use super::{expected_staleness, sampling_probabilities};
use crate::fairness::FairnessError;

/// The temperatures that keep a wish, both ends included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Temperatures {
    /// The lowest: most reward for contribution.
    pub low: f64,
    /// The highest, possibly infinite: most equality.
    pub high: f64,
}

/// β at which the worst-placed node's expected staleness Γ is `wanted`, by bisection: Γ of the lowest
/// standing falls as β grows, from ∞ towards what equal probabilities give.
pub fn temperature_for_worst_staleness(standings: &[f64], k: u32, wanted: f64) -> Result<f64, FairnessError> {
    let spread = check(standings, k)?;
    let equal = expected_staleness(1.0 / standings.len() as f64, k);
    let wish = || format!("worst_staleness = {wanted}");
    if spread == 0.0 {
        return Err(FairnessError::Unreachable {
            wish: wish(),
            reachable: format!("all standings are equal, so it is {equal} at every temperature"),
        });
    }
    if !(wanted > equal) {
        return Err(FairnessError::Unreachable {
            wish: wish(),
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
    Ok(crossing(spread, |temperature| worst(temperature) <= wanted))
}

/// The temperatures at which r₁ ≤ ψᵢΓᵢ ≤ r₂ for every node.
pub fn temperature_for_band(
    standings: &[f64],
    k: u32,
    band: (f64, f64),
) -> Result<Temperatures, FairnessError> {
    let spread = check(standings, k)?;
    let inside = |temperature: f64| {
        let probabilities = sampling_probabilities(standings, temperature);
        standings.iter().zip(probabilities).all(|(standing, probability)| {
            let product = standing * expected_staleness(probability, k);
            band.0 <= product && product <= band.1
        })
    };
    let scale = if spread == 0.0 { 1.0 } else { spread };
    let grid: Vec<f64> = (-400..=400).map(|step| scale * (f64::from(step) / 20.0).exp()).collect();
    let first = grid.iter().position(|t| inside(*t));
    let last = grid.iter().rposition(|t| inside(*t));
    match (first, last) {
        (Some(first), Some(last)) => Ok(Temperatures { low: grid[first], high: grid[last] }),
        _ => Err(FairnessError::Unreachable {
            wish: format!("band = [{}, {}]", band.0, band.1),
            reachable: "no temperature keeps it".into(),
        }),
    }
}

fn check(standings: &[f64], k: u32) -> Result<f64, FairnessError> {
    if standings.is_empty() {
        return Err(FairnessError::Empty { field: "standings" });
    }
    if k == 0 {
        return Err(FairnessError::OutOfRange { field: "k".into(), found: 0.0, wanted: "at least 1" });
    }
    let most = standings.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = standings.iter().copied().fold(f64::INFINITY, f64::min);
    Ok(most - least)
}

/// The lowest temperature from which on `kept` holds, to the last bit, by bisection of its logarithm.
fn crossing(scale: f64, kept: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (scale, scale);
    while kept(low) && low > f64::MIN_POSITIVE {
        low /= 16.0;
    }
    while !kept(high) && high < f64::MAX / 16.0 {
        high *= 16.0;
    }
    loop {
        let middle = low * (high / low).sqrt();
        if !(low < middle && middle < high) {
            return high;
        }
        if kept(middle) { high = middle } else { low = middle }
    }
}
