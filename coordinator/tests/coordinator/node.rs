//! A node that computes nothing: it answers by a script and writes down what it was told.

use std::time::Duration;

use evenhand_link::{Broker, Events, Link, LinkEvent, LinkOptions, Outbox, Outgoing};
use evenhand_protocol::codec::EncodedUpdate;
use evenhand_protocol::identity::{Digest, FederationId, NodeId};
use evenhand_protocol::message::{
    Account, Answer, Birth, Life, Message, Order, Phase, Status, Train, Update,
};
use evenhand_protocol::topic::{self, Channel};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// What the script says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Behaviour {
    /// Answers every task.
    Obeys,
    /// Is gone without a word when asked in this round.
    DiesIn(u32),
    /// Answers from this round on only after [`Node::go_on`].
    Waits(u32),
}

/// What a node was told.
#[derive(Debug)]
pub(crate) struct Diary {
    pub(crate) id: NodeId,
    /// Round and digest of the weights of every task, once a round.
    pub(crate) tasks: Vec<(u32, Digest)>,
    pub(crate) phases: Vec<Phase>,
    pub(crate) account: Option<Account>,
}

pub(crate) struct Node {
    script: JoinHandle<Diary>,
    go: watch::Sender<bool>,
    greeted: watch::Receiver<bool>,
    stop: mpsc::UnboundedSender<()>,
}

impl Node {
    pub(crate) fn start(broker: Broker, name: &str, session: u64, behaviour: Behaviour) -> Self {
        let id = NodeId::new(name).unwrap();
        let federation = FederationId::new("home").unwrap();
        let topic = |channel| topic::node(&federation, &id, channel);
        let mut options = LinkOptions::new(broker, name);
        options.subscriptions =
            vec![topic::manifest(&federation), topic(Channel::Task), topic(Channel::Account)];
        let dead = Message::Status(Status { session, life: Life::Dead });
        options.will = Some(Outgoing { topic: topic(Channel::Status), message: dead, retain: true });
        let (outbox, events) = Link::connect(options).unwrap();
        let (go, gone_on) = watch::channel(false);
        let (greeting, greeted) = watch::channel(false);
        let (stop, stopped) = mpsc::unbounded_channel();
        let actor = Actor {
            outbox,
            federation,
            session,
            behaviour,
            greeting,
            held: None,
            weights: Vec::new(),
            diary: Diary { id, tasks: Vec::new(), phases: Vec::new(), account: None },
        };
        Self { script: tokio::spawn(actor.play(events, gone_on, stopped)), go, greeted, stop }
    }

    /// Waits until the coordinator has answered its birth.
    pub(crate) async fn is_greeted(&mut self) {
        self.greeted.wait_for(|greeted| *greeted).await.unwrap();
    }

    /// Lets a waiting node answer.
    pub(crate) fn go_on(&self) {
        self.go.send_replace(true);
    }

    /// What it was told until the federation ended, or it died.
    pub(crate) async fn end(self) -> Diary {
        self.script.await.unwrap()
    }

    /// What it was told so far.
    pub(crate) async fn end_now(self) -> Diary {
        self.stop.send(()).unwrap();
        self.script.await.unwrap()
    }
}

struct Actor {
    outbox: Outbox,
    federation: FederationId,
    session: u64,
    behaviour: Behaviour,
    greeting: watch::Sender<bool>,
    held: Option<Train>,
    weights: Vec<f32>,
    diary: Diary,
}

impl Actor {
    async fn play(
        mut self,
        mut events: Events,
        mut go: watch::Receiver<bool>,
        mut stop: mpsc::UnboundedReceiver<()>,
    ) -> Diary {
        loop {
            tokio::select! {
                event = events.next() => match event.unwrap() {
                    LinkEvent::Connected { .. } => self.be_born().await,
                    LinkEvent::Message { topic, message, .. } => match message {
                        Message::Manifest(manifest) => {
                            if topic.ends_with("/task") {
                                self.greeting.send_replace(true);
                            }
                            self.diary.phases.push(manifest.phase);
                            if manifest.phase == Phase::Finished {
                                break;
                            }
                        }
                        Message::Account(account) => self.diary.account = Some(account),
                        Message::Order(Order::Train(train)) => {
                            if self.behaviour == Behaviour::DiesIn(train.round) {
                                // Dropping the events ends the link without a goodbye.
                                return self.diary;
                            }
                            match self.behaviour {
                                Behaviour::Waits(from) if train.round >= from && !*go.borrow() => {
                                    self.held = Some(train);
                                }
                                _ => self.obey(train).await,
                            }
                        }
                        Message::Order(_) | Message::Status(_) | Message::Answer(_) => {}
                    },
                    LinkEvent::Lost { .. } => {}
                    LinkEvent::Malformed { topic, error, .. } => panic!("{topic}: {error}"),
                },
                Ok(()) = go.changed() => {
                    if let Some(train) = self.held.take() {
                        self.obey(train).await;
                    }
                }
                Some(()) = stop.recv() => break,
            }
        }
        // In peace, so that accounts published after the last manifest are not waited for in vain.
        let _unheard = self.outbox.close(Duration::from_secs(60)).await;
        self.diary
    }

    async fn be_born(&self) {
        let weights = (!self.weights.is_empty()).then(|| Digest::of_weights(&self.weights));
        let birth = Birth { graph: None, weights, token: None, software: "script".into() };
        let status = Status { session: self.session, life: Life::Born(birth) };
        self.say(Channel::Status, Message::Status(status), true).await;
    }

    async fn obey(&mut self, train: Train) {
        if let Some(weights) = train.weights {
            assert_eq!(Digest::of_weights(&weights), train.weights_digest);
            self.weights = weights;
        }
        if !self.diary.tasks.iter().any(|(round, _)| *round == train.round) {
            self.diary.tasks.push((train.round, train.weights_digest));
        }
        let salt = f32::from(self.diary.id.as_str().bytes().last().unwrap() % 10);
        let vector: Vec<f32> = self.weights.iter().map(|w| 0.01 * (w - salt)).collect();
        let update = Update {
            round: train.round,
            samples: 10,
            loss: 1.0 / train.round as f32,
            online_loss: 0.0,
            online_samples: 0,
            vector: EncodedUpdate::F32(vector),
        };
        self.say(Channel::Update, Message::Answer(Answer::Update(update)), false).await;
    }

    async fn say(&self, channel: Channel, message: Message, retain: bool) {
        let topic = topic::node(&self.federation, &self.diary.id, channel);
        self.outbox.publish(&topic, &message, retain).await.unwrap();
    }
}
