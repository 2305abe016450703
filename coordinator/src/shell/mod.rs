//! The run loop of the coordinator: link, timers and persistence around the federation's state machine.
//!
//! One loop collects inputs (messages, commands, time), steps the federation on a blocking thread, since a round's
//! evaluation may take a while, and passes messages to a second task. State is durable before anything that follows
//! from it is sent.
//!
//! Without a broker nothing is queued: when it is back, [`Input::LinkRestored`] makes the federation repeat what is under
//! way.

mod birth_watch;
mod clock;
mod error;
mod handle;
mod link_adapter;
mod membership_log;
mod observer;
mod options;
mod outbound_queue;
mod persistence;
mod stepper;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::joining::{self, CoordinatorGate};
use evenhand_link::{Events, Link, LinkEvent, LinkOptions, Publisher, Sealing, Traffic};
use evenhand_program::log_rate::LogRate;
use evenhand_protocol::limits::MessageLimits;
use evenhand_protocol::message::{Life, Status};
use evenhand_protocol::topic::{self, Channel};
use tokio::sync::mpsc;
use tokio::task;

pub use self::error::{CommandError, ShellError};
pub use self::handle::CoordinatorHandle;
pub use self::observer::FederationObserver;
pub use self::options::ConnectionOptions;
pub use self::persistence::{NoPersistence, Persistence, PersistenceError};

use self::clock::MonotonicClock;
use self::handle::RunRequest;
use self::link_adapter::LinkAdapter;
use self::membership_log::MembershipLog;
use self::stepper::Stepper;
use evenhand_federation::{Command, Federation, Input, RoundEvidence};

/// Inputs of one trip to the blocking thread.
const BATCH: usize = 256;

/// Log lines about refused messages in a minute.
const REFUSAL_LINES: u32 = 20;

/// The limit for sending the last messages.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// A closed round and the time it took.
#[derive(Debug, Clone)]
pub struct TimedRound {
    /// The round, its model and its updates.
    pub evidence: Arc<RoundEvidence>,
    /// Seconds spent on evaluation, aggregation and persistence.
    pub seconds: f64,
}

/// A coordinator that has stopped.
#[derive(Debug)]
pub struct StoppedCoordinator {
    /// The federation as it was left.
    pub federation: Federation,
    /// Payload bytes of the coordinator's link.
    pub traffic: Traffic,
}

/// A coordinator that is connected to its broker.
pub struct Coordinator {
    federation: Federation,
    persistence: Box<dyn Persistence>,
    observer: Option<Box<dyn FederationObserver>>,
    gate: Arc<CoordinatorGate>,
    publisher: Publisher,
    events: Events,
    requests: (mpsc::UnboundedSender<RunRequest>, mpsc::UnboundedReceiver<RunRequest>),
}

impl Coordinator {
    /// Connects to the broker; the federation is a new one, or one that was restored.
    pub async fn connect(connection: ConnectionOptions, federation: Federation) -> Result<Self, ShellError> {
        let name = &federation.rules().federation.name;
        let gate = match connection.sealing {
            Some(gate) => gate,
            None => joining::open_sealing(name.clone()).map_err(ShellError::Entropy)?,
        };
        let mut options = LinkOptions::new(connection.broker, format!("evenhand-coordinator-{name}"));
        options.sealing = Some(Arc::clone(&gate) as Arc<dyn Sealing>);
        options.tls = connection.tls;
        options.payload_bytes_max = connection.payload_bytes_max;
        options.subscriptions =
            [Channel::Status, Channel::Update].map(|channel| topic::every_node(name, channel)).into();
        options.limits = limits(federation.weights().values().len());
        // Nodes greet a coordinator that has started; the rest is asked for again.
        options.persistent = false;
        let (publisher, mut events) = Link::connect(options)?;
        events.first_connection(connection.connect_timeout).await?;
        let requests = mpsc::unbounded_channel();
        let persistence = Box::new(NoPersistence);
        Ok(Self { federation, persistence, observer: None, gate, publisher, events, requests })
    }

    /// The same, with a persistent state.
    pub fn with_persistence(mut self, persistence: impl Persistence + 'static) -> Self {
        self.persistence = Box::new(persistence);
        self
    }

    /// The same, with an observer.
    pub fn with_observer(mut self, observer: impl FederationObserver + 'static) -> Self {
        self.observer = Some(Box::new(observer));
        self
    }

