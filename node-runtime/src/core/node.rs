//! A node: connection, model, data and orders.

use std::sync::Arc;

use evenhand_protocol::codec::ErrorFeedback;
use evenhand_protocol::identity::{Digest, FederationId};
use evenhand_protocol::message::{
    Account, Answer, Birth, Declined, Life, Manifest, Message, Order, Phase, Refusal, Status,
};
use evenhand_protocol::tick::Tick;
use evenhand_protocol::topic::Channel;
use rand_chacha::rand_core::SeedableRng;
use rand_chacha::{ChaCha8Rng, ChaCha20Rng};

use super::effect::NodeEffect;
use super::forecasts::Forecasts;
use super::graph::{GraphState, ModelInfo};
use super::input::{GraphOutcome, NodeInput, Trained};
use super::journal_entry::JournalEntry;
use super::measure::{QueuedMeasure, ReferenceWeights, RunningMeasurement, SentMeasurement};
use super::optimiser::OptimiserState;
use super::orders::{OrderLimits, RunningTraining, SentAnswer};
use super::personal::PersonalPart;
use crate::config::PrivacyConfig;
use crate::forecast::{ForecastVector, PreparedForecast};
use crate::privacy::{Accountant, NoiseSeed, PrivacySpent};
use crate::reading::{InputBatch, Reading};
use crate::window::{DataWindow, MeterQuantity, ReadingsFloor, SideSeries, WindowSettings};

/// Validated settings of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSettings {
    /// The federation it takes part in.
    pub federation: FederationId,
    /// Enrolment token, where the federation requires one.
    pub token: Option<String>,
    /// Version of the program, for the operator.
    pub software: String,
    /// Rules by which data become samples.
    pub window: WindowSettings,
    /// Series beside the household's load.
    pub side_series: Vec<SideSeries>,
    /// The source is simulated or recorded and delivers its readings round by round.
    pub paced_by_rounds: bool,
    /// Forecast for the owner.
    pub forecasts: bool,
    /// Models with more parameters are declined.
    pub parameters_max: usize,
    /// The most work that an order may ask for.
    pub order_limits: OrderLimits,
    /// The least that an update is made of, and noise.
    pub privacy: PrivacyConfig,
    /// Seed of the noise; in operation the system's random numbers.
    pub noise_seed: NoiseSeed,
    /// Seed of the rounding in lossy codecs.
    pub seed: u64,
}

/// Weights and their digest.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HeldModel {
    pub(super) digest: Digest,
    pub(super) weights: Arc<[f32]>,
}

/// A node of a federation. See the [module](super) for how it is driven.
#[derive(Debug, Clone)]
pub struct Node {
    pub(super) settings: NodeSettings,
    pub(super) session: u64,
    pub(super) connected: bool,
    pub(super) phase: Option<Phase>,
    /// The newest round announced.
    pub(super) round: u32,
    /// Rounds whose readings a paced source has delivered.
    pub(super) rounds_read: u32,
    /// Data of the newest round are awaited from a paced source.
    pub(super) reading: bool,
    /// The driver was asked for them.
    pub(super) read_requested: bool,
    pub(super) graph: GraphState,
    /// θ of its last draw, by which it forecasts.
    pub(super) held: Option<HeldModel>,
    /// θ of the last draw it answered: differs from `held` only while it works on an order.
    pub(super) previous: Option<Arc<[f32]>>,
    pub(super) window: DataWindow,
    pub(super) order: Option<super::orders::QueuedOrder>,
    pub(super) training: Option<RunningTraining>,
    pub(super) answered: Option<SentAnswer>,
    pub(super) measure: Option<QueuedMeasure>,
    pub(super) measurement: Option<RunningMeasurement>,
    pub(super) measured: Option<SentMeasurement>,
    /// θ_ref of the last measurement.
    pub(super) reference: Option<ReferenceWeights>,
    pub(super) jobs_started: u64,
    pub(super) optimiser: OptimiserState,
    pub(super) feedback: ErrorFeedback,
    pub(super) generator: ChaCha8Rng,
    /// Of the noise; not saved.
    pub(super) noise: ChaCha20Rng,
    pub(super) accountant: Accountant,
    pub(super) account: Option<Account>,
    /// The round that was declined because its order could not be decoded.
    pub(super) unreadable: Option<u32>,
    pub(super) refusal: Option<(u32, Refusal)>,
    /// The epochs that the last order asked for, if they were too many.
    pub(super) excessive_epochs: Option<u32>,
    /// The samples that the last order or request asked for, if they were too few.
    pub(super) too_few_samples: Option<u32>,
    /// Batches of data so far: their numbers in the journal.
    pub(super) batches_received: u64,
    pub(super) forecasts: Forecasts,
    /// The newest day-ahead forecast.
    pub(super) vector: Option<ForecastVector>,
    /// Forecasts requested so far: the id of the newest.
    pub(super) predictions: u64,
    /// Inputs of the day-ahead forecast that the driver is asked for.
    pub(super) prepared: Option<PreparedForecast>,
    /// Step and weights of the last forecast requested.
    pub(super) predicted: Option<(i64, Digest)>,
    pub(super) personal: Option<PersonalPart>,
    /// The personal part is being trained.
    pub(super) training_personal: bool,
}

