//! The nodes of a churn: real links, invented updates.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use evenhand_link::{Broker, Events, Link, LinkEvent, LinkOptions, NodeSealing, Publisher};
use evenhand_program::entropy;
use evenhand_protocol::codec::EncodedUpdate;
use evenhand_protocol::identity::{Digest, FederationId, NodeId};
use evenhand_protocol::message::{
    Answer, Birth, Life, Manifest, Message, Order, Phase, Status, Train, Update,
};
use evenhand_protocol::topic::{self, Channel};
use evenhand_seal::{Entropy, KeyPair, NodeIdentity, NodeSeal};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::{ChurnArgs, federation_name};
use crate::sim::SimulationError;

/// The round after the last one.
const OVER: u32 = u32::MAX;
/// Limit on the time of a shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs all nodes until the federation is finished or the parent process is gone.
pub(super) async fn run(args: &ChurnArgs) -> Result<(), SimulationError> {
    let broker = Broker::parse(&args.broker)?;
    let federation = federation_name(args)?;
    let rounds = watch::Sender::new(0);
    let mut tasks = JoinSet::new();
    let mut entropy = Entropy::from_seed(entropy::seed().map_err(SimulationError::Entropy)?);
    for number in 0..args.nodes {
        let node = ChurnNode {
            id: NodeId::new(&format!("node-{number:05}"))?,
            federation: federation.clone(),
            broker: broker.clone(),
            seed: args.seed << 32 | u64::from(number),
            dying: args.dying,
            keys: KeyPair::generate(&mut entropy),
        };
        tasks.spawn(node.run(rounds.clone()));
    }
    let (gone, orphaned) = oneshot::channel::<()>();
    thread::spawn(move || {
        let _closed = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        drop(gone);
    });
    let all = async {
        while let Some(ended) = tasks.join_next().await {
            ended.map_err(|panic| SimulationError::Defect(panic.to_string()))??;
        }
        Ok(())
    };
    tokio::select! {
        ended = all => ended,
        _ = orphaned => Ok(()),
    }
}

/// Tells all nodes the newest round, so that those that died return with the next; [`OVER`] at the end.
fn follow(rounds: &watch::Sender<u32>, manifest: &Manifest) {
    let over = matches!(manifest.phase, Phase::Finished | Phase::Failed);
    let newest = if over { OVER } else { manifest.round };
    rounds.send_if_modified(|round| {
        let newer = newest > *round;
        *round = newest.max(*round);
        newer
    });
}

struct ChurnNode {
    id: NodeId,
    federation: FederationId,
    broker: Broker,
    seed: u64,
    dying: f64,
    keys: KeyPair,
}

impl ChurnNode {
    /// Connects, disconnects and returns until the end.
    async fn run(self, rounds: watch::Sender<u32>) -> Result<(), SimulationError> {
        let mut round = rounds.subscribe();
        let mut session = 1;
        loop {
            let (publisher, mut events) = Link::connect(self.options(session)?)?;
            let died_in = self.session(session, &publisher, &mut events, &rounds, &mut round).await?;
            let Some(died_in) = died_in else {
                return Ok(publisher.close(SHUTDOWN_TIMEOUT).await?);
            };
            // Disconnects without a message: the broker publishes the will.
            drop(events);
            // Once the federation is over nobody would answer it.
            match round.wait_for(|round| *round > died_in).await {
                Ok(round) if *round != OVER => {}
                _ => return Ok(()),
            }
            session += 1;
        }
    }

    /// One session; returns the round in which it disconnected, or none at the end.
    async fn session(
        &self,
        session: u64,
        publisher: &Publisher,
        events: &mut Events,
        rounds: &watch::Sender<u32>,
        round: &mut watch::Receiver<u32>,
    ) -> Result<Option<u32>, SimulationError> {
        let mut weights = 0;
        // It stays for the round in which it came.
        let mut lived = *round.borrow_and_update();
        if lived == OVER {
            return Ok(None);
        }
        loop {
            tokio::select! {
                changed = round.changed() => {
                    let now = *round.borrow_and_update();
                    if changed.is_err() || now == OVER {
                        return Ok(None);
                    }
                    if now > lived && self.dies_in(now) {
                        return Ok(Some(now));
                    }
                    lived = now;
                }
                event = events.next() => match event {
                    Some(LinkEvent::Secured { .. }) => {
                        let birth = Birth { graph: None, weights: None, token: None, software: "churn".into() };
                        let status = Status { session, life: Life::Born(birth) };
                        publisher.publish(&self.topic(Channel::Status), &Message::Status(status), true).await?;
                    }
                    Some(LinkEvent::Message { message: Message::Manifest(manifest), .. }) => {
                        follow(rounds, &manifest);
                    }
                    Some(LinkEvent::Message { message: Message::Order(Order::Train(train)), .. }) => {
                        weights = train.weights.as_ref().map_or(weights, Vec::len);
                        let answer = self.answer(&train, weights);
                        publisher.publish(&self.topic(Channel::Update), &Message::Answer(answer), false).await?;
                    }
                    Some(_) => {}
                    None => return Ok(None),
                },
            }
        }
    }

    fn options(&self, session: u64) -> Result<LinkOptions, SimulationError> {
        let mut options = LinkOptions::new(self.broker.clone(), self.id.to_string());
        options.subscriptions = vec![topic::manifest(&self.federation), self.topic(Channel::Task)];
        options.persistent = false;
        let identity = NodeIdentity::new(self.federation.clone(), self.id.clone(), self.keys.clone());
        let entropy = Entropy::from_seed(entropy::seed().map_err(SimulationError::Entropy)?);
        options.sealing = Some(Arc::new(NodeSealing::new(NodeSeal::new(identity, session, entropy))));
        Ok(options)
    }

    fn topic(&self, channel: Channel) -> String {
        topic::node(&self.federation, &self.id, channel)
    }

    fn dies_in(&self, round: u32) -> bool {
        self.rng(round).random_bool(self.dying.clamp(0.0, 1.0))
    }

    fn answer(&self, train: &Train, weights: usize) -> Answer {
        if weights == 0 {
            return Answer::NeedWeights { round: train.round };
        }
        let mut rng = self.rng(train.round);
        let vector = (0..weights).map(|_| rng.random_range(-1.0..1.0)).collect();
        Answer::Update(Update {
            round: train.round,
            samples: 48,
            loss: rng.random_range(0.1..1.0),
            online_loss: 0.0,
            online_samples: 0,
            vector: EncodedUpdate::F32(vector),
        })
    }

    fn rng(&self, round: u32) -> ChaCha8Rng {
        let digest = Digest::of(&[self.seed.to_le_bytes(), u64::from(round).to_le_bytes()].concat());
        ChaCha8Rng::from_seed(digest.0)
    }
}
