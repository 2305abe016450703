//! What all phases have in common.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenhand_protocol::identity::{Digest, NodeId};
use evenhand_protocol::message::{Phase as Announced, Refusal};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::draw::Draw;
use super::effect::{Effect, OrderPayload};
use super::failed::FailureCause;
use super::input::Tick;
use super::member::Roster;
use super::record::{ClosedRound, Judgement, NodeResponse, NodeRound, RoundEvidence};
use super::round::{Harvest, Round, Stage};
use super::rules::Rules;
use super::standing::Standing;
use super::weights::Weights;
use crate::strategy::{AnyStrategy, Harvested, Merged};
use evenhand_fairness::{self as fairness, Contributions, FairnessError, Measurement};

/// The ONNX file all nodes hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Graph {
    pub(super) digest: Digest,
    /// Digest of the file's bytes.
    pub(super) file: Digest,
    /// The file itself, which is kept apart from the state: it never changes.
    #[serde(skip)]
    pub(super) onnx: Arc<[u8]>,
}

impl Graph {
    pub(super) fn new(digest: Digest, onnx: Arc<[u8]>) -> Self {
        Self { digest, file: Digest::of(&onnx), onnx }
    }
}

/// Everything but the phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Shared {
    pub(super) rules: Rules,
    pub(super) graph: Graph,
    pub(super) roster: Roster,
    pub(super) latest: Weights,
    /// By column: every node's own model, where the strategy gives it one.
    pub(super) own: Vec<Weights>,
    /// The measurement of contributions, with its state.
    pub(super) measurement: Measurement,
    pub(super) strategy: AnyStrategy,
    pub(super) rng: ChaCha8Rng,
    /// The round that is open, or the last one.
    pub(super) round: u32,
    pub(super) paused: bool,
    /// What was refused since the last record, by column (none for strangers).
    pub(super) refused: BTreeMap<(Option<usize>, Refusal), u32>,
    /// Messages of each node since the round was opened, or the last one closed.
    #[serde(skip)]
    pub(super) heard: BTreeMap<NodeId, u32>,
    /// Rounds missed by those of whom nothing was heard since the link was restored.
    #[serde(skip)]
    pub(super) unheard: BTreeMap<NodeId, u32>,
}

/// How many refusals of one kind strangers are told between two rounds: an answer to everybody would
/// make a nuisance a flood.
const STRANGERS_TOLD: u32 = 1000;

/// How many names are heard between two rounds: where anybody may enrol, names cost nothing.
const NAMES_MAX: usize = 100_000;

/// What one step has come to want, kept apart so that the durable comes before the announced.
#[derive(Default)]
pub(super) struct Outbox {
    pub(super) closed: Vec<RoundEvidence>,
    pub(super) persist: bool,
    pub(super) announcements: Vec<Effect>,
    /// The manifest has changed: it goes to everybody, before the tasks that belong to it.
    pub(super) manifest: bool,
    pub(super) tasks: Vec<Effect>,
}

impl Outbox {
    pub(super) fn publish(&mut self, node: NodeId, dispatch: OrderPayload) {
        self.announcements.push(Effect::Publish { node, dispatch });
    }
}

/// What was measured in a round: by column, φ and its standard error.
pub(super) type Measured = BTreeMap<usize, (f64, Option<f64>)>;

impl Shared {
    /// Whether the next round may begin now.
    pub(super) fn may_open(&self, now: Tick, until: Tick) -> bool {
        !self.paused && now >= until && self.roster.present() > 0
    }

    /// Whether this was the last round.
    fn is_done(&self) -> bool {
        self.round >= self.rules.federation.rounds
    }

    /// Lets the lobby in: founders before the first round, newcomers after it.
    pub(super) fn enrol(&mut self) {
        let founding = self.round == 0 || !self.strategy.get().explores();
        let standing = match founding {
            true => Standing::founder(),
            false => Standing::entering(self.roster.mean_standing(), self.rules.exploring.newcomer_rounds),
        };
        self.roster.enrol_lobby(standing);
    }

