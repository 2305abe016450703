//! Publishing in the background, for callers that cannot wait for the broker.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time;

use crate::state::locked;
use crate::{LinkError, OutboundMessage, Publisher};

/// Messages that wait to be published: their order, and what is dropped when there are more than can be sent.
pub trait MessageQueue: Send + 'static {
    /// Removes and returns the message to be published next.
    fn next(&mut self) -> Option<OutboundMessage>;
}

/// A task that publishes the messages of a queue, one after the other.
#[derive(Debug)]
pub struct BackgroundPublisher<Q> {
    queue: Arc<SharedQueue<Q>>,
    task: JoinHandle<()>,
}

impl<Q: MessageQueue> BackgroundPublisher<Q> {
    /// Starts publishing from `queue`, on the current tokio runtime.
    pub fn start(publisher: Publisher, queue: Q) -> Self {
        let queue = Arc::new(SharedQueue {
            content: Mutex::new(QueueContent { queue, closed: false }),
            changed: Notify::new(),
        });
        let task = tokio::spawn(publish_all(Arc::clone(&queue), publisher));
        Self { queue, task }
    }

    /// Changes the queue, and wakes the task.
    pub fn update(&self, change: impl FnOnce(&mut Q)) {
        change(&mut locked(&self.queue.content).queue);
        self.queue.changed.notify_one();
    }

    /// Waits until the queue is empty, at most for `timeout`.
    pub async fn close(&mut self, timeout: Duration) {
        locked(&self.queue.content).closed = true;
        self.queue.changed.notify_one();
        if time::timeout(timeout, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}

impl<Q> Drop for BackgroundPublisher<Q> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Debug)]
struct SharedQueue<Q> {
    content: Mutex<QueueContent<Q>>,
    changed: Notify,
}

#[derive(Debug)]
struct QueueContent<Q> {
    queue: Q,
    closed: bool,
}

impl<Q: MessageQueue> SharedQueue<Q> {
    /// The next message; none once the queue is closed and empty.
    async fn next(&self) -> Option<OutboundMessage> {
        loop {
            {
                let mut content = locked(&self.content);
                let next = content.queue.next();
                if next.is_some() || content.closed {
                    return next;
                }
            }
            self.changed.notified().await;
        }
    }
}

async fn publish_all<Q: MessageQueue>(queue: Arc<SharedQueue<Q>>, publisher: Publisher) {
    while let Some(OutboundMessage { topic, message, retain }) = queue.next().await {
        tracing::debug!(topic, "publishing");
        match publisher.publish(&topic, &message, retain).await {
            Ok(()) => {}
            Err(LinkError::Closed) => return,
            Err(error) => tracing::error!(topic, %error, "cannot publish message"),
        }
    }
}
