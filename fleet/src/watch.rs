//! From rounds, as they end, to an outcome.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use evenhand_federation::RoundEvidence;
use evenhand_protocol::message::Phase;

use crate::FleetError;
use crate::observer::{Given, Observer};
use crate::outcome::{Member, Outcome, Round, Settings, Stage, Teller};
use crate::progress::Progress;
use crate::transport::Ran;

/// Sees every round of a run, and remembers what a report needs.
pub struct Watch<W> {
    settings: Settings,
    members: Vec<Member>,
    ids: Vec<String>,
    positions: BTreeMap<String, usize>,
    observer: Observer,
    /// What the nodes drawn in the next round are given: θ_{t−1}.
    given: Given,
    /// By node: who receives what it was drawn for, in a negative control.
    mistaken: Option<Vec<usize>>,
    rounds: Vec<Round>,
    p_value: Option<f64>,
    progress: Progress<W>,
}

impl<W: Write> Watch<W> {
    /// Watches a federation that begins with the weights `initial`.
    pub fn new(
        settings: Settings,
        members: Vec<Member>,
        observer: Observer,
        initial: Arc<[f32]>,
        progress: Progress<W>,
    ) -> Self {
        let ids: Vec<String> = members.iter().map(|member| member.id.clone()).collect();
        let positions = ids.iter().cloned().enumerate().map(|(position, id)| (id, position)).collect();
        Self {
            settings,
            members,
            ids,
            positions,
            observer,
            given: Given { latest: initial, own: BTreeMap::new() },
            mistaken: None,
            rounds: Vec::new(),
            p_value: None,
            progress,
        }
    }

    /// A negative control: once nodes are drawn by their standing, what was meant for node i goes to node `receivers[i]`.
    pub fn with_rewards_mistaken(mut self, receivers: Vec<usize>) -> Self {
        self.mistaken = Some(receivers);
        self
    }

    /// Takes in a round that is over.
    pub fn round(&mut self, closed: &RoundEvidence) -> Result<(), FleetError> {
        let record = &closed.record;
        let nodes = self.members.len();
        let mut round = Round {
            round: record.round,
            stage: if record.phase == Phase::Exploring { Stage::Exploring } else { Stage::Exploiting },
            drawn: Vec::new(),
            loss: record.loss.unwrap_or(f64::NAN),
            contributions: None,
            standings: vec![0.0; nodes],
            sampling_probabilities: vec![0.0; nodes],
            p_value: record.verdict.as_ref().and_then(|verdict| verdict.p_value),
            online_losses: Vec::new(),
            online_mapes: Vec::new(),
            online_accuracies: Vec::new(),
        };
        for node in &record.nodes {
            let Some(&position) = self.positions.get(node.node.as_str()) else { continue };
            round.standings[position] = node.standing;
            round.sampling_probabilities[position] = node.sampling_probability;
            if let Some(contribution) = node.contribution {
                round.contributions.get_or_insert_with(|| vec![0.0; nodes])[position] = contribution;
            }
            if node.was_asked() {
                round.drawn.push(position);
            }
        }
        if let (Some(receivers), Stage::Exploiting) = (&self.mistaken, round.stage) {
            round.drawn.iter_mut().for_each(|node| *node = receivers[*node]);
        }
        round.drawn.sort_unstable();
        let next = Given { latest: closed.weights.shared(), own: self.own(closed) };
        let given = std::mem::replace(&mut self.given, next);
        let online = self.observer.round(round.round, &round.drawn, &given)?;
        round.online_losses = online.iter().map(|online| online.loss).collect();
        round.online_mapes = online.iter().map(|online| online.mape).collect();
        round.online_accuracies = online.iter().map(|online| online.accuracy).collect();
        self.p_value = round.p_value.or(self.p_value);
        self.progress.round(&self.settings, &self.ids, &round, self.p_value);
        self.rounds.push(round);
        Ok(())
    }

    /// Every node's own model by position, from those by column.
    fn own(&self, closed: &RoundEvidence) -> BTreeMap<usize, Arc<[f32]>> {
        let by_name = closed.record.nodes.iter().zip(&closed.own);
        by_name
            .filter_map(|(node, own)| Some((*self.positions.get(node.node.as_str())?, own.shared())))
            .collect()
    }

    /// Says what the run is waiting for.
    pub fn waiting(&mut self, what: &str) {
        self.progress.waiting(what);
    }

    /// The run is over.
    pub fn conclude(mut self, ran: Ran) -> Outcome {
        self.progress.finish();
        Outcome {
            settings: self.settings,
            members: self.members,
            rounds: self.rounds,
            ended: ran.ended,
            cost: ran.cost,
            teller: Teller::Fleet,
        }
    }
}
