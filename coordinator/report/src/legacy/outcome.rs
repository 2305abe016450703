//! What a run showed: the one value from which the table, the JSON object and the report are made.

use evenhand_fairness::measures::{self, Summary};
use serde::{Deserialize, Serialize};

/// One simulated node, as its owner knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The node's name.
    pub id: String,
    /// ζ: how much noise its data carry; 0 is clean.
    pub zeta: f64,
}

/// What the two halves of a run are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Everybody takes part; contributions are being measured.
    Exploring,
    /// Nodes are drawn by their standing.
    Exploiting,
}

/// One round, as the observer saw it. Vectors have one entry a node, in the order of the members.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// 1 for the first.
    pub round: u32,
    /// What it was for.
    pub stage: Stage,
    /// Positions of the nodes that received the model, ascending.
    pub drawn: Vec<usize>,
    /// Mean loss the drawn nodes reported, by samples.
    pub loss: f64,
    /// φ, where the round measured it.
    pub contributions: Option<Vec<f64>>,
    /// ψ after the round.
    pub standings: Vec<f64>,
    /// ϱ the draw was made with.
    pub sampling_probabilities: Vec<f64>,
    /// The stop rule's word, where it could speak.
    pub p_value: Option<f64>,
    /// Loss of each node's held model on everybody's next, clean readings.
    pub online_losses: Vec<f64>,
    /// The same in shares of what was measured: the mean absolute percentage error, as a fraction.
    pub online_mapes: Vec<f64>,
    /// The share of samples whose class each node's held model tells; empty or NaN where there are no classes.
    pub online_accuracies: Vec<f64>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// All rounds were done.
    Complete,
    /// Its user ended it before.
    Interrupted,
}

/// What a run cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cost {
    /// Bytes of all messages from nodes.
    pub bytes_up: u64,
    /// Bytes of all messages to nodes.
    pub bytes_down: u64,
    /// Time the nodes spent in training, summed.
    pub seconds_training: f64,
    /// Time the coordinator spent closing rounds: contributions, stop rule, aggregation, record.
    pub seconds_fairness: f64,
}

/// Everything a run showed.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// What was asked, for whoever wants to repeat it.
    pub settings: Settings,
    /// Who took part.
    pub members: Vec<Member>,
    /// What happened, round by round.
    pub rounds: Vec<Round>,
    /// How it ended.
    pub ended: Ended,
    /// What it cost.
    pub cost: Cost,
    /// Who tells of it.
    pub teller: Teller,
}

/// Who tells of a run, and so what is known of its nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Teller {
    /// The fleet: it knows how good each node's data are, and how good its forecasts would be.
    #[default]
    Fleet,
    /// The coordinator: it knows what nodes gave and what they say. ζ is then how far a node's standing falls short.
    Coordinator,
}

/// What was asked.
#[derive(Debug, Clone, Serialize)]
pub struct Settings {
    /// Rounds wanted.
    pub rounds: u32,
    /// Seed of everything random.
    pub seed: u64,
    /// How messages travelled.
    pub transport: String,
    /// How updates travelled.
    pub codec: String,
    /// Who receives the model, and why.
    pub strategy: String,
    /// How draws are made.
    pub sampler: String,
    /// β.
    pub temperature: f64,
    /// τ.
    pub window: usize,
    /// α.
    pub strictness: f64,
    /// M.
    pub watched: usize,
    /// Nodes drawn in a round.
    pub k: usize,
    /// The command that repeats the run.
    #[serde(skip)]
    pub command: String,
}

impl Settings {
    /// Names and values for a reader.
    pub fn shown(&self) -> Vec<(&'static str, String)> {
        vec![
            ("strategy", self.strategy.clone()),
            ("rounds", self.rounds.to_string()),
            ("nodes drawn a round, k", self.k.to_string()),
            ("temperature β", format!("{:.4}", self.temperature)),
            ("sampler", self.sampler.clone()),
            ("stop rule: window τ", self.window.to_string()),
            ("stop rule: strictness α", self.strictness.to_string()),
            ("stop rule: watched nodes M", self.watched.to_string()),
            ("codec of updates", self.codec.clone()),
            ("transport", self.transport.clone()),
            ("seed", self.seed.to_string()),
        ]
    }
}

/// One node's row.
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
}

