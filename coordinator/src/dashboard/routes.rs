//! Routes and their handlers.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use evenhand_program::prometheus::CONTENT_TYPE;
use evenhand_protocol::identity::NodeId;
use evenhand_protocol::message::Phase;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::{Semaphore, watch};

use super::assets::ASSETS;
use super::auth::{self, Guesses, OperatorToken};
use super::live_view::{LiveView, json as encoded};
use super::{CommandSink, DashboardOptions, events, metrics};
use crate::shell::CommandError;
use evenhand_federation::{Command, CommandRejection};

/// The largest body of a command.
const BODY_BYTES_MAX: usize = 4096;

/// The state that all handlers share.
#[derive(Clone)]
pub(super) struct App(Arc<AppState>);

struct AppState {
    options: DashboardOptions,
    live_view: LiveView,
    command_sink: CommandSink,
    permits: Arc<Semaphore>,
    guesses: Guesses,
    stopped: watch::Receiver<bool>,
}

impl App {
    pub(super) fn new(
        options: DashboardOptions,
        live_view: LiveView,
        command_sink: CommandSink,
        stopped: watch::Receiver<bool>,
    ) -> Self {
        let permits = Arc::new(Semaphore::new(options.events_max));
        let guesses = Guesses::new(options.refusal_delay);
        Self(Arc::new(AppState { options, live_view, command_sink, permits, guesses, stopped }))
    }

    pub(super) fn live_view(&self) -> &LiveView {
        &self.0.live_view
    }

    pub(super) fn token(&self) -> Option<&OperatorToken> {
        self.0.options.token.as_ref()
    }

    pub(super) fn guesses(&self) -> &Guesses {
        &self.0.guesses
    }

    pub(super) fn hosts(&self) -> &[String] {
        &self.0.options.hosts
    }

    pub(super) fn pace(&self) -> Duration {
        self.0.options.pace
    }

    pub(super) fn permits(&self) -> &Arc<Semaphore> {
        &self.0.permits
    }

    pub(super) fn stopped(&self) -> watch::Receiver<bool> {
        self.0.stopped.clone()
    }

    fn subscribers(&self) -> usize {
        self.0.options.events_max - self.0.permits.available_permits()
    }
}

fn routes() -> Vec<(&'static str, MethodRouter<App>)> {
    let mut routes = vec![
        ("/healthz", get(health)),
        ("/metrics", get(prometheus)),
        ("/api/v1/federation", get(federation)),
        ("/api/v1/nodes", get(nodes)),
        ("/api/v1/nodes/{id}", get(node)),
        ("/api/v1/rounds", get(rounds)),
        ("/api/v1/draws", get(draws)),
        ("/api/v1/events", get(events::events)),
        ("/api/v1/commands/{command}", post(command)),
    ];
    for asset in ASSETS {
        routes.push((
            asset.path,
            get(move || async move { ([(header::CONTENT_TYPE, asset.kind)], asset.text) }),
        ));
    }
    routes
}

/// Every path that is served.
pub fn paths() -> Vec<&'static str> {
    routes().into_iter().map(|(path, _)| path).collect()
}

pub(super) fn router(app: App) -> Router {
    let mut router = Router::new();
    for (path, route) in routes() {
        router = router.route(path, route);
    }
    router
        .fallback(|| async { problem(StatusCode::NOT_FOUND, "not found; see /api/v1/openapi.json") })
        .method_not_allowed_fallback(|| async {
            problem(StatusCode::METHOD_NOT_ALLOWED, "method not allowed; see /api/v1/openapi.json")
        })
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(from_fn_with_state(app.clone(), auth::known_host))
        .layer(from_fn(auth::headers))
        .with_state(app)
}

/// An error as programs and people can read it.
pub(super) fn problem(status: StatusCode, error: impl std::fmt::Display) -> Response {
    answer(status, encoded(&json!({ "error": error.to_string() })))
}

fn answer(status: StatusCode, body: Bytes) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

async fn health(State(app): State<App>) -> Response {
    let (phase, connected, round, failure) = app.live_view().read(|view| {
        let overview = view.overview();
        (overview.phase, overview.connected, overview.round, overview.failure.clone())
    });
    // A lost connection is restored by itself, but until then no round is held.
    let (status, name) = match (phase, connected) {
        (Phase::Failed, _) => (StatusCode::SERVICE_UNAVAILABLE, "failed"),
        (Phase::Finished, _) | (_, true) => (StatusCode::OK, "ok"),
        (_, false) => (StatusCode::SERVICE_UNAVAILABLE, "no broker"),
    };
    let body = json!({
        "status": name, "phase": phase.name(), "round": round, "connected": connected, "error": failure
    });
    answer(status, encoded(&body))
}

async fn prometheus(State(app): State<App>) -> Response {
    let text = app.live_view().read(|view| metrics::text(view, app.subscribers()));
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response()
}

async fn federation(State(app): State<App>) -> Response {
    answer(StatusCode::OK, app.live_view().read(|view| encoded(view.overview())))
}

async fn nodes(State(app): State<App>) -> Response {
    answer(StatusCode::OK, app.live_view().nodes_json())
}

async fn draws(State(app): State<App>) -> Response {
    answer(StatusCode::OK, app.live_view().draws_json())
}

async fn node(State(app): State<App>, Path(id): Path<String>) -> Response {
    let page = NodeId::new(&id).ok().and_then(|id| app.live_view().read(|view| view.node(&id)));
    match page {
        Some(page) => answer(StatusCode::OK, encoded(&page)),
        None => problem(StatusCode::NOT_FOUND, "unknown node; see /api/v1/nodes"),
    }
}

#[derive(Deserialize)]
struct RoundsQuery {
    #[serde(default)]
    from: u32,
}

async fn rounds(State(app): State<App>, query: Result<Query<RoundsQuery>, QueryRejection>) -> Response {
    match query {
        Ok(Query(RoundsQuery { from })) => {
            answer(StatusCode::OK, app.live_view().read(|view| encoded(&view.rounds(from))))
        }
        Err(_) => problem(StatusCode::BAD_REQUEST, "from must be the number of a round"),
    }
}

/// The body of the one command that needs one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RemoveRequest {
    node: NodeId,
}

async fn command(
    State(app): State<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if let Some(refused) = auth::unauthorised(&app, &headers).await {
        return refused;
    }
    let command = match name.as_str() {
        "pause" => Command::Pause,
        "resume" => Command::Resume,
        "re-explore" => Command::Explore,
        "remove" => match serde_json::from_slice(&body) {
            Ok(RemoveRequest { node }) => Command::Remove(node),
            Err(_) => {
                return problem(StatusCode::BAD_REQUEST, "the body names the node: {\"node\": \"NAME\"}");
            }
        },
        _ => return problem(StatusCode::NOT_FOUND, "commands are pause, resume, re-explore and remove"),
    };
    match (app.0.command_sink)(command).await {
        Ok(()) => answer(StatusCode::ACCEPTED, encoded(&json!({ "accepted": name }))),
        Err(why @ CommandError::Rejected(CommandRejection::UnknownNode(_))) => {
            problem(StatusCode::NOT_FOUND, why)
        }
        Err(why) => problem(StatusCode::CONFLICT, why),
    }
}
