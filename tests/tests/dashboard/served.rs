//! A dashboard of a synthetic view, and requests to it.

use std::future::ready;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenhand_coordinator::dashboard::{CommandResult, Dashboard, DashboardOptions, LiveView, OperatorToken};
use evenhand_coordinator::view::FederationView;
use evenhand_federation::{Command, CommandRejection};
use evenhand_tests::http::{self, request};
use serde_json::Value;

pub(crate) const TOKEN: &str = "correct horse battery staple";

pub(crate) fn options() -> DashboardOptions {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    let mut options = DashboardOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    options.token = Some(OperatorToken::read(&file).unwrap());
    options.pace = Duration::ZERO;
    options.refusal_delay = Duration::from_millis(50);
    options
}

/// A dashboard of a made-up federation without settled contributions and a node `nobody`, and the commands it took.
pub(crate) async fn served(
    view: FederationView,
    options: DashboardOptions,
) -> (Dashboard, Arc<Mutex<Vec<Command>>>) {
    let commands = Arc::new(Mutex::new(Vec::new()));
    let received = Arc::clone(&commands);
    let command_sink = move |command| -> CommandResult {
        let result = match &command {
            Command::Remove(node) if node.as_str() == "nobody" => {
                Err(CommandRejection::UnknownNode(node.clone()).into())
            }
            Command::Explore => Err(CommandRejection::Unsettled.into()),
            _ => {
                received.lock().unwrap().push(command);
                Ok(())
            }
        };
        Box::pin(ready(result))
    };
    (Dashboard::start(options, LiveView::new(view), Box::new(command_sink)).await.unwrap(), commands)
}

pub(crate) fn command(address: SocketAddr, name: &str, token: Option<&str>, body: &str) -> http::HttpAnswer {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let headers: Vec<(&str, &str)> = bearer.iter().map(|bearer| ("Authorization", bearer.as_str())).collect();
    request(address, "POST", &format!("/api/v1/commands/{name}"), &headers, body)
}

/// True if a number arrived; serde_json reads floats to the last bit but one.
pub(crate) fn is(shown: &Value, value: f64) -> bool {
    shown.as_f64().is_some_and(|shown| (shown - value).abs() <= 1e-15 * value.abs())
}
