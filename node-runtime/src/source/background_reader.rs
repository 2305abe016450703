//! Background reader: a thread for input that can only be read by a blocking call.
#![allow(dead_code, reason = "a program may be built without the sources that need it")]

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::Duration;

use super::{READ_TIMEOUT, SourceError};

/// Items that the thread has read, to be fetched with a timeout.
#[derive(Debug)]
pub(super) struct BackgroundReader<T> {
    items: Receiver<T>,
}

/// Result of a fetch.
#[derive(Debug, PartialEq)]
pub(super) enum Fetched<T> {
    Item(T),
    /// Nothing yet.
    Empty,
    /// The thread has ended.
    Ended,
}

impl<T: Send + 'static> BackgroundReader<T> {
    /// Runs `read` on a thread. It blocks when `queued_max` items were not fetched, and ends when it cannot send.
    pub(super) fn start(
        name: &str,
        queued_max: usize,
        read: impl FnOnce(SyncSender<T>) + Send + 'static,
    ) -> Result<Self, SourceError> {
        let (sender, items) = mpsc::sync_channel(queued_max);
        thread::Builder::new().name(name.into()).spawn(move || read(sender)).map_err(SourceError::Thread)?;
        Ok(Self { items })
    }

    /// The next item; with `wait`, up to the read timeout of a source.
    pub(super) fn next(&self, wait: bool) -> Fetched<T> {
        match self.items.recv_timeout(if wait { READ_TIMEOUT } else { Duration::ZERO }) {
            Ok(item) => Fetched::Item(item),
            Err(RecvTimeoutError::Timeout) => Fetched::Empty,
            Err(RecvTimeoutError::Disconnected) => Fetched::Ended,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn delivers_in_order_until_the_thread_ends() {
        let reader =
            BackgroundReader::start("reader", 1, |sender| (0..3).for_each(|item| sender.send(item).unwrap()))
                .unwrap();
        let seen: Vec<_> = std::iter::repeat_with(|| reader.next(true)).take(4).collect();
        assert_eq!(seen, [Fetched::Item(0), Fetched::Item(1), Fetched::Item(2), Fetched::Ended]);
    }
}