    /// Opens a round on `draw`: saved first, then announced.
    pub(super) fn open(&mut self, draw: Draw, now: Tick, out: &mut Outbox) -> Stage {
        self.round = draw.round();
        // Whoever waited long, or lost its broker often, is heard in the round all the same.
        self.heard.clear();
        self.equip_newcomers();
        let deadline = now.plus_ms(self.rules.federation.round_deadline_ms);
        let round = Round::new(draw, now, Some(deadline));
        out.persist = true;
        out.manifest = true;
        self.ask(&round, now, out);
        Stage::Open(round)
    }

    /// Sends every awaited member that is there its task.
    pub(super) fn ask(&self, round: &Round, now: Tick, out: &mut Outbox) {
        let there = |place: &usize| self.roster.member(round.draw.asked()[*place].member).is_present();
        out.tasks.extend(round.awaited().filter(there).filter_map(|place| self.task(round, place, now)));
    }

    /// The task of one place in the draw.
    pub(super) fn task(&self, round: &Round, place: usize, now: Tick) -> Option<Effect> {
        let asked = round.draw.asked().get(place)?.member;
        let holds = self.roster.member(asked).holds;
        let left = round.deadline().map_or(0, |deadline| deadline.ms_since(now));
        let left = u32::try_from(left).unwrap_or(u32::MAX);
        let (member, task) = round.draw.task(place, holds, self.model(asked), &self.rules, left)?;
        let node = self.roster.member(member).id().clone();
        Some(Effect::Publish { node, dispatch: OrderPayload::Train(task) })
    }

    /// Where nodes have models of their own, whoever joins begins with that of the node the strategy thinks least of: the
    /// model of all would be a reward for coming back under another name. A strategy that thinks of all alike rewards
    /// nobody: there, whoever joins begins with θ, which is what all began with, or are pulled to.
    fn equip_newcomers(&mut self) {
        let strategy = self.strategy.get();
        let opinions = (0..self.own.len()).filter_map(|column| Some((strategy.opinion(column)?, column)));
        let least = opinions.min_by(|a, b| a.0.total_cmp(&b.0));
        let model = least.map_or(&self.latest, |(_, column)| &self.own[column]).clone();
        if !self.own.is_empty() {
            self.own.resize(self.roster.members().len(), model);
        }
    }

    /// The model that a member is given when it is asked.
    pub(super) fn model(&self, column: usize) -> &Weights {
        self.own.get(column).unwrap_or(&self.latest)
    }

    /// When the round after one opened at `opened` may begin. One that yielded nothing is not followed
    /// before its deadline, so that nodes without data do not eat up the rounds.
    fn rest(&self, opened: Tick, yielded: bool) -> Tick {
        let general = &self.rules.federation;
        let apart = if yielded { 0 } else { general.round_deadline_ms };
        opened.plus_ms(general.round_interval_ms.max(apart))
    }

    /// What came of a round: φ if `measures` says so and it can be told, and θ_t, unless nothing arrived.
    pub(super) fn reap(
        &mut self,
        round: Round,
        measures: impl FnOnce(&Harvest) -> bool,
    ) -> Result<Reaped, FailureCause> {
        let harvest = round.harvest(&self.rules.admission);
        let (mut told, mut unmeasured, mut next) = (None, None, None);
        if !harvest.arrivals.is_empty() {
            let measures = measures(&harvest);
            if measures || self.measures_every_round() {
                // A federation does not end for want of figures.
                match self.measure(&harvest) {
                    Ok(contributions) => told = measures.then_some(contributions),
                    Err(error) => unmeasured = measures.then(|| error.to_string()),
                }
            }
            next = Some(self.merge(&harvest, told.as_ref())?);
        }
        Ok(Reaped { harvest, told, unmeasured, next })
    }

