//! From values to positions, and where to put ticks.

/// A linear axis: `domain` in values, `range` in user units of the drawing.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    domain: (f64, f64),
    range: (f64, f64),
    step: f64,
}

impl Scale {
    /// Widens `domain` to round numbers, so that the outermost ticks close the axis.
    pub fn nice(domain: (f64, f64), range: (f64, f64)) -> Self {
        let (low, high) = spread_out(domain);
        let step = step_for(low, high);
        let low = (low / step + 1e-9).floor() * step;
        let high = (high / step - 1e-9).ceil() * step;
        Self { domain: (low, high), range, step }
    }

    /// Takes `domain` as it is.
    pub fn exact(domain: (f64, f64), range: (f64, f64)) -> Self {
        let domain = spread_out(domain);
        Self { domain, range, step: step_for(domain.0, domain.1) }
    }

    /// The position of a value; beyond the domain, of its end.
    pub fn at(&self, value: f64) -> f64 {
        let share = (value - self.domain.0) / (self.domain.1 - self.domain.0);
        self.range.0 + share.clamp(0.0, 1.0) * (self.range.1 - self.range.0)
    }

    /// Round values within the domain, three to seven of them.
    pub fn ticks(&self) -> Vec<f64> {
        let (low, high) = self.domain;
        let step = self.step;
        let first = (low / step - 1e-9).ceil() as i64;
        let last = (high / step + 1e-9).floor() as i64;
        (first..=last).map(|tick| tick as f64 * step).collect()
    }

    /// A tick's text, with as many decimals as its neighbours need.
    pub fn label(&self, tick: f64) -> String {
        let decimals = (-self.step.log10().floor()).clamp(0.0, 8.0) as usize;
        let text = signed(tick, decimals);
        if text.trim_matches(['\u{2212}', '0', '.']).is_empty() { "0".into() } else { text }
    }
}

/// A number with a true minus sign.
pub fn signed(value: f64, decimals: usize) -> String {
    format!("{value:.decimals$}").replace('-', "\u{2212}")
}

/// The extent of `values`, or 0 to 1 when there are none.
pub fn extent(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .into_iter()
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low > high { (0.0, 1.0) } else { (low, high) }
}

fn spread_out((low, high): (f64, f64)) -> (f64, f64) {
    if high > low { (low, high) } else { (low - 0.5 * low.abs().max(1e-6), low + 0.5 * low.abs().max(1e-6)) }
}

fn step_for(low: f64, high: f64) -> f64 {
    let rough = (high - low) / 6.0;
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|factor| factor * power >= rough * (1.0 - 1e-9))
        .unwrap_or(10.0);
    factor * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_close_the_axis() {
        let scale = Scale::nice((0.013, 0.187), (0.0, 100.0));
        let labels: Vec<_> = scale.ticks().into_iter().map(|tick| scale.label(tick)).collect();
        assert_eq!(labels, ["0", "0.05", "0.10", "0.15", "0.20"]);
        assert_eq!(scale.at(0.2), 100.0);
    }

    #[test]
    fn one_value_still_makes_an_axis() {
        for value in [0.0, 3.0, -3.0] {
            let scale = Scale::nice((value, value), (0.0, 100.0));
            assert!(scale.ticks().len() >= 2, "{value}: {:?}", scale.ticks());
            assert!(scale.at(value).is_finite());
        }
    }

    #[test]
    fn negative_ticks_carry_a_minus_sign() {
        let scale = Scale::nice((-0.02, 0.04), (0.0, 1.0));
        assert!(scale.ticks().into_iter().any(|tick| scale.label(tick) == "\u{2212}0.02"));
    }

    #[test]
    fn nothing_has_an_extent_too() {
        assert_eq!(extent([]), (0.0, 1.0));
        assert_eq!(extent([f64::NAN, 2.0, 1.0]), (1.0, 2.0));
    }
}
