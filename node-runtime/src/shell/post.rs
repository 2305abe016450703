//! What a node says to its coordinator: in order, and without making the node wait for the broker.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use evenhand_link::{LinkError, Outbox};
use evenhand_protocol::message::Message;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time;

/// Letters of one connection that wait for a slow broker; then the oldest, which is out of date, is dropped.
const WAITING: usize = 8;

/// One message and where it goes.
pub(super) struct Letter {
    pub(super) topic: String,
    pub(super) message: Message,
    pub(super) retain: bool,
}

/// Hands letters over to a task that waits for the broker instead.
pub(super) struct Post {
    bag: Arc<Bag>,
    carrier: JoinHandle<()>,
}

#[derive(Default)]
struct Bag {
    inside: Mutex<Inside>,
    changed: Notify,
}

#[derive(Default)]
struct Inside {
    letters: VecDeque<Letter>,
    closed: bool,
}

impl Bag {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next letter; none when the bag is closed and empty.
    async fn next(&self) -> Option<Letter> {
        loop {
            {
                let mut inside = self.inside();
                if let Some(letter) = inside.letters.pop_front() {
                    return Some(letter);
                }
                if inside.closed {
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }
}

impl Post {
    pub(super) fn open(outbox: Outbox) -> Self {
        let bag = Arc::new(Bag::default());
        let carrier = tokio::spawn(carry(Arc::clone(&bag), outbox));
        Self { bag, carrier }
    }

    /// A connection was made: the node says everything anew that still matters.
    pub(super) fn begin_anew(&self) {
        self.bag.inside().letters.clear();
    }

    /// Sends the letter behind those before it.
    pub(super) fn send(&self, letter: Letter) {
        tracing::debug!(topic = letter.topic, "publishing");
        let mut inside = self.bag.inside();
        if inside.letters.len() == WAITING {
            tracing::warn!("the broker is too slow; the oldest message that waits is dropped");
            inside.letters.pop_front();
        }
        inside.letters.push_back(letter);
        drop(inside);
        self.bag.changed.notify_one();
    }

    /// Waits until everything is handed over, but not for ever.
    pub(super) async fn close(&mut self, within: Duration) {
        self.bag.inside().closed = true;
        self.bag.changed.notify_one();
        if time::timeout(within, &mut self.carrier).await.is_err() {
            self.carrier.abort();
        }
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        self.carrier.abort();
    }
}

async fn carry(bag: Arc<Bag>, outbox: Outbox) {
    while let Some(Letter { topic, message, retain }) = bag.next().await {
        match outbox.publish(&topic, &message, retain).await {
            Ok(()) => {}
            Err(LinkError::Closed) => return,
            Err(error) => tracing::warn!(%error, topic, "cannot publish"),
        }
    }
}
