//! A dashboard to ask, and how it is asked.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenhand_coordinator::dashboard::{Board, Dashboard, DashboardOptions, Token};
use evenhand_coordinator::federation::Command;
use evenhand_coordinator::view::View;
use evenhand_tests::http::{self, request};
use serde_json::Value;

pub(crate) const TOKEN: &str = "correct horse battery staple";

pub(crate) fn options() -> DashboardOptions {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    let mut options = DashboardOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    options.token = Some(Token::read(&file).unwrap());
    options.pace = Duration::ZERO;
    options
}

/// A dashboard of a made-up federation, and the commands it was given.
pub(crate) async fn served(view: View, options: DashboardOptions) -> (Dashboard, Arc<Mutex<Vec<Command>>>) {
    let commands = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&commands);
    let commander = Box::new(move |command| heard.lock().unwrap().push(command));
    (Dashboard::start(options, Board::new(view), commander).await.unwrap(), commands)
}

pub(crate) fn command(address: SocketAddr, name: &str, token: Option<&str>, body: &str) -> http::Answer {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let headers: Vec<(&str, &str)> = bearer.iter().map(|bearer| ("Authorization", bearer.as_str())).collect();
    request(address, "POST", &format!("/api/v1/commands/{name}"), &headers, body)
}

/// Whether a number arrived; serde_json reads floats to the last bit but one.
pub(crate) fn is(shown: &Value, value: f64) -> bool {
    shown.as_f64().is_some_and(|shown| (shown - value).abs() <= 1e-15 * value.abs())
}
