//! One node: its link, its model, its data, its work.

use std::sync::Arc;

use evenhand_protocol::codec::ErrorFeedback;
use evenhand_protocol::identity::{Digest, FederationId};
use evenhand_protocol::message::{
    Account, Answer, Birth, Declined, Life, Manifest, Message, Order, Phase, Refusal, Status,
};
use evenhand_protocol::topic::Channel;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::effect::{Effect, Prediction};
use super::entry::Entry;
use super::forecasts::{Forecast, Forecasts};
use super::graph::{Card, Graph};
use super::input::{GraphOutcome, Input};
use super::optimiser::Optimiser;
use super::work::{Answered, Training};
use crate::reading::Intake;
use crate::window::{Window, WindowSettings};

/// What a node is told once.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The federation it takes part in.
    pub federation: FederationId,
    /// Proof that it may enrol, where the federation asks for one.
    pub token: Option<String>,
    /// Version of the program, for the operator.
    pub software: String,
    /// How its data become samples.
    pub window: WindowSettings,
    /// Whether its source is simulated or recorded and hands its readings over round by round.
    pub paced_by_rounds: bool,
    /// Whether it forecasts for its owner.
    pub forecasts: bool,
    /// Models with more parameters do not fit this device.
    pub parameters_max: usize,
    /// Seed of the rounding in lossy codecs.
    pub seed: u64,
}

/// Weights and their digest.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Held {
    pub(super) digest: Digest,
    pub(super) weights: Arc<[f32]>,
}

/// A node of a federation. See the [module](super) for how it is driven.
#[derive(Debug, Clone)]
pub struct Node {
    pub(super) settings: Settings,
    pub(super) session: u64,
    pub(super) connected: bool,
    pub(super) phase: Option<Phase>,
    /// The newest round it heard of.
    pub(super) round: u32,
    /// Rounds whose readings a paced source handed over.
    pub(super) rounds_read: u32,
    pub(super) reading: bool,
    pub(super) graph: Graph,
    /// θ of its last draw: what it forecasts with.
    pub(super) held: Option<Held>,
    /// θ of the last draw it answered: other than what it holds only while it works on an order.
    pub(super) own: Option<Arc<[f32]>>,
    pub(super) window: Window,
    pub(super) order: Option<super::work::Pending>,
    pub(super) training: Option<Training>,
    pub(super) answered: Option<Answered>,
    pub(super) tickets: u64,
    pub(super) optimiser: Optimiser,
    pub(super) feedback: ErrorFeedback,
    pub(super) generator: ChaCha8Rng,
    pub(super) account: Option<Account>,
    /// The round that was declined because its order could not be read.
    pub(super) unread: Option<u32>,
    pub(super) refusal: Option<(u32, Refusal)>,
    /// Intakes so far: numbers them in the journal.
    pub(super) intakes: u64,
    pub(super) forecasts: Forecasts,
    /// The step and the weights of the last forecast that was wanted.
    pub(super) predicted: Option<(i64, Digest)>,
}

impl Node {
    /// A node that knows nothing. `session` must exceed that of every earlier start.
    pub fn new(settings: Settings, session: u64) -> Self {
        let window = Window::new(settings.window.clone());
        let generator = ChaCha8Rng::seed_from_u64(settings.seed);
        Self {
            settings,
            session,
            connected: false,
            phase: None,
            round: 0,
            rounds_read: 0,
            reading: false,
            graph: Graph::Unknown,
            held: None,
            own: None,
            window,
            order: None,
            training: None,
            answered: None,
            tickets: 0,
            optimiser: Optimiser::default(),
            feedback: ErrorFeedback::default(),
            generator,
            account: None,
            unread: None,
            refusal: None,
            intakes: 0,
            forecasts: Forecasts::default(),
            predicted: None,
        }
    }

