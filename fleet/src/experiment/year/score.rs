//! Errors of forecasts, summed by household.

use super::variant_name::YearVariant;

/// Variants.
pub(super) const VARIANTS: usize = YearVariant::ALL.len();
/// Groups of leads: the next half hour, the next 4 h, the next 24 h.
pub(super) const GROUPS: usize = 3;
/// Upper ends, in days, of the classes of staleness; the last is open.
pub(super) const STALENESS_DAYS: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, f64::INFINITY];

/// Quantile forecasts of one variant: by lead, 10, 50 and 90 %.
pub(super) type Quantiles = Vec<[f32; 3]>;

/// Sums over forecasts.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct ErrorSum {
    pub(super) absolute: f64,
    pub(super) pinball: f64,
    pub(super) count: f64,
}

impl ErrorSum {
    fn add(&mut self, forecast: [f32; 3], truth: f32) {
        self.absolute += f64::from((truth - forecast[1]).abs());
        for (level, quantile) in [0.1, 0.5, 0.9].into_iter().zip(forecast) {
            let error = f64::from(truth - quantile);
            self.pinball += (level * error).max((level - 1.0) * error) / 3.0;
        }
        self.count += 1.0;
    }

    /// Mean absolute error.
    pub(super) fn mae(&self) -> f64 {
        self.absolute / self.count
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            absolute: self.absolute + other.absolute,
            pinball: self.pinball + other.pinball,
            count: self.count + other.count,
        }
    }
}

/// Sums by group of leads and variant.
pub(super) type GroupSums = [[ErrorSum; VARIANTS]; GROUPS];

/// All scores of one household.
#[derive(Debug, Clone, Default)]
pub(super) struct HouseholdScore {
    /// In the last third.
    pub(super) end: GroupSums,
    /// By lead, in the last third: absolute errors, and their number.
    pub(super) leads: Vec<([f64; VARIANTS], f64)>,
    /// By week since joining.
    pub(super) weeks: Vec<GroupSums>,
    /// By class of staleness, in the last third: of the slot's median and of the held model, over 24 h.
    pub(super) staleness: [(ErrorSum, ErrorSum); STALENESS_DAYS.len()],
    /// Values within 10 and 90 %, and all, of what a household sees in the last third.
    pub(super) covered: (f64, f64),
}

impl HouseholdScore {
    /// Adds the forecasts of one origin; a lead without a reading does not count.
    pub(super) fn add(
        &mut self,
        forecasts: &[Quantiles; VARIANTS],
        truths: &[f32],
        week: usize,
        at_end: bool,
        stale_days: Option<f64>,
    ) {
        if self.weeks.len() <= week {
            self.weeks.resize(week + 1, GroupSums::default());
        }
        let leads = truths.len();
        self.leads.resize(leads, Default::default());
        let upto = [1.max(leads / 48), leads / 6, leads];
        for (lead, truth) in truths.iter().enumerate().filter(|(_, truth)| !truth.is_nan()) {
            for (variant, forecast) in forecasts.iter().enumerate() {
                for group in (0..GROUPS).filter(|group| lead < upto[*group]) {
                    self.weeks[week][group][variant].add(forecast[lead], *truth);
                    if at_end {
                        self.end[group][variant].add(forecast[lead], *truth);
                    }
                }
            }
            if at_end {
                let (errors, count) = &mut self.leads[lead];
                for (sum, forecast) in errors.iter_mut().zip(forecasts) {
                    *sum += f64::from((truth - forecast[lead][1]).abs());
                }
                *count += 1.0;
                let [low, _, high] = forecasts[YearVariant::EvenhandPersonal.place()][lead];
                self.covered.0 += f64::from(u8::from((low..=high).contains(truth)));
                self.covered.1 += 1.0;
                if let Some(days) = stale_days {
                    let class = STALENESS_DAYS.iter().position(|end| days < *end).unwrap_or(0);
                    self.staleness[class].0.add(forecasts[YearVariant::SlotMedian.place()][lead], *truth);
                    self.staleness[class].1.add(forecasts[YearVariant::Evenhand.place()][lead], *truth);
                }
            }
        }
    }
}