    /// What was measured as a row of a history.
    pub(super) fn row(&self, measured: &Measured) -> Vec<f64> {
        let columns = 0..self.roster.members().len();
        columns.map(|column| measured.get(&column).map_or(0.0, |(value, _)| *value)).collect()
    }

    /// Whether every round is measured, also one whose contributions are not used.
    fn measures_every_round(&self) -> bool {
        let strategy = self.strategy.get();
        self.measurement.is_stateful() && (strategy.explores() || strategy.measures())
    }

    /// φ of every arrival. On an error neither the measurement nor the generator has changed.
    fn measure(&mut self, harvest: &Harvest) -> Result<Contributions, FairnessError> {
        self.measurement.measure(&harvest.updates(), &harvest.shares, &mut self.rng)
    }

    /// θ_t and whatever models nodes have of their own, if they are finite.
    fn merge(&mut self, harvest: &Harvest, told: Option<&Contributions>) -> Result<Merged, FailureCause> {
        let columns: Vec<usize> = harvest.arrivals.iter().map(|(column, _)| *column).collect();
        let asked: Vec<usize> = harvest.draw.asked().iter().map(|asked| asked.member).collect();
        let losses: Vec<f64> = harvest.arrivals.iter().map(|(_, accepted)| accepted.loss().into()).collect();
        let training = &self.rules.training;
        let members = self.roster.members().iter().enumerate();
        let removed: Vec<usize> = members.filter(|(_, m)| m.is_removed()).map(|(column, _)| column).collect();
        // Whoever was shut out after its update was in still counts for this round.
        let gone = removed.iter().filter(|column| columns.binary_search(column).is_err()).count();
        let enrolled = self.roster.members().len() - gone;
        let presence = if training.dilute { columns.len() as f64 / enrolled as f64 } else { 1.0 };
        let merged = self.strategy.get_mut().merge(&Harvested {
            latest: &self.latest,
            own: &self.own,
            members: self.roster.members().len(),
            removed: &removed,
            asked: &asked,
            columns: &columns,
            updates: &harvest.updates(),
            shares: &harvest.shares,
            losses: &losses,
            contributions: told.map(|told| told.values.as_slice()),
            learning_rate: training.learning_rate,
            presence,
        });
        let finite = merged.latest.is_finite() && merged.own.iter().all(Weights::is_finite);
        if finite { Ok(merged) } else { Err(FailureCause::Diverged { round: harvest.draw.round() }) }
    }

    /// β: as set, or as found for the wanted worst staleness on the standings so far.
    pub(super) fn temperature(&self) -> f64 {
        let wish = &self.rules.exploiting;
        if wish.worst_staleness == 0.0 {
            return wish.temperature;
        }
        let members = self.roster.members().iter().filter(|member| !member.is_removed());
        let standings: Vec<f64> = members.map(|member| member.standing.value()).collect();
        fairness::temperature_for_worst_staleness(&standings, wish.k, wish.worst_staleness)
            .unwrap_or(wish.temperature)
    }

    /// Whether a node may still be heard in this round, or before the next.
    pub(super) fn hears(&mut self, node: &NodeId) -> bool {
        if self.heard.len() >= NAMES_MAX && !self.heard.contains_key(node) {
            return false;
        }
        let heard = self.heard.entry(node.clone()).or_default();
        *heard = heard.saturating_add(1);
        *heard <= self.rules.admission.messages_max
    }

    /// Notes a refusal; a member is told the first time in a round, strangers up to a limit.
    pub(super) fn refuse(
        &mut self,
        node: NodeId,
        column: Option<usize>,
        round: u32,
        refusal: Refusal,
        out: &mut Outbox,
    ) {
        let count = self.refused.entry((column, refusal)).or_default();
        *count = count.saturating_add(1);
        if *count == 1 || (column.is_none() && *count <= STRANGERS_TOLD) {
            out.publish(node, OrderPayload::Refused { round, refusal });
        }
    }

