//! Watch over the coordinator's answer to this node: whether its own topics carry messages at all.

use std::time::{Duration, Instant};

/// Time in which a coordinator answers a birth, however busy it is.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// Waits for a message on the node's own topics after a connection was made.
#[derive(Debug, Default)]
pub(super) struct AnswerWatch {
    due: Option<Instant>,
    manifest: bool,
}

/// What was heard from the federation before the time for an answer was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unanswered {
    /// Its manifest, which the broker may have retained.
    ManifestOnly,
    /// Nothing.
    Silence,
}

impl AnswerWatch {
    /// A connection was made: from now on an answer is awaited.
    pub(super) fn connected(&mut self, now: Instant) {
        *self = Self { due: Some(now + ANSWER_MAX), manifest: false };
    }

    /// The connection is lost: nothing is awaited.
    pub(super) fn disconnected(&mut self) {
        self.due = None;
    }

    /// The federation's manifest came, on the topic of all nodes or on the node's own.
    pub(super) fn manifest(&mut self, own_topic: bool) {
        self.manifest = true;
        if own_topic {
            self.due = None;
        }
    }

    /// An order or account for this node came.
    pub(super) fn answered(&mut self) {
        self.due = None;
    }

    /// The time at which to ask for [`overdue`](Self::overdue).
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// What was heard instead of an answer, once for each connection.
    pub(super) fn overdue(&mut self, now: Instant) -> Option<Unanswered> {
        self.due.take_if(|due| *due <= now)?;
        Some(if self.manifest { Unanswered::ManifestOnly } else { Unanswered::Silence })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_without_an_answer_is_noticed_once() {
        let (begin, mut watch) = (Instant::now(), AnswerWatch::default());
        assert_eq!(watch.overdue(begin), None);
        watch.connected(begin);
        assert_eq!(watch.overdue(begin + ANSWER_MAX / 2), None);
        watch.manifest(false);
        assert_eq!(watch.overdue(begin + ANSWER_MAX), Some(Unanswered::ManifestOnly));
        assert_eq!(watch.overdue(begin + 2 * ANSWER_MAX), None);
        watch.connected(begin);
        assert_eq!(watch.overdue(begin + ANSWER_MAX), Some(Unanswered::Silence));
    }

    #[test]
    fn an_answer_or_a_lost_connection_ends_the_wait() {
        let (begin, mut watch) = (Instant::now(), AnswerWatch::default());
        for end in [AnswerWatch::answered, AnswerWatch::disconnected, |watch: &mut _| {
            AnswerWatch::manifest(watch, true)
        }] {
            watch.connected(begin);
            end(&mut watch);
            assert_eq!((watch.due(), watch.overdue(begin + ANSWER_MAX)), (None, None));
        }
    }
}
