//! A recorded run in figures, named as in its JSON object.

use evenhand_fairness::measures::{self, Summary};
use evenhand_report::{NodeSummary, mean};
use serde::{Deserialize, Serialize};

use super::online::OnlineScore;
use super::{RecordedRun, RunEnd};

/// One node over a whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeFigures {
    /// The node's name.
    pub id: String,
    /// ζ.
    pub zeta: f64,
    /// ψ.
    pub standing: f64,
    /// ϱ.
    pub sampling_probability: f64,
    /// Rounds in which it received the model.
    pub drawn: u32,
    /// Mean over rounds of the rounds since it last received the model.
    pub mean_staleness: f64,
    /// The longest it ever waited.
    pub longest_staleness: u32,
    /// Mean over rounds of its held model's loss on everybody's next readings.
    pub online_loss: f64,
    /// Mean over rounds of its held model's absolute error in shares of what was measured.
    pub online_mape: Option<f64>,
    /// Mean over rounds of its held model's accuracy on everybody's next samples; only classifiers have one.
    pub online_accuracy: Option<f64>,
    /// Skill of its own forecasts: 1 − MAE / MAE of the best naive forecast; none where it made no day-ahead forecasts.
    pub skill: Option<f64>,
}

/// The run in numbers, named as in the JSON object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFigures {
    /// Pearson of ζ with the online loss: fairness of what models achieve.
    pub rho_loss: Option<f64>,
    /// The same without the first fifth of the rounds, in which models improve most and standings are hardly known.
    #[serde(default)]
    pub rho_loss_late: Option<f64>,
    /// Pearson of ζ with the mean staleness: fairness of the draws.
    pub rho_staleness: Option<f64>,
    /// Pearson of data quality, −ζ, with the standings at the end; none where contributions were never measured.
    pub rho_standing: Option<f64>,
    /// Pearson of ζ with the online accuracy; only classifiers have one.
    pub rho_accuracy: Option<f64>,
    /// Online loss over nodes: equality.
    pub online_loss: Option<Summary>,
    /// The standard deviation in `online_loss`.
    pub online_loss_std: Option<f64>,
    /// Online error in shares of what was measured, over nodes.
    pub online_mape: Option<Summary>,
    /// Online accuracy over nodes; only classifiers have one.
    pub online_accuracy: Option<Summary>,
    /// Skill over nodes; only day-ahead forecasts have one.
    pub skill: Option<Summary>,
    /// The round after which the stop rule ended exploring.
    pub t_alpha: Option<u32>,
    /// Share of the noisier half of the nodes that is found among as many nodes of lowest standing.
    pub recall: Option<f64>,
    /// The test that contributions are jointly normal, as the stop rule supposes.
    pub henze_zirkler: Option<NormalityFigures>,
    /// Lag-1 autocorrelation of contributions, mean over nodes; the stop rule supposes none.
    pub autocorrelation: Option<f64>,
    /// Rounds done.
    pub rounds: u32,
    /// Bytes of all messages from nodes.
    pub bytes_up: u64,
    /// Bytes of all messages to nodes.
    pub bytes_down: u64,
    /// Time the nodes spent in training, summed.
    pub seconds_training: f64,
    /// Time the coordinator spent closing rounds: contributions, stop rule, aggregation, record.
    pub seconds_fairness: f64,
    /// The end of the run.
    pub ended: RunEnd,
    /// One row a node.
    pub nodes: Vec<NodeFigures>,
}

/// The test of Henze and Zirkler on as many nodes as the stop rule tests, spread evenly over the fleet.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NormalityFigures {
    /// HZ.
    pub statistic: f64,
    /// Small when normality is not credible.
    pub p_value: f64,
}

