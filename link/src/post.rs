//! Letters that wait for the broker, so that nobody who writes one has to.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time;

use crate::shared::locked;
use crate::{LinkError, Outbox, Outgoing};

/// What waits: in which order, and what is given up when more comes than can be sent.
pub trait Queue: Send + 'static {
    /// Takes out what is to be sent next.
    fn next(&mut self) -> Option<Outgoing>;
}

/// Hands letters to a task that waits for the broker instead.
#[derive(Debug)]
pub struct Post<Q> {
    bag: Arc<Bag<Q>>,
    carrier: JoinHandle<()>,
}

impl<Q: Queue> Post<Q> {
    /// Begins to send what is in the queue, on the current tokio runtime.
    pub fn open(outbox: Outbox, queue: Q) -> Self {
        let bag =
            Arc::new(Bag { inside: Mutex::new(Inside { queue, closed: false }), changed: Notify::new() });
        let carrier = tokio::spawn(carry(Arc::clone(&bag), outbox));
        Self { bag, carrier }
    }

    /// Changes what waits.
    pub fn sort(&self, change: impl FnOnce(&mut Q)) {
        change(&mut locked(&self.bag.inside).queue);
        self.bag.changed.notify_one();
    }

    /// Waits until everything is handed over, but not for ever.
    pub async fn close(&mut self, patience: Duration) {
        locked(&self.bag.inside).closed = true;
        self.bag.changed.notify_one();
        if time::timeout(patience, &mut self.carrier).await.is_err() {
            self.carrier.abort();
        }
    }
}

impl<Q> Drop for Post<Q> {
    fn drop(&mut self) {
        self.carrier.abort();
    }
}

#[derive(Debug)]
struct Bag<Q> {
    inside: Mutex<Inside<Q>>,
    changed: Notify,
}

#[derive(Debug)]
struct Inside<Q> {
    queue: Q,
    closed: bool,
}

impl<Q: Queue> Bag<Q> {
    /// The next letter; none when the bag is closed and empty.
    async fn next(&self) -> Option<Outgoing> {
        loop {
            {
                let mut inside = locked(&self.inside);
                let next = inside.queue.next();
                if next.is_some() || inside.closed {
                    return next;
                }
            }
            self.changed.notified().await;
        }
    }
}

async fn carry<Q: Queue>(bag: Arc<Bag<Q>>, outbox: Outbox) {
    while let Some(Outgoing { topic, message, retain }) = bag.next().await {
        tracing::debug!(topic, "publishing");
        match outbox.publish(&topic, &message, retain).await {
            Ok(()) => {}
            Err(LinkError::Closed) => return,
            Err(error) => tracing::error!(topic, %error, "cannot be sent"),
        }
    }
}
