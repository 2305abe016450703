//! Which topic answers which: lost chunks of a task are asked for on `update`, those of an update on `task`.

use std::collections::BTreeMap;

use evenhand_protocol::message::{Answer, Message, Missing, Order};
use evenhand_protocol::topic::Channel;

/// The topic on which the other side of `topic` speaks.
pub(crate) fn opposite(topic: &str) -> Option<(String, Channel)> {
    let (node, channel) = topic.rsplit_once('/')?;
    let opposite = match channel {
        _ if channel == Channel::Task.as_str() => Channel::Update,
        _ if channel == Channel::Update.as_str() => Channel::Task,
        _ => return None,
    };
    Some((format!("{node}/{}", opposite.as_str()), opposite))
}

/// Where and how to ask for chunks that were lost on `topic`.
pub(crate) fn request(topic: &str, missing: Missing) -> Option<(String, Message)> {
    let (topic, channel) = opposite(topic)?;
    let message = match channel {
        Channel::Task => Message::Order(Order::Resend(missing)),
        _ => Message::Answer(Answer::Resend(missing)),
    };
    Some((topic, message))
}

/// How often a message may be sent again on its topic, all its chunks together: as often as a receiver asks in vain.
const REPETITIONS_MAX: u32 = 4;

/// Chunks that may still be sent again, by topic: a request of a few bytes must not fetch a model without end.
#[derive(Debug, Default)]
pub(crate) struct Allowance(BTreeMap<String, u32>);

impl Allowance {
    /// A message of so many chunks went out on `topic`.
    pub(crate) fn renew(&mut self, topic: &str, chunks: u16) {
        let fresh = REPETITIONS_MAX * u32::from(chunks);
        match self.0.get_mut(topic) {
            Some(left) => *left = fresh.max(*left),
            None if chunks > 1 => {
                self.0.insert(topic.to_owned(), fresh);
            }
            None => {}
        }
    }

    /// Whether one more chunk may be sent again on `topic`.
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
    fn a_message_is_repeated_four_times_and_no_more_until_the_next() {
        let mut allowance = Allowance::default();
        let mut fetched = |chunks: u16| {
            allowance.renew("t", chunks);
            assert!(!allowance.take("other"));
            std::iter::from_fn(|| allowance.take("t").then_some(())).count()
        };
        assert_eq!([fetched(1), fetched(3), fetched(1), fetched(2)], [0, 12, 4, 8]);
    }

    #[test]
    fn each_side_asks_where_the_other_listens() {
        let missing = Missing { transfer: TransferId([7; 16]), chunks: vec![3] };
        let (topic, message) = request("evenhand/v1/f/node/n/task", missing.clone()).unwrap();
        assert_eq!(topic, "evenhand/v1/f/node/n/update");
        assert_eq!(message, Message::Answer(Answer::Resend(missing.clone())));
        let (topic, message) = request("evenhand/v1/f/node/n/update", missing.clone()).unwrap();
        assert_eq!(topic, "evenhand/v1/f/node/n/task");
        assert_eq!(message, Message::Order(Order::Resend(missing.clone())));
        assert_eq!(request("evenhand/v1/f/manifest", missing), None);
    }
}
