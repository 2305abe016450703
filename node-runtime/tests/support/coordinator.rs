//! A scripted coordinator at the other end of a real broker.

use evenhand_link::testing::{Mosquitto, coordinator_sealing};
use evenhand_link::{Events, Link, LinkEvent, LinkOptions, Publisher};
use evenhand_models::{LoadOptions, Model, shipped};
use evenhand_protocol::codec::CodecKind;
use evenhand_protocol::identity::{Digest, FederationId, NodeId};
use evenhand_protocol::message::{
    Account, Answer, Birth, Life, LossKind, Manifest, Message, Order, Phase, Status, Train, Update,
    UpdateKind,
};
use evenhand_protocol::topic::{self, Channel};

/// Samples that enter a batch at most.
pub(crate) const SAMPLES_MAX: u32 = 16;

/// Sends orders as a coordinator would, and receives the answers of the node.
pub(crate) struct ScriptedCoordinator {
    pub(crate) federation: FederationId,
    pub(crate) node: NodeId,
    pub(crate) model: Model,
    onnx: &'static [u8],
    publisher: Publisher,
    events: Events,
}

impl ScriptedCoordinator {
    pub(crate) fn connect(broker: &Mosquitto) -> Self {
        Self::connect_with(LinkOptions::new(broker.broker(), "coordinator"))
    }

    /// As [`connect`](Self::connect), to a broker that wants to know who we are.
    pub(crate) fn connect_with(mut options: LinkOptions) -> Self {
        let federation = FederationId::new("town").unwrap();
        options.subscriptions = vec![
            topic::every_node(&federation, Channel::Status),
            topic::every_node(&federation, Channel::Update),
        ];
        options.sealing = Some(coordinator_sealing(&federation));
        let (publisher, events) = Link::connect(options).unwrap();
        let onnx = shipped::ELECTRICITY_RNN;
        let model = Model::load(onnx, &LoadOptions::default()).unwrap();
        Self { federation, node: NodeId::new("m1").unwrap(), model, onnx, publisher, events }
    }

    /// The same coordinator, with another model.
    pub(crate) fn with_model(self, onnx: &'static [u8]) -> Self {
        Self { model: Model::load(onnx, &LoadOptions::default()).unwrap(), onnx, ..self }
    }

    pub(crate) fn graph(&self) -> Digest {
        Digest(self.model.digest())
    }

    pub(crate) async fn order(&self, order: Order) {
        let topic = topic::node(&self.federation, &self.node, Channel::Task);
        self.publisher.publish(&topic, &Message::Order(order), false).await.unwrap();
    }

    pub(crate) async fn announce(&self, round: u32) {
        self.announce_graph(round, self.graph()).await;
    }

    /// Announces another graph than the one it has.
    pub(crate) async fn announce_graph(&self, round: u32, graph: Digest) {
        self.announce_model(round, graph, self.model.dim()).await;
    }

    /// Announces a model of so many parameters.
    pub(crate) async fn announce_model(&self, round: u32, graph: Digest, parameters: usize) {
        let manifest = Manifest {
            federation: self.federation.clone(),
            graph,
            parameters: parameters as u32,
            phase: Phase::Exploring,
            round,
        };
        let topic = topic::manifest(&self.federation);
        self.publisher.publish(&topic, &Message::Manifest(manifest), true).await.unwrap();
    }

    pub(crate) async fn send_graph(&self) {
        let onnx = self.onnx.to_vec();
        self.order(Order::Graph { graph: self.graph(), onnx }).await;
    }

    pub(crate) async fn train(&self, round: u32, weights: &[f32], with_weights: bool) {
        self.order(Order::Train(train(round, weights, with_weights))).await;
    }

    /// The next message from the node that `wanted` accepts.
    pub(crate) async fn receive<T>(&mut self, mut wanted: impl FnMut(Message) -> Option<T>) -> T {
        loop {
            match self.events.next().await.expect("the link is open") {
                LinkEvent::Message { topic, message, .. } => {
                    assert_eq!(
                        topic::parse_node(&self.federation, &topic).map(|(node, _)| node),
                        Some(self.node.clone())
                    );
                    if let Some(found) = wanted(message) {
                        return found;
                    }
                }
                LinkEvent::Malformed { topic, error, .. } => panic!("{topic}: {error}"),
                LinkEvent::Connected { .. } | LinkEvent::Disconnected { .. } => {}
                // What is left of a session that has ended.
                LinkEvent::Refused { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }

    pub(crate) async fn birth(&mut self) -> (u64, Birth) {
        self.receive(|message| match message {
            Message::Status(Status { session, life: Life::Born(birth) }) => Some((session, birth)),
            _ => None,
        })
        .await
    }

    pub(crate) async fn death(&mut self) -> u64 {
        self.receive(|message| match message {
            Message::Status(Status { session, life: Life::Dead }) => Some(session),
            _ => None,
        })
        .await
    }

    pub(crate) async fn answer(&mut self) -> Answer {
        self.receive(|message| match message {
            Message::Answer(answer) => Some(answer),
            _ => None,
        })
        .await
    }

    pub(crate) async fn update(&mut self) -> Update {
        match self.answer().await {
            Answer::Update(update) => update,
            other => panic!("{other:?}"),
        }
    }

    /// Waits for the node and hands it the graph.
    pub(crate) async fn welcome(&mut self) -> u64 {
        self.announce(0).await;
        let (session, birth) = self.birth().await;
        if birth.graph.is_none() {
            assert_eq!(self.answer().await, Answer::NeedGraph(self.graph()));
            self.send_graph().await;
        }
        session
    }

    /// Tells the node how it stands.
    pub(crate) async fn tell(&self, account: Account) {
        let topic = topic::node(&self.federation, &self.node, Channel::Account);
        self.publisher.publish(&topic, &Message::Account(account), true).await.unwrap();
    }
}

/// An order for the gradient of the mean squared error.
pub(crate) fn train(round: u32, weights: &[f32], with_weights: bool) -> Train {
    Train {
        round,
        weights_digest: Digest::of_weights(weights),
        weights: with_weights.then(|| weights.to_vec()),
        loss: LossKind::Mse,
        samples_max: SAMPLES_MAX,
        kind: UpdateKind::Gradient,
        codec: CodecKind::F32,
        deadline_ms: 60_000,
    }
}
