//! Server-sent events: the federation as it stands, again whenever it has changed.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use tokio::sync::mpsc;
use tokio::time;
use tokio_stream::wrappers::ReceiverStream;

use super::routes::{App, problem};

/// Shows both sides that the other is still there.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How soon a browser that lost us asks again.
const RETRY: Duration = Duration::from_secs(2);

pub(super) async fn events(State(app): State<App>) -> Response {
    let Ok(seat) = Arc::clone(app.seats()).try_acquire_owned() else {
        let full =
            problem(StatusCode::SERVICE_UNAVAILABLE, "too many listeners; close another page, or poll");
        return ([(header::RETRY_AFTER, "30")], full).into_response();
    };
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        // Held as long as somebody listens.
        let _seat = seat;
        tell(&app, &sender).await;
    });
    Sse::new(ReceiverStream::new(receiver)).keep_alive(KeepAlive::new().interval(HEARTBEAT)).into_response()
}

/// A listener that cannot keep up is told the latest only; one that does not read at all is dropped by its
/// connection.
async fn tell(app: &App, listener: &mpsc::Sender<Result<Event, Infallible>>) {
    let mut changes = app.board().changes();
    let mut stop = app.stopped();
    loop {
        let ending = *stop.borrow();
        let version = *changes.borrow_and_update();
        let federation = app.board().read(|view| serde_json::to_string(view.overview()));
        let data = federation.expect("plain data with text keys always encodes");
        let event = Event::default().event("federation").id(version.to_string()).retry(RETRY).data(data);
        if listener.send(Ok(event)).await.is_err() || ending {
            return;
        }
        tokio::select! {
            () = async {
                time::sleep(app.pace()).await;
                // An error means that the board is gone, which this task holds.
                let _held = changes.changed().await;
            } => {}
            // The last words are said at once.
            _ = stop.wait_for(|stop| *stop) => {}
            () = listener.closed() => return,
        }
    }
}
