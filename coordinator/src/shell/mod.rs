//! The coordinator in the world: link, timers, durable state around the federation's state machine.
//!
//! One loop takes in what happens (messages, commands, time), steps the federation on a blocking
//! thread, since a round's evaluation may take a while, and hands what is to be said to a second task.
//! What must be durable is written before anything that follows from it is said.
//!
//! While the broker is away nothing is queued: when it is back, [`Input::LinkRestored`] has the
//! federation say again what is under way.

mod clock;
mod error;
mod keeper;
mod letters;
mod mail;
mod witness;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use evenhand_link::{Broker, Events, Link, LinkEvent, LinkOptions, Outbox, Tls, Traffic};
use evenhand_protocol::limits::Limits;
use evenhand_protocol::message::Phase;
use evenhand_protocol::topic::{self, Channel};
use tokio::sync::{mpsc, oneshot};
use tokio::task;

pub use self::error::{ShellError, Unheeded};
pub use self::keeper::{Forgetful, KeepError, Keeper};
pub use self::witness::Witness;

use self::clock::Clock;
use self::mail::Mail;
use evenhand_federation::{Command, Effect, Federation, Input, OrderPayload, RoundEvidence};

/// Inputs stepped at a time: enough to make good use of a trip to the blocking thread.
const BATCH: usize = 256;

/// How long the last words may take to reach the broker.
const FAREWELL: Duration = Duration::from_secs(5);

/// How the coordinator reaches its nodes.
#[derive(Debug, Clone)]
pub struct Connection {
    /// The broker.
    pub broker: Broker,
    /// How to trust it, if it speaks TLS.
    pub tls: Option<Tls>,
    /// The largest MQTT payload the broker accepts.
    pub payload_bytes_max: usize,
    /// How long the first connection may take.
    pub patience: Duration,
}

impl Connection {
    /// To `broker`, with the limits that every broker accepts.
    pub fn new(broker: Broker) -> Self {
        let payload_bytes_max = evenhand_protocol::chunk::PAYLOAD_BYTES_MAX;
        Self { broker, tls: None, payload_bytes_max, patience: Duration::from_secs(10) }
    }
}

/// A round as the coordinator tells of it.
#[derive(Debug, Clone)]
pub struct Report {
    /// The round, its model and its updates.
    pub closed: Arc<RoundEvidence>,
    /// Seconds spent on evaluating, merging and saving it.
    pub seconds: f64,
}

/// How a coordinator ended.
#[derive(Debug)]
pub struct Outcome {
    /// Where the federation stands.
    pub federation: Federation,
    /// Payload bytes of the coordinator's link.
    pub traffic: Traffic,
}

/// A coordinator that is linked to its broker.
pub struct Coordinator {
    federation: Federation,
    keeper: Box<dyn Keeper>,
    witness: Option<Box<dyn Witness>>,
    outbox: Outbox,
    events: Events,
    wishes: (mpsc::UnboundedSender<Wish>, mpsc::UnboundedReceiver<Wish>),
}

/// What comes through a [`Handle`].
enum Wish {
    Command(Command, oneshot::Sender<Result<(), Unheeded>>),
    Look(Box<dyn FnOnce(&Federation) + Send>),
    Stop,
}

/// Steers a running coordinator; clones steer the same.
#[derive(Debug, Clone)]
pub struct Handle {
    wishes: mpsc::UnboundedSender<Wish>,
    outbox: Outbox,
}

impl Handle {
    /// Tells the federation what the operator wants; it does so, or says why not.
    pub async fn command(&self, command: Command) -> Result<(), Unheeded> {
        let (answer, told) = oneshot::channel();
        self.wishes.send(Wish::Command(command, answer)).map_err(|_| Unheeded::Ending)?;
        told.await.unwrap_or(Err(Unheeded::Ending))
    }

    /// Looks at the federation between two of its steps, after what was commanded before; none if it has ended.
    pub async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Federation) -> T + Send + 'static,
    ) -> Option<T> {
        let (seen, told) = oneshot::channel();
        let look = move |federation: &Federation| {
            // Whoever asked may have gone.
            let _unheard = seen.send(look(federation));
        };
        self.wishes.send(Wish::Look(Box::new(look))).ok()?;
        told.await.ok()
    }

    /// Ends the coordinator where it stands, without ending the federation: it can be restored.
    pub fn stop(&self) {
        let _ended = self.wishes.send(Wish::Stop);
    }

    /// Payload bytes so far.
    pub fn traffic(&self) -> Traffic {
        self.outbox.traffic()
    }

    /// Whether the broker is there.
    pub fn is_connected(&self) -> bool {
        self.outbox.connected()
    }
}

impl Coordinator {
    /// Links up with the broker; the federation is a new one, or one that was restored.
    pub async fn connect(connection: Connection, federation: Federation) -> Result<Self, ShellError> {
        let name = &federation.rules().federation.name;
        let mut options = LinkOptions::new(connection.broker, format!("evenhand-coordinator-{name}"));
        options.tls = connection.tls;
        options.payload_bytes_max = connection.payload_bytes_max;
        options.subscriptions =
            [Channel::Status, Channel::Update].map(|channel| topic::every_node(name, channel)).into();
        options.limits = limits(federation.weights().values().len());
        // Retained births come with every subscription; the rest is asked for again.
        options.persistent = false;
        let (outbox, mut events) = Link::connect(options)?;
        events.first_connection(connection.patience).await?;
        let wishes = mpsc::unbounded_channel();
        let keeper = Box::new(Forgetful);
        Ok(Self { federation, keeper, witness: None, outbox, events, wishes })
    }

