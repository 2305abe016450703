//! Server-sent events: the overview of the federation, now and after every change.

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

/// The interval of comments that let both sides notice a lost connection.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// The time after which a browser reconnects.
const RETRY: Duration = Duration::from_secs(2);

pub(super) async fn events(State(app): State<App>) -> Response {
    let Ok(permit) = Arc::clone(app.permits()).try_acquire_owned() else {
        let full =
            problem(StatusCode::SERVICE_UNAVAILABLE, "too many subscribers; close another page, or poll");
        return ([(header::RETRY_AFTER, "30")], full).into_response();
    };
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        // Released when the subscriber is gone.
        let _permit = permit;
        send_events(&app, &sender).await;
    });
    Sse::new(ReceiverStream::new(receiver)).keep_alive(KeepAlive::new().interval(HEARTBEAT)).into_response()
}

/// A subscriber that cannot keep up receives the latest event only; the connection of one that does not read is closed.
async fn send_events(app: &App, subscriber: &mpsc::Sender<Result<Event, Infallible>>) {
    let mut changes = app.live_view().changes();
    let mut stop = app.stopped();
    loop {
        let ending = *stop.borrow();
        let version = *changes.borrow_and_update();
        let federation = app.live_view().read(|view| serde_json::to_string(view.overview()));
        let data = federation.expect("plain data with text keys always encodes");
        let event = Event::default().event("federation").id(version.to_string()).retry(RETRY).data(data);
        if subscriber.send(Ok(event)).await.is_err() || ending {
            return;
        }
        tokio::select! {
            () = async {
                time::sleep(app.pace()).await;
                // An error means that the live view is gone, which this task holds.
                let _held = changes.changed().await;
            } => {}
            // The last event is sent at once.
            _ = stop.wait_for(|stop| *stop) => {}
            () = subscriber.closed() => return,
        }
    }
}