impl Node {
    /// A node without data or model. `session` must exceed that of every earlier start.
    pub fn new(settings: NodeSettings, session: u64) -> Self {
        let mut window = DataWindow::new(settings.window.clone());
        window.set_side_series(&settings.side_series);
        let generator = ChaCha8Rng::seed_from_u64(settings.seed);
        let noise = settings.noise_seed.generator();
        Self {
            settings,
            session,
            connected: false,
            phase: None,
            round: 0,
            rounds_read: 0,
            reading: false,
            read_requested: false,
            graph: GraphState::Unknown,
            held: None,
            previous: None,
            window,
            order: None,
            training: None,
            answered: None,
            measure: None,
            measurement: None,
            measured: None,
            reference: None,
            jobs_started: 0,
            optimiser: OptimiserState::default(),
            feedback: ErrorFeedback::default(),
            generator,
            noise,
            accountant: Accountant::default(),
            account: None,
            unreadable: None,
            refusal: None,
            excessive_epochs: None,
            too_few_samples: None,
            batches_received: 0,
            forecasts: Forecasts::default(),
            vector: None,
            predictions: 0,
            prepared: None,
            predicted: None,
            personal: None,
            training_personal: false,
        }
    }

    /// Handles one input at the time `now`; the effects are to be carried out in order.
    pub fn step(&mut self, now: Tick, input: NodeInput) -> Vec<NodeEffect> {
        let mut effects = Vec::new();
        match input {
            NodeInput::Started => effects.extend(self.graph.digest().map(NodeEffect::FindGraph)),
            NodeInput::Connected => self.connect(&mut effects),
            NodeInput::Disconnected => self.connected = false,
            NodeInput::Manifest(manifest) => self.handle_manifest(manifest, &mut effects),
            NodeInput::Order(Order::Train(train)) => self.queue_order(now, train, &mut effects),
            NodeInput::Order(Order::Measure(request)) => self.queue_measure(now, request, &mut effects),
            NodeInput::Order(Order::Graph { graph, onnx }) => self.receive_graph(graph, onnx, &mut effects),
            NodeInput::Order(Order::Refused { round, refusal }) => self.refusal = Some((round, refusal)),
            // The link sends lost chunks again by itself.
            NodeInput::Order(Order::Resend(_)) => {}
            NodeInput::Unreadable => self.decline_unreadable(&mut effects),
            // Not worth a write: the broker retains it, and the coordinator sends it after every round.
            NodeInput::Account(account) => self.account = Some(account),
            NodeInput::Graph { digest, outcome } => self.graph_resolved(digest, outcome, &mut effects),
            NodeInput::Data(batch) => self.handle_data(batch, &mut effects),
            NodeInput::SideData { name, batch } => self.receive_data(Some(name), batch, &mut effects),
            NodeInput::Trained { job_id, outcome } => self.finish_job(job_id, outcome, &mut effects),
            NodeInput::Predicted { id, for_ms, outputs } => {
                self.forecast_made(id, for_ms, outputs.as_ref(), &mut effects)
            }
            NodeInput::PersonalTrained { graph, weights } => {
                self.personal_trained(graph, weights, &mut effects)
            }
            NodeInput::Shutdown => {
                self.publish(Channel::Status, Message::Status(self.offline_status()), true, &mut effects)
            }
        }
        self.advance_reading(&mut effects);
        self.advance_measure(&mut effects);
        self.advance_order(&mut effects);
        effects
    }

