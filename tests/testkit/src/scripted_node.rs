//! A node that computes nothing: it answers by a script and records what it receives.

use std::time::Duration;

use evenhand_link::{Broker, Events, Link, LinkEvent, LinkOptions, Publisher};
use evenhand_protocol::codec::EncodedUpdate;
use evenhand_protocol::identity::{Digest, FederationId, NodeId};
use evenhand_protocol::message::{
    Account, Answer, Birth, Life, Message, Order, Phase, Status, Train, Update,
};
use evenhand_protocol::topic::{self, Channel};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// The script of a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NodeScript {
    /// Answers every task.
    AnswerAll,
    /// Closes its connection without a DISCONNECT at the task of this round.
    DisconnectIn(u32),
    /// Answers from this round on only after [`ScriptedNode::proceed`].
    WaitFrom(u32),
}

/// The messages a node received.
#[derive(Debug)]
pub struct NodeTranscript {
    /// The node.
    pub id: NodeId,
    /// Round and digest of the weights of every task, once a round.
    pub tasks: Vec<(u32, Digest)>,
    /// The phases of all manifests.
    pub phases: Vec<Phase>,
    /// The last account.
    pub account: Option<Account>,
}

/// A node that answers by a script.
#[derive(Debug)]
pub struct ScriptedNode {
    task: JoinHandle<NodeTranscript>,
    proceed: watch::Sender<bool>,
    has_manifest: watch::Receiver<bool>,
    stop: mpsc::UnboundedSender<()>,
}

impl ScriptedNode {
    /// Connects to the broker as a node of the federation `home`.
    pub fn start(broker: Broker, name: &str, session: u64, script: NodeScript) -> Self {
        let id = NodeId::new(name).unwrap();
        let federation = FederationId::new("home").unwrap();
        let topic = |channel| topic::node(&federation, &id, channel);
        let mut options = LinkOptions::new(broker, name);
        options.subscriptions =
            vec![topic::manifest(&federation), topic(Channel::Task), topic(Channel::Account)];
        options.sealing = Some(evenhand_link::testing::node_sealing(&federation, &id, session));
        let (publisher, events) = Link::connect(options).unwrap();
        let (proceed, proceeding) = watch::channel(false);
        let (manifest_received, has_manifest) = watch::channel(false);
        let (stop, stopped) = mpsc::unbounded_channel();
        let actor = ScriptActor {
            publisher,
            federation,
            session,
            script,
            manifest_received,
            held: None,
            weights: Vec::new(),
            transcript: NodeTranscript { id, tasks: Vec::new(), phases: Vec::new(), account: None },
        };
        Self { task: tokio::spawn(actor.run(events, proceeding, stopped)), proceed, has_manifest, stop }
    }

    /// Waits for the manifest that answers its birth.
    pub async fn wait_for_manifest(&mut self) {
        self.has_manifest.wait_for(|received| *received).await.unwrap();
    }

    /// Lets a waiting node answer.
    pub fn proceed(&self) {
        self.proceed.send_replace(true);
    }

    /// The messages until the federation finished, or the script disconnected.
    pub async fn finish(self) -> NodeTranscript {
        self.task.await.unwrap()
    }

    /// Stops the node; returns the messages so far.
    pub async fn stop(self) -> NodeTranscript {
        self.stop.send(()).unwrap();
        self.task.await.unwrap()
    }
}

struct ScriptActor {
    publisher: Publisher,
    federation: FederationId,
    session: u64,
    script: NodeScript,
    manifest_received: watch::Sender<bool>,
    held: Option<Train>,
    weights: Vec<f32>,
    transcript: NodeTranscript,
}

impl ScriptActor {
    async fn run(
        mut self,
        mut events: Events,
        mut proceed: watch::Receiver<bool>,
        mut stop: mpsc::UnboundedReceiver<()>,
    ) -> NodeTranscript {
        loop {
            tokio::select! {
                event = events.next() => match event.unwrap() {
                    LinkEvent::Secured { .. } => self.publish_birth().await,
                    LinkEvent::Message { topic, message, .. } => match message {
                        Message::Manifest(manifest) => {
                            if topic.ends_with("/task") {
                                self.manifest_received.send_replace(true);
                            }
                            self.transcript.phases.push(manifest.phase);
                            if manifest.phase == Phase::Finished {
                                break;
                            }
                        }
                        Message::Account(account) => self.transcript.account = Some(account),
                        Message::Order(Order::Train(train)) => {
                            if self.script == NodeScript::DisconnectIn(train.round) {
                                // Dropping the events ends the link without a DISCONNECT.
                                return self.transcript;
                            }
                            match self.script {
                                NodeScript::WaitFrom(from) if train.round >= from && !*proceed.borrow() => {
                                    self.held = Some(train);
                                }
                                _ => self.answer(train).await,
                            }
                        }
                        Message::Order(_) | Message::Status(_) | Message::Answer(_) => {}
                    },
                    // A message of a session that has ended is none.
                    LinkEvent::Connected { .. } | LinkEvent::Disconnected { .. } | LinkEvent::Refused { .. } => {}
                    LinkEvent::Rejected(why) => panic!("{why}"),
                    LinkEvent::Malformed { topic, error, .. } => panic!("{topic}: {error}"),
                },
                Ok(()) = proceed.changed() => {
                    if let Some(train) = self.held.take() {
                        self.answer(train).await;
                    }
                }
                Some(()) = stop.recv() => break,
            }
        }
        // A graceful end: the last account may still arrive after the last manifest.
        let _unsent = self.publisher.close(Duration::from_secs(60)).await;
        self.transcript
    }

    async fn publish_birth(&self) {
        let weights = (!self.weights.is_empty()).then(|| Digest::of_weights(&self.weights));
        let birth = Birth { graph: None, weights, token: None, software: "script".into() };
        let status = Status { session: self.session, life: Life::Born(birth) };
        self.publish(Channel::Status, Message::Status(status), true).await;
    }

    async fn answer(&mut self, train: Train) {
        if let Some(weights) = train.weights {
            assert_eq!(Digest::of_weights(&weights), train.weights_digest);
            self.weights = weights;
        }
        if !self.transcript.tasks.iter().any(|(round, _)| *round == train.round) {
            self.transcript.tasks.push((train.round, train.weights_digest));
        }
        let salt = f32::from(self.transcript.id.as_str().bytes().last().unwrap() % 10);
        let vector: Vec<f32> = self.weights.iter().map(|w| 0.01 * (w - salt)).collect();
        let update = Update {
            round: train.round,
            samples: 10,
            loss: 1.0 / train.round as f32,
            online_loss: 0.0,
            online_samples: 0,
            vector: EncodedUpdate::F32(vector),
        };
        self.publish(Channel::Update, Message::Answer(Answer::Update(update)), false).await;
    }

    async fn publish(&self, channel: Channel, message: Message, retain: bool) {
        let topic = topic::node(&self.federation, &self.transcript.id, channel);
        self.publisher.publish(&topic, &message, retain).await.unwrap();
    }
}