    /// Takes one input in and says what is to be done, in order.
    pub fn step(&mut self, input: Input) -> Vec<Effect> {
        let mut effects = Vec::new();
        match input {
            Input::Started => effects.extend(self.graph.digest().map(Effect::FindGraph)),
            Input::Connected => self.connect(&mut effects),
            Input::Lost => self.connected = false,
            Input::Manifest(manifest) => self.follow(manifest, &mut effects),
            Input::Order(Order::Train(train)) => self.accept(train, &mut effects),
            Input::Order(Order::Graph { graph, onnx }) => self.receive_graph(graph, onnx, &mut effects),
            Input::Order(Order::Refused { round, refusal }) => self.refusal = Some((round, refusal)),
            // The link sends lost chunks again by itself.
            Input::Order(Order::Resend(_)) => {}
            Input::Unread => self.decline_unread(&mut effects),
            // Not worth a write of its own: the broker keeps it, and the coordinator says it after every round.
            Input::Account(account) => self.account = Some(account),
            Input::Graph { digest, outcome } => self.settle_graph(digest, outcome, &mut effects),
            Input::Intake(intake) => self.take_in(intake, &mut effects),
            Input::Trained { ticket, outcome } => self.finish(ticket, outcome, &mut effects),
            Input::Predicted { for_ms, value } => self.note_forecast(for_ms, value, &mut effects),
            Input::Leave => {
                self.publish(Channel::Status, Message::Status(self.farewell()), true, &mut effects)
            }
        }
        self.work(&mut effects);
        effects
    }

    /// What the broker shall say when it loses this node.
    pub fn farewell(&self) -> Status {
        Status { session: self.session, life: Life::Dead }
    }

    /// The newest round this node heard of.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// What the federation is doing, as far as this node heard.
    pub fn phase(&self) -> Option<Phase> {
        self.phase
    }

    /// The weights this node holds.
    pub fn weights(&self) -> Option<&[f32]> {
        self.held.as_ref().map(|held| &*held.weights)
    }

    /// Its data.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// What the coordinator last said of its standing.
    pub fn account(&self) -> Option<&Account> {
        self.account.as_ref()
    }

    /// The last update that did not count, and why.
    pub fn refusal(&self) -> Option<(u32, Refusal)> {
        self.refusal
    }

    /// What it forecast, and what came true.
    pub fn forecasts(&self) -> &Forecasts {
        &self.forecasts
    }

    /// Its session: grows with every start.
    pub fn session(&self) -> u64 {
        self.session
    }

    /// The graph its federation trains, if this node cannot: every order is declined.
    pub fn unfit(&self) -> Option<Digest> {
        if let Graph::Unfit(digest) = self.graph { Some(digest) } else { None }
    }

    /// Takes in again what came after the node was last saved; what it knows already changes nothing.
    pub fn replay(&mut self, entry: &Entry) {
        if entry.number > self.intakes {
            self.intakes = entry.number;
            self.rounds_read = entry.rounds_read;
            self.remember(&entry.intake);
        }
    }

    /// Whether a training is under way.
    pub fn is_training(&self) -> bool {
        self.training.is_some()
    }

    pub(super) fn publish(
        &self,
        channel: Channel,
        message: Message,
        retain: bool,
        effects: &mut Vec<Effect>,
    ) {
        if self.connected {
            effects.push(Effect::Publish { channel, message, retain });
        }
    }

    pub(super) fn answer(&self, answer: Answer, effects: &mut Vec<Effect>) {
        self.publish(Channel::Update, Message::Answer(answer), false, effects);
    }