    /// The status that the broker publishes when it loses this node.
    pub fn offline_status(&self) -> Status {
        Status { session: self.session, life: Life::Dead }
    }

    /// The newest round announced to this node.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// The federation's phase, if it was announced.
    pub fn phase(&self) -> Option<Phase> {
        self.phase
    }

    /// The weights this node holds.
    pub fn weights(&self) -> Option<&[f32]> {
        self.held.as_ref().map(|held| &*held.weights)
    }

    /// Its data.
    pub fn window(&self) -> &DataWindow {
        &self.window
    }

    /// The newest account received from the coordinator.
    pub fn account(&self) -> Option<&Account> {
        self.account.as_ref()
    }

    /// The last update that was refused, and the reason.
    pub fn refusal(&self) -> Option<(u32, Refusal)> {
        self.refusal
    }

    /// The epochs that the last order asked for, if they were more than permitted.
    pub fn excessive_epochs(&self) -> Option<u32> {
        self.excessive_epochs
    }

    /// The samples that the last order or request asked for, if they were fewer than its owner permits.
    pub fn too_few_samples(&self) -> Option<u32> {
        self.too_few_samples
    }

    /// The privacy spent so far; none without noise.
    pub fn privacy_spent(&self) -> Option<PrivacySpent> {
        self.accountant.spent(&self.settings.privacy)
    }

    /// The least readings behind an update.
    pub fn floor(&self) -> ReadingsFloor {
        self.window.floor(self.settings.privacy.readings_min)
    }

    /// Its forecasts and their outcomes.
    pub fn forecasts(&self) -> &Forecasts {
        &self.forecasts
    }

    /// Its newest day-ahead forecast.
    pub fn forecast_vector(&self) -> Option<&ForecastVector> {
        self.vector.as_ref()
    }

    /// Its session: grows with every start.
    pub fn session(&self) -> u64 {
        self.session
    }

    /// The federation's graph, if this node cannot train it and declines every order.
    pub fn unfit(&self) -> Option<Digest> {
        if let GraphState::Unfit(digest) = self.graph { Some(digest) } else { None }
    }

    /// Adds a journal entry that was written after the node was last saved; older entries change nothing.
    pub fn replay(&mut self, entry: &JournalEntry) {
        if entry.number > self.batches_received {
            self.batches_received = entry.number;
            self.rounds_read = entry.rounds_read;
            self.add_data(entry.side.as_deref(), &entry.batch);
        }
    }

    /// Adds readings from before its own, in the order of their times; the number of steps added.
    pub fn prepend_history(&mut self, readings: &[Reading], quantity: MeterQuantity) -> usize {
        self.window.prepend(readings, quantity)
    }

    /// A training is running.
    pub fn is_training(&self) -> bool {
        self.training.is_some()
    }

    pub(super) fn publish(
        &self,
        channel: Channel,
        message: Message,
        retain: bool,
        effects: &mut Vec<NodeEffect>,
    ) {
        if self.connected {
            effects.push(NodeEffect::Publish { channel, message, retain });
        }
    }

    pub(super) fn answer(&self, answer: Answer, effects: &mut Vec<NodeEffect>) {
        self.publish(Channel::Update, Message::Answer(answer), false, effects);
    }

    fn connect(&mut self, effects: &mut Vec<NodeEffect>) {
        self.connected = true;
        let graph = match &self.graph {
            GraphState::Ready { info, .. } => Some(info.digest),
            _ => None,
        };
        let birth = Birth {
            graph,
            weights: self.held.as_ref().map(|held| held.digest),
            token: self.settings.token.clone(),
            software: self.settings.software.clone(),
        };
        let status = Status { session: self.session, life: Life::Born(birth) };
        self.publish(Channel::Status, Message::Status(status), true, effects);
        if let GraphState::Requested(digest) = self.graph {
            self.answer(Answer::NeedGraph(digest), effects);
        }
        self.repeat_measurement(effects);
        self.repeat_answer(effects);
    }

    fn handle_manifest(&mut self, manifest: Manifest, effects: &mut Vec<NodeEffect>) {
        if manifest.federation != self.settings.federation {
            return;
        }
        if manifest.phase == Phase::Enrolling {
            // A federation that starts over counts its rounds from the beginning.
            self.rounds_read = self.rounds_read.min(manifest.round);
        }
        self.phase = Some(manifest.phase);
        self.notice_round(manifest.round);
        if self.graph.digest() != Some(manifest.graph) {
            self.graph = GraphState::Loading(manifest.graph);
            self.held = None;
            self.previous = None;
            self.optimiser = OptimiserState::default();
            self.feedback = ErrorFeedback::default();
            self.reference = None;
            effects.push(NodeEffect::FindGraph(manifest.graph));
        }
    }