impl RecordedRun {
    /// The run in figures.
    pub fn figures(&self) -> RunFigures {
        let staleness = self.log.staleness();
        let summaries = self.log.node_summaries(&staleness);
        let nodes: Vec<NodeFigures> =
            summaries.into_iter().enumerate().map(|(node, summary)| self.row(node, summary)).collect();
        let zetas: Vec<f64> = nodes.iter().map(|node| node.zeta).collect();
        let losses: Vec<f64> = nodes.iter().map(|node| node.online_loss).collect();
        let waits: Vec<f64> = nodes.iter().map(|node| node.mean_staleness).collect();
        let t_alpha = self.log.explored_until();
        let online_loss = Summary::of(&losses).filter(|_| !self.log.rounds.is_empty());
        let of_all =
            |of: fn(&NodeFigures) -> Option<f64>| -> Option<Vec<f64>> { nodes.iter().map(of).collect() };
        let mapes = of_all(|node| node.online_mape);
        let accuracies = of_all(|node| node.online_accuracy);
        let skills: Vec<f64> = nodes.iter().filter_map(|node| node.skill).collect();
        let rho = |values: &[f64]| t_alpha.and_then(|_| measures::pearson(&zetas, values));
        RunFigures {
            rho_loss: rho(&losses),
            rho_loss_late: rho(&self.late_losses()),
            rho_staleness: rho(&waits),
            rho_standing: self.is_measured().then(|| rho_standing(&nodes)).flatten(),
            rho_accuracy: accuracies.as_deref().and_then(rho),
            online_loss,
            online_loss_std: online_loss.map(|loss| loss.std),
            online_mape: mapes.and_then(|values| Summary::of(&values)),
            online_accuracy: accuracies.and_then(|values| Summary::of(&values)),
            skill: Summary::of(&skills),
            t_alpha,
            recall: self.recall(&nodes),
            henze_zirkler: self.henze_zirkler(),
            autocorrelation: self.autocorrelation(),
            rounds: self.log.rounds.len() as u32,
            bytes_up: self.cost.bytes_up,
            bytes_down: self.cost.bytes_down,
            seconds_training: self.cost.seconds_training,
            seconds_fairness: self.cost.seconds_fairness,
            ended: self.ended,
            nodes,
        }
    }

    fn row(&self, node: usize, summary: NodeSummary) -> NodeFigures {
        let over_rounds = |of: fn(&OnlineScore) -> f64| {
            let scores = self.online.iter().map(|round| round.get(node).map_or(f64::NAN, of));
            mean(scores, self.online.len())
        };
        let known = |mean: f64| Some(mean).filter(|mean| mean.is_finite() && !self.online.is_empty());
        NodeFigures {
            id: summary.id,
            zeta: self.nodes[node].zeta,
            standing: summary.standing,
            sampling_probability: summary.sampling_probability,
            drawn: summary.drawn,
            mean_staleness: summary.mean_staleness,
            longest_staleness: summary.longest_staleness,
            online_loss: over_rounds(|score| score.loss),
            online_mape: known(over_rounds(|score| score.mape)),
            online_accuracy: known(over_rounds(|score| score.accuracy)),
            skill: self.skills.get(node).copied().flatten(),
        }
    }

    /// By node: the mean online loss without the first fifth of the rounds.
    fn late_losses(&self) -> Vec<f64> {
        let late = &self.online[self.online.len() / 5..];
        let of = |node: usize| {
            mean(late.iter().map(|round| round.get(node).map_or(f64::NAN, |score| score.loss)), late.len())
        };
        (0..self.nodes.len()).map(of).collect()
    }

    fn is_measured(&self) -> bool {
        self.log.rounds.iter().any(|round| round.contributions.is_some())
    }

    fn recall(&self, nodes: &[NodeFigures]) -> Option<f64> {
        let measured = self.is_measured();
        let zetas: Vec<f64> = nodes.iter().map(|node| node.zeta).collect();
        let noisier = noisier_half(&zetas);
        let standings: Vec<f64> = nodes.iter().map(|node| node.standing).collect();
        measured.then(|| recall(&standings, &noisier)).flatten()
    }

