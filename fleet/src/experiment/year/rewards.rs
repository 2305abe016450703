//! Rewards of a year: how long households waited for the latest model, and their odds.

use evenhand_federation::ClosedRound;
use serde::Serialize;

/// Standard errors by which a standing is below the mean of the others where it counts as significantly worse.
const SIGNIFICANT: f64 = 2.0;

/// What the product's draws gave its households.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RewardFigures {
    /// Rounds that closed.
    pub rounds: u32,
    /// The longest that any household waited for the model, in rounds.
    pub longest_wait: u32,
    /// The lowest odds of a household in any round in which it could be drawn, in shares of equal odds.
    pub lowest_odds: f64,
    /// By household.
    pub households: Vec<HouseholdRewards>,
}

/// What the draws gave one household.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HouseholdRewards {
    /// Its name in the data set.
    pub name: String,
    /// Rounds in which it received the model.
    pub drawn: u32,
    /// The longest that it waited, in rounds.
    pub longest_wait: u32,
    /// Its lowest odds in a round in which it could be drawn, in shares of equal odds; none if it never could.
    pub lowest_odds: Option<f64>,
    /// Its odds at the end, in shares of equal odds.
    pub odds: f64,
    /// ψ at the end.
    pub standing: f64,
    /// Standard error of ψ.
    pub standing_error: f64,
    /// True if ψ is more than two standard errors below the mean of the others.
    pub significantly_worse: bool,
    /// Rounds since it last received the model.
    #[serde(skip)]
    wait: u32,
}

impl RewardFigures {
    /// The figures before the first round.
    pub(super) fn new(names: impl Iterator<Item = String>) -> Self {
        let household = |name| HouseholdRewards {
            name,
            drawn: 0,
            longest_wait: 0,
            lowest_odds: None,
            odds: 0.0,
            standing: 0.0,
            standing_error: 0.0,
            significantly_worse: false,
            wait: 0,
        };
        Self { households: names.map(household).collect(), ..Self::default() }
    }

    /// Adds a closed round; `position` is the place of a node's name.
    pub(super) fn add(&mut self, closed: &ClosedRound, position: impl Fn(&str) -> Option<usize>) {
        self.rounds += 1;
        let eligible = closed.nodes.iter().filter(|node| node.sampling_probability > 0.0).count() as f64;
        let standings: f64 = closed.nodes.iter().map(|node| node.standing).sum();
        let others = (closed.nodes.len() as f64 - 1.0).max(1.0);
        for node in &closed.nodes {
            let found = position(node.node.as_str()).and_then(|at| self.households.get_mut(at));
            let Some(household) = found else { continue };
            household.wait = if node.was_asked() { 0 } else { household.wait + 1 };
            household.drawn += u32::from(node.was_asked());
            household.longest_wait = household.longest_wait.max(household.wait);
            household.odds = node.sampling_probability * eligible;
            if node.sampling_probability > 0.0 {
                let lowest = household.lowest_odds.unwrap_or(f64::INFINITY);
                household.lowest_odds = Some(lowest.min(household.odds));
            }
            (household.standing, household.standing_error) = (node.standing, node.standing_error);
            let below = (standings - node.standing) / others - node.standing;
            household.significantly_worse = below > SIGNIFICANT * node.standing_error;
        }
        let lowest = self.households.iter().filter_map(|household| household.lowest_odds);
        self.lowest_odds = lowest.fold(f64::INFINITY, f64::min).min(1.0);
        self.longest_wait = self.households.iter().map(|household| household.longest_wait).max().unwrap_or(0);
    }

    /// A table, one row a household.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "\n{} rounds; longest wait {}; lowest odds {:.2} of the equal share\n{:20}{:>8}{:>14}{:>12}{:>8}{:>20}\n",
            self.rounds,
            self.longest_wait,
            self.lowest_odds,
            "household",
            "drawn",
            "longest wait",
            "lowest odds",
            "odds",
            "standing"
        );
        for one in &self.households {
            let standing = format!("{:.3} ± {:.3}", one.standing, one.standing_error);
            let lowest = one.lowest_odds.map_or("–".to_owned(), |odds| format!("{odds:.2}"));
            text += &format!(
                "{:20}{:>8}{:>14}{:>12}{:>8.2}{:>20}{}\n",
                one.name,
                one.drawn,
                one.longest_wait,
                lowest,
                one.odds,
                standing,
                if one.significantly_worse { "  significantly worse" } else { "" }
            );
        }
        text
    }
}
