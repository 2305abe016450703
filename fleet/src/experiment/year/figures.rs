//! Figures of a year: the JSON object and the table.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::learner::HouseholdLearner;
use super::rewards::RewardFigures;
use super::score::{ErrorSum, GROUPS, GroupSums, STALENESS_DAYS, VARIANTS};
use super::settings::YearSettings;
use super::variant_name::YearVariant;

/// Weeks since joining in which learning together must be worth most, counted from 1.
const EARLY_WEEKS: std::ops::RangeInclusive<usize> = 3..=10;

/// One value for each variant, in their order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ByVariant(pub [f64; VARIANTS]);

impl Serialize for ByVariant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(VARIANTS))?;
        for (variant, value) in YearVariant::ALL.iter().zip(self.0) {
            map.serialize_entry(variant.name(), &((value * 1e4).round() / 1e4))?;
        }
        map.end()
    }
}

/// Figures of a year.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct YearFigures {
    /// Households that were judged.
    pub households: usize,
    /// Days of the year.
    pub days: usize,
    /// Rounds.
    pub rounds: usize,
    /// By group of leads, in the last third of the time.
    pub leads: Vec<LeadFigures>,
    /// Share of the readings of the last third between the 10 and the 90 % quantile that a household sees.
    pub coverage: f64,
    /// By week since joining, the next 24 h.
    pub by_weeks: Vec<WeekFigures>,
    /// By single lead, in the last third of the time: mean over households of the error divided by the mean load.
    pub by_lead: Vec<ByVariant>,
    /// Skill of the held model by its age, the next 24 h.
    pub by_staleness: Vec<StalenessFigures>,
    /// Waits and odds of all households under evenhand.
    pub rewards: RewardFigures,
}

/// Forecasts of some leads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeadFigures {
    /// The first lead, in steps.
    pub from: usize,
    /// The last lead, in steps.
    pub to: usize,
    /// Mean over households of the mean absolute error divided by the mean load.
    pub mae_ratio: ByVariant,
    /// Mean over households of the error divided by that of repeating the day before, until the judged time.
    pub mase: ByVariant,
    /// Mean over households of the pinball loss divided by the mean load.
    pub pinball: ByVariant,
    /// Share of the households with a lower error than the best naive forecast in hindsight.
    pub better_off: ByVariant,
    /// Share of the households for which what they see is better than learning alone: in weeks 3 to 10, and at the end.
    pub ahead_of_alone: AheadOfAlone,
}

/// Share of the households for which what they see is better than learning alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AheadOfAlone {
    /// In weeks 3 to 10 since joining.
    pub weeks_3_to_10: f64,
    /// In the last third of the time.
    pub end: f64,
}

/// Forecasts in one week since joining.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WeekFigures {
    /// The week, counted from 1.
    pub week: usize,
    /// Households that were judged in it.
    pub households: usize,
    /// Mean over households of the mean absolute error divided by the mean load.
    pub mae_ratio: ByVariant,
    /// Share of the households for which what they see is better than learning alone.
    pub ahead_of_alone: f64,
}

/// Forecasts by a model of some age.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StalenessFigures {
    /// Days since the model was received, at least.
    pub days_from: f64,
    /// Below so many days; none for the last class.
    pub days_to: Option<f64>,
    /// Forecasts of one lead that were judged.
    pub forecasts: u64,
    /// 1 − MAE / MAE of the slot's median.
    pub skill: f64,
}

impl YearFigures {
    pub(super) fn of(
        settings: &YearSettings,
        homes: &[HouseholdLearner],
        rewards: RewardFigures,
        day: usize,
        days: usize,
    ) -> Self {
        let judged: Vec<&HouseholdLearner> =
            homes.iter().filter(|home| home.score.end[0][0].count > 0.0 && home.mean_load > 0.0).collect();
        let to = [1.max(day / 48), day / 6, day];
        let weeks = judged.iter().map(|home| home.score.weeks.len()).max().unwrap_or(0);
        let covered = judged
            .iter()
            .fold((0.0, 0.0), |sum, home| (sum.0 + home.score.covered.0, sum.1 + home.score.covered.1));
        Self {
            households: judged.len(),
            days,
            rounds: days * settings.rounds_a_day as usize,
            leads: (0..GROUPS).map(|group| lead_figures(&judged, group, to[group])).collect(),
            coverage: covered.0 / covered.1,
            by_weeks: (0..weeks).filter_map(|week| week_figures(&judged, week)).collect(),
            by_lead: (0..day).map(|lead| single_lead(&judged, lead)).collect(),
            by_staleness: staleness_figures(&judged),
            rewards,
        }
    }