    /// The federation before it runs.
    pub fn federation(&self) -> &Federation {
        &self.federation
    }

    /// The handle that controls it while it runs.
    pub fn handle(&self) -> CoordinatorHandle {
        CoordinatorHandle::new(self.requests.0.clone(), self.publisher.clone(), Arc::clone(&self.gate))
    }

    /// Runs until the federation has finished or failed, or the handle stops it. Every closed round is sent to `rounds`.
    pub async fn run(
        self,
        rounds: mpsc::UnboundedSender<TimedRound>,
    ) -> Result<StoppedCoordinator, ShellError> {
        let Self {
            federation,
            persistence,
            observer,
            gate: _,
            publisher,
            mut events,
            requests: (_sender, mut requests),
        } = self;
        let name = federation.rules().federation.name.clone();
        let clock = MonotonicClock::start();
        let mut adapter = LinkAdapter::new(publisher.clone(), name.clone());
        let membership_log = MembershipLog::new(federation.members());
        let refusals = LogRate::default().with_lines(REFUSAL_LINES);
        let mut stepper =
            Stepper { federation, persistence, observer, clock, membership_log, refusals, rounds };
        // A federation that is over at the start is still announced: it may have been killed before.
        loop {
            let mut inputs = Vec::new();
            let alarm = stepper.federation.alarm();
            tokio::select! {
                event = events.next() => {
                    let event = event.ok_or(ShellError::LinkClosed)?;
                    inputs.extend(adapter.input(event, &name));
                }
                Some(request) = requests.recv() => match request {
                    RunRequest::Command(command, reply) => {
                        let result = match stepper.federation.rejection(&command) {
                            None => Ok(()),
                            Some(rejection) => Err(CommandError::from(rejection)),
                        };
                        log_command(&command, &result);
                        // The caller may have given up.
                        let _unreceived = reply.send(result);
                        inputs.push(Input::Command(command));
                    }
                    RunRequest::Gone(node) => {
                        let status = Status { session: u64::MAX, life: Life::Dead };
                        inputs.push(Input::Status { node, status });
                    }
                    RunRequest::Inspect(inspect) => inspect(&stepper.federation),
                    RunRequest::Stop => break,
                },
                () = clock.sleep_until(alarm) => inputs.push(Input::Tick),
            }
            while inputs.len() < BATCH
                && let Some(event) = try_next(&mut events)
            {
                inputs.extend(adapter.input(event, &name));
            }
            let stepped = task::spawn_blocking(move || stepper.step(inputs)).await;
            let effects;
            (stepper, effects) = stepped.map_err(|panic| ShellError::Defect(panic.to_string()))??;
            adapter.send(effects);
            if stepper.is_over() {
                break;
            }
        }
        adapter.close(SHUTDOWN_TIMEOUT).await;
        let traffic = publisher.traffic();
        // Nodes that miss the last messages learn the end from the retained manifest.
        let _unsent = publisher.close(SHUTDOWN_TIMEOUT).await;
        Ok(StoppedCoordinator { federation: stepper.federation, traffic })
    }
}

fn log_command(command: &Command, result: &Result<(), CommandError>) {
    let text = match command {
        Command::Begin => "begin".into(),
        Command::Pause => "pause".into(),
        Command::Resume => "resume".into(),
        Command::Explore => "re-explore".into(),
        Command::Remove(node) => format!("remove {node}"),
        Command::Finish => "finish".into(),
    };
    match result {
        Ok(()) => tracing::info!("operator command: {text}"),
        Err(error) => tracing::warn!(%error, "operator command rejected: {text}"),
    }
}

/// The limits on one node's messages: an update of twice the model is still answered with a refusal of its length,
/// anything larger is not even read.
fn limits(parameters: usize) -> MessageLimits {
    let message_bytes_max = 8 * parameters + (64 << 10);
    let general = MessageLimits::default();
    MessageLimits {
        parameters_max: 2 * parameters,
        message_bytes_max,
        incomplete_bytes_max: general.incomplete_bytes_max.max(4 * message_bytes_max),
        ..general
    }
}

/// The next event, if it has arrived already.
fn try_next(events: &mut Events) -> Option<LinkEvent> {
    match pin!(events.next()).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(event) => event,
        Poll::Pending => None,
    }
}
