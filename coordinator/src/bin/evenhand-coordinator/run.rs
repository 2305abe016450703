//! `run`: the federation, until it is finished.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

use evenhand_broker::{BrokerOptions, COORDINATOR, EmbeddedBroker};
use evenhand_coordinator::config::{BrokerChoice, Config};
use evenhand_coordinator::control::{self, Server};
use evenhand_coordinator::dashboard::{Board, Dashboard, Heeded, Watcher};
use evenhand_coordinator::shell::{Connection, Coordinator, Handle, Outcome, Report, ShellError};
use evenhand_coordinator::store::{Durable, Store};
use evenhand_coordinator::view::View;
use evenhand_federation::Federation;
use evenhand_link::{Broker, Traffic};
use evenhand_protocol::exit::Exit;
use evenhand_protocol::message::Phase;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tracing_subscriber::EnvFilter;

use super::operate::claim;
use super::{Failure, load};

pub(super) fn run(path: Option<PathBuf>) -> Result<(), Failure> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let colours =
        std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|no| no.is_empty());
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours).with_writer(std::io::stderr).init();
    let config = load(path)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Software, error))?;
    runtime.block_on(coordinate(config))
}

async fn coordinate(config: Config) -> Result<(), Failure> {
    let wrong = |error| Failure::new(Exit::Config, error);
    let rules = config.rules().map_err(|error| Failure::new(Exit::Config, error))?;
    let fresh = Federation::new(rules, config.blueprint().map_err(wrong)?);
    let store = match config.state.folder.as_os_str().is_empty() {
        true => None,
        false => {
            let folder = &config.state.folder;
            Some(Arc::new(claim(folder, || Store::open_or_create(folder))?))
        }
    };
    let federation = match &store {
        Some(store) => store.resume(fresh)?,
        None => fresh,
    };
    if federation.round() > 0 {
        tracing::info!(round = federation.round(), phase = ?federation.phase(), "going on where it was left");
    }
    // Held until the end: dropping it stops the broker.
    let (connection, _broker) = link_up(&config).await?;
    let mut coordinator = Coordinator::connect(connection, federation).await?;
    let handle = coordinator.handle();
    let mut view = View::new(coordinator.federation());
    if let Some(store) = &store {
        for record in store.log()?.records()? {
            view.close(&record?, 0.0, Traffic::default());
        }
    }
    let board = Board::new(view);
    let dashboard = show(&config, board.clone(), handle.clone()).await?;
    coordinator = coordinator.seen_by(Watcher::new(board, handle.clone()));
    let mut operators = None;
    if let Some(store) = store {
        operators = Some(listen(Arc::clone(&store), handle.clone())?);
        coordinator = coordinator.kept_by(Durable::new(store, config.state.keep_rounds));
    }
    let (reports, mut rounds) = mpsc::unbounded_channel();
    let log = tokio::spawn(async move {
        while let Some(report) = rounds.recv().await {
            tell(&report);
        }
    });
    let running = coordinator.run(reports);
    tokio::pin!(running);
    let (outcome, interrupted) = tokio::select! {
        outcome = &mut running => (outcome, false),
        () = asked_to_stop() => {
            handle.stop();
            (running.await, true)
        }
    };
    if let Some(operators) = operators {
        operators.close().await;
    }
    let Outcome { federation, traffic } = outcome?;
    // It ends when the reports do.
    let _told = log.await;
    if let Some(dashboard) = dashboard {
        dashboard.stop().await;
    }
    tracing::info!(
        round = federation.round(),
        phase = ?federation.phase(),
        bytes_up = traffic.bytes_up,
        bytes_down = traffic.bytes_down,
        "the coordinator ends"
    );
    match (federation.phase(), federation.failure()) {
        (_, Some(cause)) => Err(Failure::new(Exit::Data, cause.clone())),
        (Phase::Finished, _) => Ok(()),
        _ if interrupted => Err(Failure::new(Exit::Interrupted, anyhow::anyhow!("interrupted"))),
        _ => Ok(()),
    }
}

/// The operator's socket.
fn listen(store: Arc<Store>, handle: Handle) -> Result<Server, Failure> {
    let path = control::socket(store.folder());
    Server::start(store, handle).map_err(|error| {
        Failure::new(
            Exit::Config,
            anyhow::anyhow!("cannot listen on {}: {error}; choose another state.folder", path.display()),
        )
    })
}

/// The connection that is configured, and the broker if it is our own.
async fn link_up(config: &Config) -> Result<(Connection, Option<EmbeddedBroker>), Failure> {
    let wrong = |error| Failure::new(Exit::Config, error);
    let (broker, tls, own) = match config.broker().map_err(wrong)? {
        BrokerChoice::External { broker, tls } => (broker, tls, None),
        BrokerChoice::Embedded { listen, access } => {
            let password = access.password().map(str::to_owned);
            let own = EmbeddedBroker::start(BrokerOptions::new(listen, access))
                .await
                .map_err(|source| ShellError::Listen { address: listen, source })?;
            tracing::info!(address = %own.address(), "the embedded broker listens");
            let broker = Broker::parse(&own.url()).map_err(|error| wrong(error.into()))?;
            let broker = match password {
                Some(password) => broker.with_credentials(COORDINATOR, password),
                None => broker,
            };
            (broker, None, Some(own))
        }
    };
    let payload_bytes_max = config.broker.payload_bytes_max;
    Ok((Connection { tls, payload_bytes_max, ..Connection::new(broker) }, own))
}

/// The dashboard, if it is wanted and can be had: a federation does not stand still for want of one.
async fn show(config: &Config, board: Board, handle: Handle) -> Result<Option<Dashboard>, Failure> {
    let Some(options) = config.dashboard().map_err(|error| Failure::new(Exit::Config, error))? else {
        return Ok(None);
    };
    let commander = move |command| -> Heeded {
        let handle = handle.clone();
        Box::pin(async move { handle.command(command).await })
    };
    match Dashboard::start(options, board, Box::new(commander)).await {
        Ok(dashboard) => {
            tracing::info!(url = format!("http://{}/", dashboard.address()), "the dashboard is served");
            Ok(Some(dashboard))
        }
        Err(error) => {
            tracing::error!(%error, "no dashboard");
            Ok(None)
        }
    }
}

/// Waits for Ctrl-C, or for the service manager.
async fn asked_to_stop() {
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

fn tell(report: &Report) {
    let record = &report.closed.record;
    let verdict = record.verdict.as_ref();
    if let Some(why) = &record.unmeasured {
        tracing::warn!(round = record.round, why, "contributions were not measured");
    }
    tracing::info!(
        round = record.round,
        phase = ?record.phase,
        asked = record.asked().count(),
        arrived = record.arrived(),
        loss = record.loss,
        p_value = verdict.and_then(|verdict| verdict.p_value),
        stop = verdict.is_some_and(|verdict| verdict.stop),
        seconds = report.seconds,
        "round closed"
    );
}