    /// Writes down what the round was, moves on to θ_t, and tells each node how it stands. Says when the
    /// next round may begin, or nothing if this was the last.
    pub(super) fn close(&mut self, closing: Closing<'_>, now: Tick, out: &mut Outbox) -> Option<Tick> {
        let Closing { harvest, phase, next, temperature, probabilities, measured, unmeasured, verdict } =
            closing;
        let round = harvest.draw.round();
        let loss = harvest.loss();
        let Harvest { draw, opened, arrivals: updates, fates, .. } = harvest;
        self.heard.clear();
        let mut refused = std::mem::take(&mut self.refused).into_iter().peekable();
        let mut refusals_of = |column: Option<usize>| {
            let mut own = BTreeMap::new();
            while let Some(((_, refusal), count)) = refused.next_if(|((of, _), _)| *of == column) {
                own.insert(refusal, count);
            }
            own
        };
        // Strangers (none) sort before all columns.
        let strangers = refusals_of(None);
        let mut parts = draw.asked().iter().zip(fates).peekable();
        let row = |(column, member): (usize, &super::Member)| {
            let part = parts.next_if(|(asked, _)| asked.member == column);
            NodeRound {
                node: member.id().clone(),
                why: draw.why(column),
                fate: part.map_or(NodeResponse::NotAsked, |(_, fate)| fate),
                contribution: measured.get(&column).map(|(value, _)| *value),
                contribution_error: measured.get(&column).and_then(|(_, error)| *error),
                standing: self.strategy.get().opinion(column).unwrap_or(member.standing.value()),
                standing_error: member.standing.error(),
                sampling_probability: probabilities.get(column).copied().unwrap_or(0.0),
                staleness: member.staleness(round),
                last_drawn: member.last_drawn,
                drawn: member.drawn,
                removed: member.removed,
                refusals: refusals_of(Some(column)),
            }
        };
        let nodes: Vec<NodeRound> = self.roster.members().iter().enumerate().map(row).collect();
        for (node, member) in nodes.iter().zip(self.roster.members()) {
            if member.is_present() {
                let account = node.account(round);
                out.announcements.push(Effect::Account { node: node.node.clone(), account });
            }
        }
        let weights_before = self.latest.digest();
        let until = self.rest(opened, next.is_some());
        if let Some(Merged { latest, own }) = next {
            self.latest = latest;
            self.own = own;
        }
        let record = ClosedRound {
            round,
            phase,
            opened,
            closed: now,
            weights_before,
            weights_after: self.latest.digest(),
            own_after: own_digest(&self.own),
            temperature,
            loss,
            unmeasured,
            verdict,
            nodes,
            strangers,
        };
        out.closed.push(RoundEvidence {
            record,
            weights: self.latest.clone(),
            own: self.own.clone(),
            updates,
        });
        out.persist = true;
        (!self.is_done()).then_some(until)
    }
}

/// One digest of all models that nodes have of their own; none where they have none.
fn own_digest(own: &[Weights]) -> Option<Digest> {
    let digests: Vec<u8> = own.iter().flat_map(|own| own.digest().0).collect();
    (!own.is_empty()).then(|| Digest::of(&digests))
}

/// What came of a round.
pub(super) struct Reaped {
    pub(super) harvest: Harvest,
    pub(super) told: Option<Contributions>,
    /// Why there are none, though they were wanted.
    pub(super) unmeasured: Option<String>,
    pub(super) next: Option<Merged>,
}

/// What a phase knows of a round that ends.
pub(super) struct Closing<'a> {
    pub(super) harvest: Harvest,
    pub(super) phase: Announced,
    /// θ_t, unless nothing arrived.
    pub(super) next: Option<Merged>,
    pub(super) temperature: f64,
    pub(super) probabilities: &'a [f64],
    pub(super) measured: Measured,
    pub(super) unmeasured: Option<String>,
    pub(super) verdict: Option<Judgement>,
}