    /// With a keeper that makes the state durable.
    pub fn kept_by(mut self, keeper: impl Keeper + 'static) -> Self {
        self.keeper = Box::new(keeper);
        self
    }

    /// With a witness that shows others how the federation stands.
    pub fn seen_by(mut self, witness: impl Witness + 'static) -> Self {
        self.witness = Some(Box::new(witness));
        self
    }

    /// The federation as it stands before it runs.
    pub fn federation(&self) -> &Federation {
        &self.federation
    }

    /// To steer it while it runs.
    pub fn handle(&self) -> Handle {
        Handle { wishes: self.wishes.0.clone(), outbox: self.outbox.clone() }
    }

    /// Runs until the federation is finished, has failed, or the handle stops it. Every round is told to
    /// `reports`.
    pub async fn run(self, reports: mpsc::UnboundedSender<Report>) -> Result<Outcome, ShellError> {
        let Self { federation, keeper, witness, outbox, mut events, wishes: (_own, mut wishes) } = self;
        let name = federation.rules().federation.name.clone();
        let clock = Clock::start();
        let mut mail = Mail::open(outbox.clone(), name.clone());
        let mut machine = Machine { federation, keeper, witness, clock, reports };
        // One that is over when it starts still says so: it may have been killed before it could.
        loop {
            let mut inputs = Vec::new();
            let alarm = machine.federation.alarm();
            tokio::select! {
                event = events.next() => {
                    let event = event.ok_or(ShellError::LinkClosed)?;
                    inputs.extend(mail.heed(event, &name));
                }
                Some(wish) = wishes.recv() => match wish {
                    Wish::Command(command, answer) => {
                        let objection = machine.federation.objection(&command);
                        tracing::info!(?command, ?objection, "the operator wants something");
                        // Whoever asked may have gone.
                        let _unheard = answer.send(objection.map_or(Ok(()), |why| Err(why.into())));
                        inputs.push(Input::Command(command));
                    }
                    Wish::Look(look) => look(&machine.federation),
                    Wish::Stop => break,
                },
                () = clock.reaches(alarm) => inputs.push(Input::Tick),
            }
            while inputs.len() < BATCH
                && let Some(event) = at_hand(&mut events)
            {
                inputs.extend(mail.heed(event, &name));
            }
            let stepped = task::spawn_blocking(move || machine.step(inputs)).await;
            let words;
            (machine, words) = stepped.map_err(|panic| ShellError::Defect(panic.to_string()))??;
            mail.send(words);
            if machine.is_over() {
                break;
            }
        }
        mail.close(FAREWELL).await;
        let traffic = outbox.traffic();
        // Whoever did not hear the last words learns them from the retained manifest.
        let _unheard = outbox.close(FAREWELL).await;
        Ok(Outcome { federation: machine.federation, traffic })
    }
}

/// What one node may send: an update of twice the model is still told that its length is wrong, anything larger is
/// not even read.
fn limits(parameters: usize) -> Limits {
    let message_bytes_max = 8 * parameters + (64 << 10);
    let general = Limits::default();
    Limits {
        parameters_max: 2 * parameters,
        message_bytes_max,
        open_bytes_max: general.open_bytes_max.max(4 * message_bytes_max),
        ..general
    }
}

/// All that lives on the blocking thread while it steps.
struct Machine {
    federation: Federation,
    keeper: Box<dyn Keeper>,
    witness: Option<Box<dyn Witness>>,
    clock: Clock,
    reports: mpsc::UnboundedSender<Report>,
}

impl Machine {
    fn is_over(&self) -> bool {
        matches!(self.federation.phase(), Phase::Finished | Phase::Failed)
    }

    /// Steps through the inputs, makes durable what has to be, and gives back what is to be said.
    fn step(self, inputs: Vec<Input>) -> Result<(Self, Vec<Effect>), ShellError> {
        let Self { mut federation, mut keeper, mut witness, clock, reports } = self;
        let mut words = Vec::new();
        for input in inputs {
            let began = Instant::now();
            let (next, effects) = federation.step(clock.now(), input);
            federation = next;
            let mut closed = Vec::new();
            for effect in effects {
                match effect {
                    Effect::Record(round) => closed.push(Arc::new(*round)),
                    Effect::Persist(saved) => keeper.keep(&closed, *saved).map_err(ShellError::Keeper)?,
                    word => {
                        if let Effect::Publish { node, dispatch: OrderPayload::Refused { round, refusal } } =
                            &word
                        {
                            tracing::warn!(%node, round, refusal = refusal.name(), "refused");
                        }
                        words.push(word);
                    }
                }
            }
            let seconds = began.elapsed().as_secs_f64();
            for closed in closed {
                let report = Report { closed, seconds };
                if let Some(witness) = &mut witness {
                    witness.closed(&report);
                }
                // Nobody need listen.
                let _unheard = reports.send(report);
            }
        }
        if let Some(witness) = &mut witness {
            witness.stands(&federation);
        }
        Ok((Self { federation, keeper, witness, clock, reports }, words))
    }
}

/// The next event, if it is there already.
fn at_hand(events: &mut Events) -> Option<LinkEvent> {
    match pin!(events.next()).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(event) => event,
        Poll::Pending => None,
    }
}