    /// The table.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{} households, {} days, {} rounds; last third\n\n",
            self.households, self.days, self.rounds
        );
        text += &format!("{:20}", "MAE / mean load");
        for lead in &self.leads {
            text += &format!("{:>22}", format!("steps {} to {}", lead.from, lead.to));
        }
        text += "\n";
        for variant in YearVariant::ALL {
            text += &format!("{:20}", variant.name());
            for lead in &self.leads {
                let (ratio, better) = (lead.mae_ratio.0[variant.place()], lead.better_off.0[variant.place()]);
                text += &format!("{:>22}", format!("{ratio:.3}  {:>3.0} % better", 100.0 * better));
            }
            text += "\n";
        }
        text += &format!("\ncoverage of 10 to 90 %: {:.3}\n", self.coverage);
        for (name, share) in [
            ("weeks 3 to 10", (|lead| lead.ahead_of_alone.weeks_3_to_10) as fn(&LeadFigures) -> f64),
            ("the last third", |lead| lead.ahead_of_alone.end),
        ] {
            let shares: Vec<String> =
                self.leads.iter().map(|lead| format!("{:.0} %", 100.0 * share(lead))).collect();
            text += &format!("ahead of alone in {name}: {}\n", shares.join(", "));
        }
        let worst = |naive: YearVariant| {
            let skill = |lead: &ByVariant| {
                1.0 - lead.0[YearVariant::EvenhandPersonal.place()] / lead.0[naive.place()]
            };
            self.by_lead.iter().map(skill).fold(f64::INFINITY, f64::min)
        };
        for naive in YearVariant::NAIVE {
            text += &format!("skill against {}: at least {:.3} at every lead\n", naive.name(), worst(naive));
        }
        for class in &self.by_staleness {
            let to = class.days_to.map_or(" or more".to_owned(), |to| format!(" to {to}"));
            text += &format!(
                "model {}{to} days old: skill {:.3} ({} forecasts)\n",
                class.days_from, class.skill, class.forecasts
            );
        }
        text + &self.rewards.text()
    }
}

fn lead_figures(homes: &[&HouseholdLearner], group: usize, to: usize) -> LeadFigures {
    let of = |value: &dyn Fn(&HouseholdLearner, &[ErrorSum; VARIANTS], usize) -> f64| {
        ByVariant(std::array::from_fn(|variant| {
            mean(homes.iter().map(|home| value(home, &home.score.end[group], variant)))
        }))
    };
    let early = |home: &&&HouseholdLearner| {
        let weeks = home.score.weeks.iter().enumerate().filter(|(week, _)| EARLY_WEEKS.contains(&(week + 1)));
        let sums = weeks.fold(GroupSums::default()[group], |sum, (_, week)| {
            std::array::from_fn(|variant| sum[variant].plus(week[group][variant]))
        });
        (sums[0].count > 0.0).then(|| share(is_ahead(&sums)))
    };
    LeadFigures {
        from: 1,
        to,
        mae_ratio: of(&|home, sums, variant| sums[variant].mae() / home.mean_load),
        mase: of(&|home, sums, variant| sums[variant].mae() / home.daily_difference),
        pinball: of(&|home, sums, variant| sums[variant].pinball / sums[variant].count / home.mean_load),
        better_off: of(&|_, sums, variant| {
            let best = YearVariant::NAIVE.map(|naive| sums[naive.place()].mae());
            share(sums[variant].mae() < best.into_iter().fold(f64::INFINITY, f64::min))
        }),
        ahead_of_alone: AheadOfAlone {
            weeks_3_to_10: mean(homes.iter().filter_map(|home| early(&home))),
            end: mean(homes.iter().map(|home| share(is_ahead(&home.score.end[group])))),
        },
    }
}

fn week_figures(homes: &[&HouseholdLearner], week: usize) -> Option<WeekFigures> {
    let sums: Vec<(&HouseholdLearner, &[ErrorSum; VARIANTS])> = homes
        .iter()
        .filter_map(|home| Some((*home, &home.score.weeks.get(week)?[GROUPS - 1])))
        .filter(|(_, sums)| sums[0].count > 0.0)
        .collect();
    (!sums.is_empty()).then(|| WeekFigures {
        week: week + 1,
        households: sums.len(),
        mae_ratio: ByVariant(std::array::from_fn(|variant| {
            mean(sums.iter().map(|(home, sums)| sums[variant].mae() / home.mean_load))
        })),
        ahead_of_alone: mean(sums.iter().map(|(_, sums)| share(is_ahead(sums)))),
    })
}

fn single_lead(homes: &[&HouseholdLearner], lead: usize) -> ByVariant {
    ByVariant(std::array::from_fn(|variant| {
        mean(homes.iter().map(|home| {
            let (errors, count) = home.score.leads[lead];
            errors[variant] / count / home.mean_load
        }))
    }))
}

fn staleness_figures(homes: &[&HouseholdLearner]) -> Vec<StalenessFigures> {
    let class = |at: usize| {
        let sum = |of: fn(&(ErrorSum, ErrorSum)) -> ErrorSum| {
            homes.iter().fold(ErrorSum::default(), |sum, home| {
                let found = of(&home.score.staleness[at]);
                // Every household counts by its own scale.
                sum.plus(ErrorSum { absolute: found.absolute / home.mean_load, ..found })
            })
        };
        let (naive, model) = (sum(|pair| pair.0), sum(|pair| pair.1));
        (model.count > 0.0).then(|| StalenessFigures {
            days_from: if at == 0 { 0.0 } else { STALENESS_DAYS[at - 1] },
            days_to: Some(STALENESS_DAYS[at]).filter(|to| to.is_finite()),
            forecasts: model.count as u64,
            skill: 1.0 - model.absolute / naive.absolute,
        })
    };
    (0..STALENESS_DAYS.len()).filter_map(class).collect()
}

fn is_ahead(sums: &[ErrorSum; VARIANTS]) -> bool {
    sums[YearVariant::EvenhandPersonal.place()].absolute < sums[YearVariant::Alone.place()].absolute
}

fn share(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}
