//! The report of a run: one HTML file that needs nothing but itself.
//!
//! It is made from the validated [`Rules`], the [`RoundLog`] and a [`ReportSource`]: labels and values that the caller
//! knows and the report only prints. Sentences about the run are computed from it.

mod charts;
mod claims;
mod in_force;
mod log_source;
mod node_summary;
mod number_text;
mod page;
pub mod plot;
mod round_log;
mod source;

use evenhand_fairness::measures::{self, Summary};
use evenhand_federation::{Policy, Rules};

use number_text::significant;

pub use in_force::StopCriterion;
pub use node_summary::{NodeSummary, mean};
pub use number_text::{bytes_text, probability_decimals};
pub use round_log::{RoundLog, RoundSummary, StopSummary};
pub use source::{LossSeries, NodeAnnotation, NodeColumn, ReportSource, ReportTile};

/// The style of Evenhand's pages, on light and dark screens.
pub const STYLE: &str = include_str!("style.css");

/// The whole page.
pub fn html(rules: &Rules, log: &RoundLog, source: &ReportSource) -> String {
    page::html(&RunReport::new(rules, log, source))
}

/// A run with the figures that its page shows.
pub(crate) struct RunReport<'a> {
    rules: &'a Rules,
    log: &'a RoundLog,
    source: &'a ReportSource,
    /// By round and position.
    staleness: Vec<Vec<u32>>,
    nodes: Vec<NodeSummary>,
    /// Mean loss of each node.
    losses: Vec<f64>,
    /// Over nodes.
    loss: Option<Summary>,
    /// Pearson of the annotation with the mean staleness, once nodes have been drawn.
    rho_staleness: Option<f64>,
    /// Pearson of the annotation with the mean loss, once nodes have been drawn.
    rho_loss: Option<f64>,
    /// The last round before nodes were first drawn.
    explored_until: Option<u32>,
}

impl<'a> RunReport<'a> {
    fn new(rules: &'a Rules, log: &'a RoundLog, source: &'a ReportSource) -> Self {
        let staleness = log.staleness();
        let nodes = log.node_summaries(&staleness);
        let losses = source.losses.means(nodes.len());
        let explored_until = log.explored_until();
        let waits: Vec<f64> = nodes.iter().map(|node| node.mean_staleness).collect();
        let rho = |values: &[f64]| {
            explored_until.and_then(|_| measures::pearson(&source.annotation.values, values))
        };
        Self {
            rules,
            log,
            source,
            loss: Summary::of(&losses).filter(|_| !log.rounds.is_empty()),
            rho_staleness: rho(&waits),
            rho_loss: rho(&losses),
            staleness,
            nodes,
            losses,
            explored_until,
        }
    }

    /// True if everybody was measured in every round, so that there are no phases to tell apart.
    fn is_continuous(&self) -> bool {
        self.rules.federation.policy == Policy::Continuous
    }

    /// The longest mean wait that the policy `continuous` promises.
    fn promised_wait(&self) -> String {
        significant(self.rules.continuous.worst_wait(self.nodes.len(), self.rules.exploiting.k))
    }

    fn criterion(&self) -> StopCriterion<'a> {
        StopCriterion::new(self.rules)
    }

    /// The stop rule's verdict on a round.
    fn verdict_at(&self, number: u32) -> Option<&StopSummary> {
        self.log.rounds.iter().find(|round| round.round == number)?.stop.as_ref()
    }

    /// The stop rule's last verdict.
    fn last_verdict(&self) -> Option<&StopSummary> {
        self.log.rounds.iter().rev().find_map(|round| round.stop.as_ref())
    }

    /// By how much each node's loss exceeded the best-placed node's, as a mean over the rounds in which nodes were drawn,
    /// up to each round; 0 before.
    fn excess_losses(&self) -> Vec<Vec<f64>> {
        let mut means = vec![0.0; self.nodes.len()];
        let mut count = 0.0;
        let mut rows = Vec::with_capacity(self.log.rounds.len());
        for (round, losses) in self.log.rounds.iter().zip(&self.source.losses.values) {
            if !round.exploring {
                count += 1.0;
                let best = losses.iter().copied().fold(f64::INFINITY, f64::min);
                for (mean, loss) in means.iter_mut().zip(losses) {
                    *mean += (loss - best - *mean) / count;
                }
            }
            rows.push(means.clone());
        }
        rows
    }
}