    /// φ of the exploring rounds.
    fn explored(&self) -> impl Iterator<Item = &Vec<f64>> {
        let exploring = self.log.rounds.iter().filter(|round| round.exploring);
        exploring.filter_map(|round| round.contributions.as_ref())
    }

    fn henze_zirkler(&self) -> Option<NormalityFigures> {
        let nodes = self.nodes.len();
        let tested = (self.description.rules.exploring.tested_nodes as usize).min(nodes);
        let columns: Vec<usize> = (0..tested).map(|column| column * nodes / tested).collect();
        let contributions = self.explored();
        let rows: Vec<Vec<f64>> =
            contributions.map(|row| columns.iter().map(|&column| row[column]).collect()).collect();
        let test = measures::henze_zirkler(&rows).ok()?;
        Some(NormalityFigures { statistic: test.statistic, p_value: test.p_value })
    }

    fn autocorrelation(&self) -> Option<f64> {
        let rows: Vec<&Vec<f64>> = self.explored().collect();
        let of_node = |node: usize| {
            let values: Vec<f64> = rows.iter().map(|row| row[node]).collect();
            measures::autocorrelation(&values, 1)?.by_lag.get(1).copied()
        };
        let lags: Vec<f64> = (0..self.nodes.len()).filter_map(of_node).collect();
        Summary::of(&lags).map(|lags| lags.mean)
    }
}

/// Pearson of data quality, −ζ, with the standings; none if they are all equal.
pub fn rho_standing(nodes: &[NodeFigures]) -> Option<f64> {
    let (qualities, standings): (Vec<f64>, Vec<f64>) =
        nodes.iter().map(|node| (-node.zeta, node.standing)).unzip();
    measures::pearson(&qualities, &standings)
}

/// The nodes that are noisier than the median node: half of them, or fewer where nodes are as noisy as it.
fn noisier_half(zetas: &[f64]) -> Vec<usize> {
    let mut order: Vec<f64> = zetas.to_vec();
    order.sort_by(|a, b| b.total_cmp(a));
    let Some(border) = order.get(zetas.len() / 2) else { return Vec::new() };
    (0..zetas.len()).filter(|node| zetas[*node] > *border).collect()
}

/// The share of `low_quality` nodes found among as many nodes of lowest standing; none if there are no such nodes.
fn recall(standings: &[f64], low_quality: &[usize]) -> Option<f64> {
    let mut order: Vec<usize> = (0..standings.len()).collect();
    order.sort_by(|&a, &b| standings[a].total_cmp(&standings[b]));
    let suspects = order.get(..low_quality.len())?;
    let found = low_quality.iter().filter(|node| suspects.contains(node)).count();
    (!low_quality.is_empty()).then(|| found as f64 / low_quality.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::{noisier_half, recall};

    #[test]
    fn nodes_that_are_equally_noisy_are_in_the_same_half() {
        assert_eq!(noisier_half(&[0.0, 0.3, 0.6, 0.9]), [2, 3]);
        assert_eq!(noisier_half(&[0.0, 0.3, 0.6, 0.7, 0.9]), [3, 4]);
        assert_eq!(
            noisier_half(&[-4.0, -3.0, -3.0, -2.0]),
            [3],
            "one of two batches of 3 is no noisier than the other"
        );
        assert!(noisier_half(&[0.5; 4]).is_empty(), "where all data are alike, there is no noisier half");
        assert!(noisier_half(&[]).is_empty());
    }

    #[test]
    fn recall_counts_low_quality_nodes_among_the_lowest() {
        let standings = [0.5, 0.1, 0.4, 0.2, 0.3];
        assert_eq!(recall(&standings, &[1, 3]), Some(1.0));
        assert_eq!(recall(&standings, &[1, 0]), Some(0.5));
        assert_eq!(recall(&standings, &[0]), Some(0.0));
        assert_eq!(recall(&standings, &[]), None);
    }
}
