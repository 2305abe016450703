//! Naive forecasts, and the experts of which the mixture is made.

use super::origin::OriginState;
use super::slot_profile::SlotProfile;
use super::vector::QUANTILES;
use super::{LoadHistory, LocalTime};

/// Time after which the blend has moved most of the way from the last value to the slot median.
pub(super) const BLEND_S: f64 = 45.0 * 60.0;

/// A forecast that the mixture weighs against the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Expert {
    /// The last value again.
    RepeatLast,
    /// The value of the same time yesterday.
    Yesterday,
    /// The value of the same time a week ago.
    LastWeek,
    /// The median of the same time of day over 14 days.
    SlotMedian,
    /// The slot median, moved towards the last value at short leads.
    Blend,
    /// The profile corrected by the shared model.
    Shared,
    /// The profile corrected by the shared model with its personal part.
    Personal,
}

/// Experts that need no model: the first ones of [`Expert::ALL`].
pub const NAIVE_EXPERTS: usize = 5;

impl Expert {
    /// Every expert, naive ones first.
    pub const ALL: [Expert; 7] = [
        Expert::RepeatLast,
        Expert::Yesterday,
        Expert::LastWeek,
        Expert::SlotMedian,
        Expert::Blend,
        Expert::Shared,
        Expert::Personal,
    ];

    /// The name in status and reports.
    pub fn name(self) -> &'static str {
        match self {
            Expert::RepeatLast => "repeat-last",
            Expert::Yesterday => "yesterday",
            Expert::LastWeek => "last-week",
            Expert::SlotMedian => "slot-median",
            Expert::Blend => "blend",
            Expert::Shared => "shared",
            Expert::Personal => "personal",
        }
    }

    /// The weight before anything was learned about it.
    pub(super) fn prior(self) -> f64 {
        match self {
            Expert::RepeatLast | Expert::Yesterday => 0.03,
            Expert::LastWeek => 0.05,
            Expert::SlotMedian => 0.16,
            Expert::Blend => 0.13,
            Expert::Shared => 0.2,
            Expert::Personal => 0.4,
        }
    }
}

/// Quantiles by each naive expert: its value, with the spread of the slot around its median.
///
/// An expert without its value, e.g. without last week's, makes no forecast.
pub(super) fn naive_forecasts(
    history: &LoadHistory,
    local: &LocalTime,
    state: &OriginState,
    profile: &SlotProfile,
    lead: i64,
) -> [Option<[f32; QUANTILES.len()]>; NAIVE_EXPERTS] {
    let target = state.origin + lead;
    let median = profile.median();
    let earlier = |days: i64| {
        let known = |days: &i64| history.same_time(local, target, *days) <= state.origin;
        let days = (1..).map(|times| times * days).find(known).unwrap_or(days);
        history.load(history.same_time(local, target, days))
    };
    let share = (-((lead * history.step_s()) as f64) / BLEND_S).exp() as f32;
    let blend = median + (state.recent_load - median) * share;
    let values = [Some(state.last), earlier(1), earlier(7), Some(median), Some(blend)];
    let spread = |value: f32| profile.quantiles.map(|quantile| value + (quantile - median));
    values.map(|value| value.map(spread))
}