    fn connect(&mut self, effects: &mut Vec<Effect>) {
        self.connected = true;
        let graph = match &self.graph {
            Graph::Held { card, .. } => Some(card.digest),
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
        if let Graph::Asked(digest) = self.graph {
            self.answer(Answer::NeedGraph(digest), effects);
        }
        self.repeat_answer(effects);
    }

    fn follow(&mut self, manifest: Manifest, effects: &mut Vec<Effect>) {
        if manifest.federation != self.settings.federation {
            return;
        }
        if manifest.phase == Phase::Enrolling {
            // A federation that begins anew counts its rounds anew.
            self.rounds_read = self.rounds_read.min(manifest.round);
        }
        self.phase = Some(manifest.phase);
        self.notice_round(manifest.round, effects);
        if self.graph.digest() != Some(manifest.graph) {
            self.graph = Graph::Sought(manifest.graph);
            self.held = None;
            self.own = None;
            self.optimiser = Optimiser::default();
            self.feedback = ErrorFeedback::default();
            effects.push(Effect::FindGraph(manifest.graph));
        }
    }

    pub(super) fn notice_round(&mut self, round: u32, effects: &mut Vec<Effect>) {
        self.round = round;
        if self.settings.paced_by_rounds && round > self.rounds_read {
            effects.push(Effect::Read { rounds: round - self.rounds_read });
            self.rounds_read = round;
            self.reading = true;
        }
    }

    fn receive_graph(&mut self, digest: Digest, onnx: Vec<u8>, effects: &mut Vec<Effect>) {
        if self.graph == Graph::Asked(digest) {
            self.graph = Graph::Sought(digest);
            effects.push(Effect::LoadGraph { digest, onnx });
        }
    }

    fn settle_graph(&mut self, digest: Digest, outcome: GraphOutcome, effects: &mut Vec<Effect>) {
        if self.graph != Graph::Sought(digest) {
            return;
        }
        self.graph = match outcome {
            GraphOutcome::Ready(card) if card.digest == digest => self.judge(card),
            GraphOutcome::Ready(_) | GraphOutcome::Unfit => Graph::Unfit(digest),
            GraphOutcome::Absent => {
                self.answer(Answer::NeedGraph(digest), effects);
                Graph::Asked(digest)
            }
        };
        effects.push(Effect::Persist);
    }

    /// What is too long to be read is a model that is too large, or its file.
    fn decline_unread(&mut self, effects: &mut Vec<Effect>) {
        if let Graph::Asked(digest) = self.graph {
            self.graph = Graph::Unfit(digest);
        }
        if !self.is_busy_with(self.round) && self.unread.replace(self.round) != Some(self.round) {
            self.answer(Answer::Decline { round: self.round, reason: Declined::ModelUnfit }, effects);
        }
    }

    fn judge(&self, card: Card) -> Graph {
        match card.accepts(&self.window.sample_shape()) {
            Some(sample) if card.parameters <= self.settings.parameters_max => Graph::Held { card, sample },
            _ => Graph::Unfit(card.digest),
        }
    }

    fn take_in(&mut self, intake: Intake, effects: &mut Vec<Effect>) {
        self.reading = false;
        if intake.is_empty() {
            return;
        }
        self.remember(&intake);
        self.intakes += 1;
        effects.push(Effect::Journal(Entry { number: self.intakes, rounds_read: self.rounds_read, intake }));
        self.predict(effects);
    }

    fn remember(&mut self, intake: &Intake) {
        self.window.add(intake);
        if let Window::Series(series) = &self.window {
            self.forecasts.settle(series);
        }
    }

    /// Wants the next step forecast, unless that was done with these weights.
    pub(super) fn predict(&mut self, effects: &mut Vec<Effect>) {
        if let (true, Graph::Held { card, sample }, Some(held), Some(mut query)) =
            (self.settings.forecasts, &self.graph, &self.held, self.window.query())
        {
            let wanted = Some((query.for_ms, held.digest));
            if self.predicted == wanted {
                return;
            }
            self.predicted = wanted;
            query.shape = std::iter::once(1).chain(sample.iter().copied()).collect();
            let prediction = Prediction { graph: card.digest, weights: Arc::clone(&held.weights), query };
            effects.push(Effect::Predict(Box::new(prediction)));
        }
    }

    fn note_forecast(&mut self, for_ms: i64, value: f32, effects: &mut Vec<Effect>) {
        if let Window::Series(series) = &self.window
            && value.is_finite()
        {
            let forecast = Forecast { for_ms, value: series.normaliser().restore(value) };
            self.forecasts.note(forecast);
            self.forecasts.settle(series);
            effects.push(Effect::Announce(forecast));
        }
    }
}
