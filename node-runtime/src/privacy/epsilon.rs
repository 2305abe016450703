//! ε of composed Gaussian mechanisms, by their Rényi divergence.

/// Orders of the divergence that are tried: 1 + 10^(k/RESOLUTION).
const RESOLUTION: f64 = 100.0;
const ORDERS: std::ops::RangeInclusive<i32> = -190..=700;

/// ε at δ of Gaussian mechanisms whose 1/z² add up to `cost`, z their noise in units of their sensitivities.
///
/// # Formula
///
/// The Rényi divergence of order α of one mechanism is α/(2z²) (Mironov 2017), and that of many the sum, whether later ones
/// depend on earlier outputs or not. With R(α) = α·cost/2,
///
/// ε(δ) = min over α > 1 of R(α) + ln(1 − 1/α) − ln(δα)/(α − 1)
///
/// (Canonne, Kamath and Steinke 2020, proposition 12), as dp-accounting computes it. No subsampling is assumed.
pub fn epsilon(cost: f64, delta: f64) -> f64 {
    let at = |order: f64| 0.5 * order * cost + (-1.0 / order).ln_1p() - (delta * order).ln() / (order - 1.0);
    let orders = ORDERS.map(|k| 1.0 + 10f64.powf(f64::from(k) / RESOLUTION));
    orders.map(at).fold(f64::INFINITY, f64::min).max(0.0)
}

/// The largest sum of 1/z² whose ε at δ is at most `epsilon_max`.
pub fn cost_of(epsilon_max: f64, delta: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while epsilon(high, delta) <= epsilon_max && high < 1e12 {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if epsilon(middle, delta) <= epsilon_max { low = middle } else { high = middle }
    }
    low
}

/// The noise z with which so many messages cost `epsilon_max` at δ together.
pub fn noise_for(epsilon_max: f64, delta: f64, messages: u32) -> f64 {
    (f64::from(messages) / cost_of(epsilon_max, delta)).sqrt()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// `tests/privacy/generate.py` wrote the file: z, number of messages, δ, ε of dp-accounting's RdpAccountant.
    #[test]
    fn agrees_with_dp_accounting_to_a_hundredth() {
        let golden = include_str!("../../tests/privacy/epsilon.csv");
        let mut cases = 0;
        for line in golden.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<f64> = line.split(',').map(|field| field.parse().unwrap()).collect();
            let [noise, messages, delta, expected] = fields[..] else { panic!("{line}") };
            let found = epsilon(messages / (noise * noise), delta);
            assert!((found / expected - 1.0).abs() < 0.01, "{line}: {found}");
            cases += 1;
        }
        assert!(cases >= 50, "{cases}");
    }

    #[test]
    fn the_noise_for_a_budget_spends_it_and_no_more() {
        for (budget, messages) in [(0.5, 1), (1.0, 10), (8.0, 730)] {
            let noise = noise_for(budget, 1e-5, messages);
            let spent = epsilon(f64::from(messages) / (noise * noise), 1e-5);
            assert!(spent <= budget * 1.000_001 && spent > 0.999 * budget, "{spent} of {budget}");
        }
        assert!(cost_of(0.0, 1e-5) < 1e-3);
        assert_eq!(epsilon(0.0, 1e-5), 0.0);
    }
}
