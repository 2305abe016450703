//! The command `run`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use evenhand_broker::{BrokerOptions, COORDINATOR, EmbeddedBroker};
use evenhand_coordinator::config::{BrokerChoice, CoordinatorConfig, StateConfig};
use evenhand_coordinator::control::{self, ControlServer};
use evenhand_coordinator::dashboard::{CommandResult, Dashboard, LiveView, LiveViewUpdater};
use evenhand_coordinator::joining::rotation;
use evenhand_coordinator::open_files;
use evenhand_coordinator::shell::{
    ConnectionOptions, Coordinator, CoordinatorHandle, ShellError, StoppedCoordinator, TimedRound,
};
use evenhand_coordinator::store::{Store, StorePersistence};
use evenhand_coordinator::view::FederationView;
use evenhand_federation::{Federation, Intervention, MeasureResponse, Member};
use evenhand_link::{Broker, Traffic};
use evenhand_program::exit::Exit;
use evenhand_program::log;
use evenhand_protocol::message::Phase;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::joining;
use super::operate::open_with_retry;
use super::{CommandFailure, load};

/// Topic and header of a packet.
const PACKET_OVERHEAD_BYTES: usize = 1 << 10;

pub(super) fn run(path: Option<PathBuf>, no_updates_kept: bool) -> Result<(), CommandFailure> {
    let mut config = load(path)?;
    log::init(&config.log);
    config.state.keep_updates &= !no_updates_kept;
    config.concerns().iter().for_each(|concern| tracing::warn!("{concern}"));
    open_files::raise_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandFailure::new(Exit::Software, error))?;
    runtime.block_on(coordinate(config))
}

async fn coordinate(config: CoordinatorConfig) -> Result<(), CommandFailure> {
    let wrong = |error| CommandFailure::new(Exit::Config, error);
    let rules = config.rules().map_err(|error| CommandFailure::new(Exit::Config, error))?;
    let fresh = Federation::new(rules, config.initial_model().map_err(wrong)?);
    let store = match config.state.folder.as_os_str().is_empty() {
        true => None,
        false => {
            let folder = &config.state.folder;
            Some(Arc::new(open_with_retry(folder, || Store::open_or_create(folder))?))
        }
    };
    let federation = match &store {
        Some(store) => store.resume(fresh)?,
        None => fresh,
    };
    if federation.round() > 0 {
        tracing::info!(
            round = federation.round(),
            phase = federation.phase().name(),
            "resuming from saved state"
        );
    }
    let over = matches!(federation.phase(), Phase::Finished | Phase::Failed);
    if over && federation.failure().is_none() {
        tracing::warn!(
            "the federation {} is finished; raise federation.rounds (0 for no end) to go on with it, or name another \
             state.folder to begin a new one",
            federation.rules().federation.name
        );
    }
    // Dropping it stops the embedded broker.
    let (connection, broker) = connection(&config).await?;
    if let Some(broker) = &broker {
        broker.reserve(federation.members().iter().map(Member::id));
    }
    let broker = broker.map(Arc::new);
    let (sealing, keys) = joining::open(&config, store.as_ref(), &federation.rules().federation.name)?;
    let connection = ConnectionOptions { sealing: Some(sealing), ..connection };
    let mut coordinator = Coordinator::connect(connection, federation).await?;
    let handle = coordinator.handle();
    rotation::end_overlap_in_time(&keys, handle.clone());
    let mut view = FederationView::new(coordinator.federation());
    if let Some(store) = &store {
        for record in store.log()?.records()? {
            view.close(&record?, 0.0, Traffic::default());
        }
    }
    let certificates = config.certificates();
    view.set_certificates(certificates.iter().map(|(name, facts)| (*name, facts.expires_ms)));
    let expiry = tokio::spawn(tell_expiry(config.clone()));
    let live_view = LiveView::new(view);
    let dashboard = start_dashboard(&config, live_view.clone(), handle.clone()).await?;
    coordinator = coordinator.with_observer(LiveViewUpdater::new(live_view, handle.clone()));
    let mut control = None;
    if let Some(store) = store {
        control = Some(control_server(Arc::clone(&store), handle.clone())?);
        coordinator = coordinator.with_persistence(persistence(store, &config.state));
    }
    let (sender, mut rounds) = mpsc::unbounded_channel();
    let reserving = broker.clone();
    let log = tokio::spawn(async move {
        while let Some(round) = rounds.recv().await {
            log_round(&round);
            if let Some(broker) = &reserving {
                broker.reserve(round.evidence.round.nodes.iter().map(|row| &row.node));
            }
        }
    });
    let running = coordinator.run(sender);
    tokio::pin!(running);
    let (stopped, interrupted) = tokio::select! {
        stopped = &mut running => (stopped, false),
        () = stop_signal() => {
            handle.stop();
            (running.await, true)
        }
    };
    expiry.abort();
    if let Some(control) = control {
        control.close().await;
    }
    let StoppedCoordinator { federation, traffic } = stopped?;
    // It ends with the last round.
    let _logged = log.await;
    if let Some(dashboard) = dashboard {
        if let Some(cause) = federation.failure().filter(|_| !interrupted) {
            tracing::error!(%cause, "the federation has failed; /healthz says so until the program is stopped");
            stop_signal().await;
        }
        dashboard.stop().await;
    }
    tracing::info!(
        round = federation.round(),
        phase = federation.phase().name(),
        bytes_up = traffic.bytes_down,
        bytes_down = traffic.bytes_up,
        "coordinator stopped"
    );
    match (federation.phase(), federation.failure()) {
        (_, Some(cause)) => Err(CommandFailure::new(Exit::Data, cause.clone())),
        (Phase::Finished, _) => Ok(()),
        _ if interrupted => Err(CommandFailure::new(Exit::Interrupted, anyhow::anyhow!("interrupted"))),
        _ => Ok(()),
    }
}

