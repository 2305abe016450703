//! Requests for lost chunks: those of a task are requested on `update`, those of an update on `task`.

use std::collections::BTreeMap;

use evenhand_protocol::message::{Answer, Message, MissingChunks, Order};
use evenhand_protocol::topic::Channel;

/// The topic on which the receiver of `topic` publishes.
pub(crate) fn reply_topic(topic: &str) -> Option<(String, Channel)> {
    let (node, channel) = topic.rsplit_once('/')?;
    let reply = match channel {
        _ if channel == Channel::Task.as_str() => Channel::Update,
        _ if channel == Channel::Update.as_str() => Channel::Task,
        _ => return None,
    };
    Some((format!("{node}/{}", reply.as_str()), reply))
}

/// The topic and the message that request chunks lost on `topic`.
pub(crate) fn request(topic: &str, missing: MissingChunks) -> Option<(String, Message)> {
    let (topic, channel) = reply_topic(topic)?;
    let message = match channel {
        Channel::Task => Message::Order(Order::Resend(missing)),
        _ => Message::Answer(Answer::Resend(missing)),
    };
    Some((topic, message))
}

/// Repetitions of one message on its topic, all its chunks together: as many as a receiver requests in vain.
const RESENDS_PER_MESSAGE_MAX: u32 = 4;

/// Chunks that may still be sent again, by topic: a request of a few bytes must not fetch a model without end.
#[derive(Debug, Default)]
pub(crate) struct ResendBudget(BTreeMap<String, u32>);

impl ResendBudget {
    /// Refills the budget of `topic` after a message of so many chunks.
    pub(crate) fn refill(&mut self, topic: &str, chunks: u16) {
        let full = RESENDS_PER_MESSAGE_MAX * u32::from(chunks);
        match self.0.get_mut(topic) {
            Some(left) => *left = full.max(*left),
            None if chunks > 1 => {
                self.0.insert(topic.to_owned(), full);
            }
            None => {}
        }
    }

    /// Takes one chunk from the budget of `topic`; false if nothing is left.
    pub(crate) fn take(&mut self, topic: &str) -> bool {
        let left = self.0.get_mut(topic).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use evenhand_protocol::chunk::TransferId;

    #[test]
    fn a_message_is_repeated_at_most_four_times_until_the_next() {
        let mut budget = ResendBudget::default();
        let mut fetched = |chunks: u16| {
            budget.refill("t", chunks);
            assert!(!budget.take("other"));
            std::iter::from_fn(|| budget.take("t").then_some(())).count()
        };
        assert_eq!([fetched(1), fetched(3), fetched(1), fetched(2)], [0, 12, 4, 8]);
    }

    #[test]
    fn requests_go_to_the_topic_that_the_sender_subscribes_to() {
        let missing = MissingChunks { transfer: TransferId([7; 16]), chunks: vec![3] };
        let (topic, message) = request("evenhand/v1/f/node/n/task", missing.clone()).unwrap();
        assert_eq!(topic, "evenhand/v1/f/node/n/update");
        assert_eq!(message, Message::Answer(Answer::Resend(missing.clone())));
        let (topic, message) = request("evenhand/v1/f/node/n/update", missing.clone()).unwrap();
        assert_eq!(topic, "evenhand/v1/f/node/n/task");
        assert_eq!(message, Message::Order(Order::Resend(missing.clone())));
        assert_eq!(request("evenhand/v1/f/manifest", missing), None);
    }
}
