//! Sentences about a run, each computed from it.

use evenhand_fairness::measures;

use crate::RunReport;
use crate::number_text::significant;
use crate::round_log::RoundSummary;

/// Nodes that a sentence names; of more it gives the number.
const NAMED_MAX: usize = 5;

impl RunReport<'_> {
    /// The headline: the relation of waiting to standings.
    pub(crate) fn headline(&self) -> &'static str {
        let shortfalls: Vec<f64> = self.nodes.iter().map(|node| -node.standing).collect();
        let waits: Vec<f64> = self.nodes.iter().map(|node| node.mean_staleness).collect();
        let rho = measures::pearson(&shortfalls, &waits);
        match (self.explored_until, rho) {
            (None, _) if self.log.rounds.is_empty() => "No round was finished",
            (None, _) => "Contributions were measured; nobody has been drawn yet",
            (Some(_), Some(rho)) if rho >= 0.6 => "Those who contributed more waited less",
            (Some(_), Some(rho)) if rho > 0.0 => "Those who contributed more waited a little less",
            (Some(_), Some(_)) => "Those who contributed more did not wait less in this run",
            (Some(_), None) if waits.windows(2).all(|two| two[0] == two[1]) => "All nodes waited alike",
            (Some(_), None) => "All nodes have the same standing",
        }
    }

    /// The run in two sentences.
    pub(crate) fn lead(&self) -> String {
        let rounds = self.log.rounds.len();
        let drawing: Vec<&RoundSummary> = self.log.drawing_rounds().collect();
        let explored = rounds - drawing.len();
        let measured = match explored {
            0 if self.is_continuous() && rounds > 0 => {
                " Everybody who was present was measured in every round.".into()
            }
            0 => String::new(),
            _ if drawing.is_empty() => {
                " Everybody who was present took part in every round while contributions were measured."
                    .into()
            }
            _ => format!(
                " In {explored} of them everybody who was present took part while contributions were measured."
            ),
        };
        let drawn = if drawing.is_empty() {
            String::new()
        } else {
            let sizes = || drawing.iter().map(|round| round.drawn.len());
            let (least, most) = (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0));
            let number = if least == most { least.to_string() } else { format!("{least} to {most}") };
            let others = if explored == 0 { "In each" } else { "In the others" };
            let nodes = if most == 1 { "node" } else { "nodes" };
            format!(
                " {others}, {number} {nodes} a round received the latest model{}.",
                self.drawn_by(&drawing)
            )
        };
        format!(
            "{} {} learned one model together in {rounds} rounds.{measured}{drawn}",
            self.nodes.len(),
            self.source.node_noun
        )
    }

    /// The basis of the draws, as far as the last one shows it.
    fn drawn_by(&self, drawing: &[&RoundSummary]) -> &'static str {
        let everybody = drawing.iter().all(|round| round.drawn.len() == self.nodes.len());
        match drawing.last() {
            _ if everybody => "",
            Some(_) if self.is_continuous() => ", drawn by what is known of their standing",
            Some(last) if all_equal(&last.sampling_probabilities) => ", drawn with equal probabilities",
            Some(last) if self.follows_standings(last) => ", drawn by their standing",
            _ => ", drawn by the strategy's own probabilities",
        }
    }

    /// True if the odds of a draw follow the standings after the round before.
    fn follows_standings(&self, draw: &RoundSummary) -> bool {
        let before = self.log.rounds.iter().rev().find(|round| round.round < draw.round);
        before.is_some_and(|before| follows(&draw.sampling_probabilities, &before.standings))
    }

    /// The sampling probabilities of the last draw, and the nodes that were never drawn.
    pub(crate) fn odds(&self) -> String {
        let drawing: Vec<&RoundSummary> = self.log.drawing_rounds().collect();
        let Some(last) = drawing.last() else {
            return "While contributions are measured everybody takes part; nobody has been drawn yet."
                .into();
        };
        let probabilities = &last.sampling_probabilities;
        let rule = if all_equal(probabilities) {
            "All nodes have the same odds in the last draw.".to_owned()
        } else if self.is_continuous() {
            format!(
                "Better standing, better odds, as far as standings are known; the temperature β = {} is the lowest at which \
                 nobody waits longer than {} rounds on average.",
                significant(last.temperature),
                self.promised_wait()
            )
        } else if self.follows_standings(last) {
            let temperature = significant(last.temperature);
            format!(
                "Better standing, better odds; the temperature β = {temperature} decides how much better."
            )
        } else {
            "The odds are the strategy's own; they do not follow the standings alone.".to_owned()
        };
        let least = probabilities.iter().copied().fold(f64::INFINITY, f64::min);
        let without = probabilities.iter().filter(|share| **share == 0.0).count();
        let odds = match without {
            0 => format!("The least probability of one draw is {}.", significant(least)),
            _ => format!("{} of {} nodes have no odds at all.", without, self.nodes.len()),
        };
        format!("{rule} {odds} {}", self.never_drawn(drawing.len()))
    }

    /// The nodes that received no model in any of the `rounds` in which nodes were drawn.
    fn never_drawn(&self, rounds: usize) -> String {
        let never: Vec<&str> = (self.nodes.iter())
            .filter(|node| node.drawn_after_exploring == 0)
            .map(|node| node.id.as_str())
            .collect();
        let since = if rounds == 1 { "the one round".to_owned() } else { format!("the {rounds} rounds") };
        match never.len() {
            0 => format!("Every node was drawn at least once in {since} of drawing."),
            n if n <= NAMED_MAX => format!("Never drawn in {since} of drawing: {}.", never.join(", ")),
            n => format!("{n} of {} nodes were never drawn in {since} of drawing.", self.nodes.len()),
        }
    }

    /// The meaning of the standings, or that they were not measured.
    pub(crate) fn standings(&self) -> &'static str {
        if self.is_continuous() {
            "A node's standing ψ says how far its data point the way the others' do: gradients at reference weights, measured \
             in every round and never applied. Old rounds fade."
        } else if self.log.rounds.iter().any(|round| round.contributions.is_some()) {
            "A node's standing ψ is the mean of its measured contributions: how much its updates moved the common model \
             the right way."
        } else {
            "Contributions were not measured in this run, so all standings are 0."
        }
    }
}

fn all_equal(values: &[f64]) -> bool {
    let scale = values.iter().copied().fold(0.0, f64::max);
    values.iter().all(|value| (value - values[0]).abs() <= 1e-9 * scale)
}

/// True if no node has a lower probability than another of lower standing; nodes without any, as removed ones, aside.
fn follows(probabilities: &[f64], standings: &[f64]) -> bool {
    let mut order: Vec<usize> = (0..standings.len()).filter(|&node| probabilities[node] > 0.0).collect();
    order.sort_by(|&a, &b| standings[a].total_cmp(&standings[b]));
    let slack = 1e-9 * probabilities.iter().copied().fold(0.0, f64::max);
    order.windows(2).all(|pair| {
        standings[pair[0]] == standings[pair[1]] || probabilities[pair[0]] <= probabilities[pair[1]] + slack
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_follow_standings_only_where_no_pair_is_turned_round() {
        assert!(follows(&[0.5, 0.2, 0.3], &[3.0, 1.0, 2.0]));
        assert!(!follows(&[0.5, 0.3, 0.2], &[3.0, 1.0, 2.0]));
        assert!(follows(&[0.4, 0.2, 0.4], &[1.0, 1.0, 1.0]), "equal standings decide nothing");
    }
}