/// Tells every day of a certificate that ends soon; the first day has been told at the start.
async fn tell_expiry(config: CoordinatorConfig) {
    loop {
        tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
        config.expiry_concerns().iter().for_each(|concern| tracing::warn!("{concern}"));
    }
}

/// The store as persistence; says for how long it keeps the nodes' updates.
fn persistence(store: Arc<Store>, state: &StateConfig) -> StorePersistence {
    let persistence = StorePersistence::new(store, state.keep_rounds);
    match (state.keep_updates, state.keep_rounds) {
        (false, _) => {
            tracing::info!("no updates are kept, only their digests; audit checks what follows from records");
            return persistence.digests_only();
        }
        (true, 0) => tracing::warn!("the updates of all rounds are kept (state.keep_rounds = 0)"),
        (true, rounds) => tracing::info!(
            "updates are kept for audit for {rounds} to {} rounds, then deleted",
            rounds.saturating_mul(2)
        ),
    }
    persistence
}

/// The control socket.
fn control_server(store: Arc<Store>, handle: CoordinatorHandle) -> Result<ControlServer, CommandFailure> {
    let path = control::socket_path(store.folder());
    ControlServer::start(store, handle).map_err(|error| {
        CommandFailure::new(
            Exit::Config,
            anyhow::anyhow!("cannot listen on {}: {error}; choose another state.folder", path.display()),
        )
    })
}

/// The configured connection, and the embedded broker if it is to be used.
async fn connection(
    config: &CoordinatorConfig,
) -> Result<(ConnectionOptions, Option<EmbeddedBroker>), CommandFailure> {
    let wrong = |error| CommandFailure::new(Exit::Config, error);
    let (broker, tls, embedded) = match config.broker().map_err(wrong)? {
        BrokerChoice::External { broker, tls } => (broker, tls, None),
        BrokerChoice::Embedded { listen, access, tls } => {
            let password = access.password().map(str::to_owned);
            let encrypted = tls.is_some();
            let defaults = BrokerOptions::new(listen, access);
            let payload_bytes_max = config.broker.payload_bytes_max + PACKET_OVERHEAD_BYTES;
            let options = BrokerOptions {
                tls,
                node_packet_bytes_max: defaults.node_packet_bytes_max.max(payload_bytes_max),
                ..defaults
            };
            let embedded = EmbeddedBroker::start(options)
                .await
                .map_err(|source| ShellError::Listen { address: listen, source })?;
            tracing::info!(address = %embedded.address(), tls = encrypted, "embedded broker listening");
            let broker = Broker::parse(&embedded.url()).map_err(|error| wrong(error.into()))?;
            let broker = match password {
                Some(password) => broker.with_credentials(COORDINATOR, password),
                None => broker,
            };
            (broker, None, Some(embedded))
        }
    };
    let payload_bytes_max = config.broker.payload_bytes_max;
    Ok((ConnectionOptions { tls, payload_bytes_max, ..ConnectionOptions::new(broker) }, embedded))
}

/// The dashboard, if it is enabled and can listen: a federation does not fail for want of one.
async fn start_dashboard(
    config: &CoordinatorConfig,
    live_view: LiveView,
    handle: CoordinatorHandle,
) -> Result<Option<Dashboard>, CommandFailure> {
    let Some(options) = config.dashboard().map_err(|error| CommandFailure::new(Exit::Config, error))? else {
        return Ok(None);
    };
    let command_sink = move |command| -> CommandResult {
        let handle = handle.clone();
        Box::pin(async move { handle.command(command).await })
    };
    match Dashboard::start(options, live_view, Box::new(command_sink)).await {
        Ok(dashboard) => {
            tracing::info!(url = format!("http://{}/", dashboard.address()), "dashboard listening");
            Ok(Some(dashboard))
        }
        Err(error) => {
            tracing::error!(%error, "dashboard not started");
            Ok(None)
        }
    }
}

/// Waits for SIGINT or SIGTERM.
async fn stop_signal() {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

fn log_round(round: &TimedRound) {
    let record = &round.evidence.round;
    let verdict = record.verdict.as_ref();
    if let Some(Intervention::Restored { share }) = record.intervention {
        tracing::warn!(
            round = record.round,
            "the model got lost; the last good one is restored, and steps are {share} of their length from now on"
        );
    }
    for node in record.nodes.iter().filter(|node| node.measured == MeasureResponse::Repeated) {
        tracing::warn!(
            round = record.round,
            "node {}: sent an earlier answer again; it counts as nothing",
            node.node
        );
    }
    if let Some(reason) = &record.unmeasured {
        tracing::warn!(round = record.round, reason, "contributions could not be measured");
    }
    tracing::info!(
        round = record.round,
        phase = record.phase.name(),
        asked = record.asked().count(),
        arrived = record.arrived(),
        loss = record.loss,
        p_value = verdict.and_then(|verdict| verdict.p_value),
        stop = verdict.is_some_and(|verdict| verdict.stop),
        seconds = round.seconds,
        "round closed"
    );
}