/// The run in numbers, named as in the JSON object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Pearson of ζ with the online loss: fairness as the owners feel it.
    pub rho_loss: Option<f64>,
    /// Pearson of ζ with the mean staleness: fairness as it is dealt.
    pub rho_staleness: Option<f64>,
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
    /// The round after which the stop rule ended exploring.
    pub t_alpha: Option<u32>,
    /// Share of the noisier half of the nodes that is found in the lower half of the standings.
    pub recall: Option<f64>,
    /// Whether contributions look jointly normal, as the stop rule supposes.
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
    /// How the run ended.
    pub ended: Ended,
    /// One row a node.
    pub nodes: Vec<NodeFigures>,
}

/// The test of Henze and Zirkler on as many nodes as the stop rule watches, spread evenly over the fleet.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NormalityFigures {
    /// HZ.
    pub statistic: f64,
    /// Small when normality is not credible.
    pub p_value: f64,
}

impl Outcome {
    /// γ of every node after every round: 0 where it received the model, one more than before where it did not.
    pub fn staleness(&self) -> Vec<Vec<u32>> {
        let mut now = vec![0; self.members.len()];
        self.rounds
            .iter()
            .map(|round| {
                now.iter_mut().for_each(|wait| *wait += 1);
                round.drawn.iter().for_each(|&node| now[node] = 0);
                now.clone()
            })
            .collect()
    }

    /// By how much each node's online loss exceeded the best-placed node's, as a mean over the rounds in which nodes were
    /// drawn, up to each round; 0 before.
    pub fn excess_losses(&self) -> Vec<Vec<f64>> {
        let mut means = vec![0.0; self.members.len()];
        let mut count = 0.0;
        let mut rows = Vec::with_capacity(self.rounds.len());
        for round in &self.rounds {
            if round.stage == Stage::Exploiting {
                count += 1.0;
                let best = round.online_losses.iter().copied().fold(f64::INFINITY, f64::min);
                for (mean, loss) in means.iter_mut().zip(&round.online_losses) {
                    *mean += (loss - best - *mean) / count;
                }
            }
            rows.push(means.clone());
        }
        rows
    }

    /// The run in numbers.
    pub fn figures(&self) -> Figures {
        let waits = self.staleness();
        let nodes: Vec<NodeFigures> =
            self.members.iter().enumerate().map(|(index, member)| self.row(index, member, &waits)).collect();
        let zetas: Vec<f64> = nodes.iter().map(|node| node.zeta).collect();
        let losses: Vec<f64> = nodes.iter().map(|node| node.online_loss).collect();
        let drew = self.rounds.iter().any(|round| round.stage == Stage::Exploiting);
        let staleness: Vec<f64> = nodes.iter().map(|node| node.mean_staleness).collect();
        let online_loss = Summary::of(&losses).filter(|_| !self.rounds.is_empty());
        let of_all =
            |of: fn(&NodeFigures) -> Option<f64>| -> Option<Vec<f64>> { nodes.iter().map(of).collect() };
        let mapes = of_all(|node| node.online_mape);
        let accuracies = of_all(|node| node.online_accuracy);
        let of_zeta = |values: &Vec<f64>| measures::pearson(&zetas, values);
        Figures {
            rho_loss: measures::pearson(&zetas, &losses).filter(|_| drew),
            rho_staleness: measures::pearson(&zetas, &staleness).filter(|_| drew),
            rho_accuracy: accuracies.as_ref().and_then(of_zeta).filter(|_| drew),
            online_loss,
            online_loss_std: online_loss.map(|loss| loss.std),
            online_mape: mapes.and_then(|values| Summary::of(&values)),
            online_accuracy: accuracies.and_then(|values| Summary::of(&values)),
            t_alpha: self.t_alpha(),
            recall: self.recall(&nodes),
            henze_zirkler: self.henze_zirkler(),
            autocorrelation: self.autocorrelation(),
            rounds: self.rounds.len() as u32,
            bytes_up: self.cost.bytes_up,
            bytes_down: self.cost.bytes_down,
            seconds_training: self.cost.seconds_training,
            seconds_fairness: self.cost.seconds_fairness,
            ended: self.ended,
            nodes,
        }
    }

