//! Which topic answers which: lost chunks of a task are asked for on `update`, those of an update on `task`.

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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use evenhand_protocol::chunk::TransferId;

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
