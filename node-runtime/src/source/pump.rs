//! A thread that waits for something which cannot be asked whether it has something to say.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::Duration;

use super::{PATIENCE, SourceError};

/// What the thread heard, to be fetched without waiting for long.
#[derive(Debug)]
pub(super) struct Pump<T> {
    items: Receiver<T>,
}

/// What a pump has at the moment.
#[derive(Debug, PartialEq)]
pub(super) enum Pumped<T> {
    Item(T),
    /// Nothing yet.
    Nothing,
    /// The thread has ended.
    Over,
}

impl<T: Send + 'static> Pump<T> {
    /// Runs `hear` on a thread. It is held back when `waiting` items were not fetched, and ends when it cannot send.
    pub(super) fn start(
        name: &str,
        waiting: usize,
        hear: impl FnOnce(SyncSender<T>) + Send + 'static,
    ) -> Result<Self, SourceError> {
        let (sender, items) = mpsc::sync_channel(waiting);
        thread::Builder::new().name(name.into()).spawn(move || hear(sender)).map_err(SourceError::Thread)?;
        Ok(Self { items })
    }

    /// The next item; `wait` for it as long as a source may.
    pub(super) fn next(&self, wait: bool) -> Pumped<T> {
        match self.items.recv_timeout(if wait { PATIENCE } else { Duration::ZERO }) {
            Ok(item) => Pumped::Item(item),
            Err(RecvTimeoutError::Timeout) => Pumped::Nothing,
            Err(RecvTimeoutError::Disconnected) => Pumped::Over,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn hands_over_in_order_until_the_thread_ends() {
        let pump =
            Pump::start("pump", 1, |sender| (0..3).for_each(|item| sender.send(item).unwrap())).unwrap();
        let seen: Vec<_> = std::iter::repeat_with(|| pump.next(true)).take(4).collect();
        assert_eq!(seen, [Pumped::Item(0), Pumped::Item(1), Pumped::Item(2), Pumped::Over]);
    }
}