    pub(super) fn notice_round(&mut self, round: u32) {
        self.round = round;
        self.reading |= self.settings.paced_by_rounds && round > self.rounds_read;
    }

    /// Reads the data of a round once the forecast of the data before was made, which they score.
    fn advance_reading(&mut self, effects: &mut Vec<NodeEffect>) {
        if self.reading && !self.read_requested && self.prepared.is_none() && !self.training_personal {
            effects.push(NodeEffect::Read { rounds: self.round.saturating_sub(self.rounds_read) });
            self.rounds_read = self.round;
            self.read_requested = true;
        }
    }

    fn receive_graph(&mut self, digest: Digest, onnx: Vec<u8>, effects: &mut Vec<NodeEffect>) {
        if self.graph == GraphState::Requested(digest) {
            self.graph = GraphState::Loading(digest);
            effects.push(NodeEffect::LoadGraph { digest, onnx });
        }
    }

    fn graph_resolved(&mut self, digest: Digest, outcome: GraphOutcome, effects: &mut Vec<NodeEffect>) {
        if self.graph != GraphState::Loading(digest) {
            return;
        }
        self.graph = match outcome {
            GraphOutcome::Ready(info) if info.digest == digest => self.check_fit(info),
            GraphOutcome::Ready(_) | GraphOutcome::Unfit => GraphState::Unfit(digest),
            GraphOutcome::Absent => {
                self.answer(Answer::NeedGraph(digest), effects);
                self.graph = GraphState::Requested(digest);
                // Nothing that is worth a write: anybody who can forge a manifest gets here.
                return;
            }
        };
        effects.push(NodeEffect::Persist);
    }

    /// A message beyond the limits is a model that is too large, or its file.
    fn decline_unreadable(&mut self, effects: &mut Vec<NodeEffect>) {
        if let GraphState::Requested(digest) = self.graph {
            self.graph = GraphState::Unfit(digest);
        }
        if !self.is_busy_with(self.round) && self.unreadable.replace(self.round) != Some(self.round) {
            self.answer(Answer::Decline { round: self.round, reason: Declined::ModelUnfit }, effects);
        }
    }

    fn check_fit(&self, info: ModelInfo) -> GraphState {
        match info.accepts(&self.window.sample_shape()) {
            Some(sample) if info.parameters <= self.settings.parameters_max => {
                GraphState::Ready { info, sample }
            }
            _ => GraphState::Unfit(info.digest),
        }
    }

    fn handle_data(&mut self, batch: InputBatch, effects: &mut Vec<NodeEffect>) {
        (self.reading, self.read_requested) = (false, false);
        self.receive_data(None, batch, effects);
    }

    fn receive_data(&mut self, side: Option<String>, batch: InputBatch, effects: &mut Vec<NodeEffect>) {
        if batch.is_empty() {
            return;
        }
        let (is_side, complete_ms) = (side.is_some(), self.window.complete_ms());
        self.add_data(side.as_deref(), &batch);
        self.batches_received += 1;
        effects.push(NodeEffect::Journal(JournalEntry {
            number: self.batches_received,
            rounds_read: self.rounds_read,
            side,
            batch,
        }));
        if is_side && self.window.complete_ms() == complete_ms {
            return;
        }
        // A personal part that is trained today forecasts as soon as it is.
        if !self.train_personal(effects) {
            self.predict(effects);
        }
    }

    fn finish_job(&mut self, job_id: u64, outcome: Result<Trained, Declined>, effects: &mut Vec<NodeEffect>) {
        if self.training.as_ref().is_some_and(|training| training.job_id == job_id) {
            self.finish_training(job_id, outcome, effects);
        } else {
            self.finish_measurement(job_id, outcome, effects);
        }
    }

    fn add_data(&mut self, side: Option<&str>, batch: &InputBatch) {
        match side {
            Some(name) => self.window.add_side(name, batch),
            None => self.window.add(batch),
        }
        self.forecasts.evaluate(&self.window);
    }
}