    fn row(&self, index: usize, member: &Member, waits: &[Vec<u32>]) -> NodeFigures {
        let last = self.rounds.last();
        let drawing: Vec<u32> = (self.rounds.iter().zip(waits))
            .filter(|(round, _)| round.stage == Stage::Exploiting)
            .map(|(_, waits)| waits[index])
            .collect();
        let mean = |sum: f64, count: usize| if count == 0 { 0.0 } else { sum / count as f64 };
        let over_rounds = |of: fn(&Round) -> &Vec<f64>| {
            let of_round = |round: &Round| of(round).get(index).copied().unwrap_or(f64::NAN);
            mean(self.rounds.iter().map(of_round).sum(), self.rounds.len())
        };
        let known = |mean: f64| Some(mean).filter(|mean| mean.is_finite() && !self.rounds.is_empty());
        NodeFigures {
            id: member.id.clone(),
            zeta: member.zeta,
            standing: last.map_or(0.0, |round| round.standings[index]),
            sampling_probability: last.map_or(0.0, |round| round.sampling_probabilities[index]),
            drawn: self.rounds.iter().filter(|round| round.drawn.binary_search(&index).is_ok()).count()
                as u32,
            mean_staleness: mean(drawing.iter().copied().map(f64::from).sum(), drawing.len()),
            longest_staleness: waits.iter().map(|waits| waits[index]).max().unwrap_or(0),
            online_loss: over_rounds(|round| &round.online_losses),
            online_mape: known(over_rounds(|round| &round.online_mapes)),
            online_accuracy: known(over_rounds(|round| &round.online_accuracies)),
        }
    }

    fn recall(&self, nodes: &[NodeFigures]) -> Option<f64> {
        let measured = self.rounds.iter().any(|round| round.contributions.is_some());
        // Where all data are alike, nobody is of the noisier half.
        let differ = nodes.iter().any(|node| node.zeta != nodes[0].zeta);
        let mut noisier: Vec<usize> = (0..nodes.len()).collect();
        noisier.sort_by(|&a, &b| nodes[b].zeta.total_cmp(&nodes[a].zeta));
        noisier.truncate(nodes.len() / 2);
        let standings: Vec<f64> = nodes.iter().map(|node| node.standing).collect();
        (measured && differ).then(|| recall(&standings, &noisier)).flatten()
    }

    /// φ of the rounds in which everybody took part.
    fn explored(&self) -> impl Iterator<Item = &Vec<f64>> {
        let exploring = self.rounds.iter().filter(|round| round.stage == Stage::Exploring);
        exploring.filter_map(|round| round.contributions.as_ref())
    }

    fn henze_zirkler(&self) -> Option<NormalityFigures> {
        let (nodes, watched) = (self.members.len(), self.settings.watched.min(self.members.len()));
        let columns: Vec<usize> = (0..watched).map(|column| column * nodes / watched).collect();
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
        let lags: Vec<f64> = (0..self.members.len()).filter_map(of_node).collect();
        Summary::of(&lags).map(|lags| lags.mean)
    }

    /// Whether exploring ended because the paper's rule was content, and not for another reason.
    pub(crate) fn p_ended_exploring(&self) -> bool {
        let last = self.t_alpha().and_then(|last| self.rounds.iter().find(|round| round.round == last));
        last.and_then(|round| round.p_value).is_some_and(|p| p >= self.settings.strictness)
    }

    /// The last round before nodes were first drawn by their standing.
    fn t_alpha(&self) -> Option<u32> {
        let first = self.rounds.iter().find(|round| round.stage == Stage::Exploiting)?;
        Some(first.round - 1)
    }
}

/// A number of bytes for a reader.
pub fn bytes_text(bytes: u64) -> String {
    match bytes as f64 {
        b if b < 1e3 => format!("{bytes} B"),
        b if b < 1e6 => format!("{:.1} kB", b / 1e3),
        b if b < 1e9 => format!("{:.1} MB", b / 1e6),
        b => format!("{:.2} GB", b / 1e9),
    }
}

/// Decimals that tell one node's probability from another's: the equal share with three digits.
pub fn probability_decimals(nodes: usize) -> usize {
    nodes.max(1).ilog10() as usize + 3
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
    use super::recall;

    #[test]
    fn recall_counts_low_quality_nodes_among_the_lowest() {
        let standings = [0.5, 0.1, 0.4, 0.2, 0.3];
        assert_eq!(recall(&standings, &[1, 3]), Some(1.0));
        assert_eq!(recall(&standings, &[1, 0]), Some(0.5));
        assert_eq!(recall(&standings, &[0]), Some(0.0));
        assert_eq!(recall(&standings, &[]), None);
    }
}
