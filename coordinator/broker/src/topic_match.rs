//! Syntax of topics and filters, and their matching.

/// The deepest topic that is accepted: subscriptions are searched level by level.
const LEVELS_MAX: usize = 32;

/// True if messages can be published on it.
pub(crate) fn is_topic(topic: &str) -> bool {
    rumqttc::valid_topic(topic) && !topic.is_empty() && is_text(topic)
}

/// True if it can be subscribed to.
pub(crate) fn is_filter(filter: &str) -> bool {
    rumqttc::valid_filter(filter) && is_text(filter)
}

fn is_text(text: &str) -> bool {
    !text.contains('\0') && text.split('/').count() <= LEVELS_MAX
}

/// True if `filter` matches `topic`.
pub(crate) fn matches(topic: &str, filter: &str) -> bool {
    // A wildcard in the first level does not match topics of the broker, such as $SYS.
    if topic.starts_with('$') && filter.starts_with(['+', '#']) {
        return false;
    }
    let mut levels = topic.split('/');
    for pattern in filter.split('/') {
        match (pattern, levels.next()) {
            ("#", _) => return true,
            ("+", Some(_)) => {}
            (pattern, Some(level)) if pattern == level => {}
            _ => return false,
        }
    }
    levels.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_standard_hold() {
        let cases = [
            ("sport/tennis/player1", "sport/tennis/player1/#", true),
            ("sport/tennis/player1/ranking", "sport/tennis/player1/#", true),
            ("sport", "sport/#", true),
            ("sport/tennis/player1", "sport/tennis/+", true),
            ("sport/tennis/player1/ranking", "sport/tennis/+", false),
            ("sport", "sport/+", false),
            ("sport/", "sport/+", true),
            ("/finance", "+/+", true),
            ("/finance", "/+", true),
            ("/finance", "+", false),
            ("$SYS/monitor", "#", false),
            ("$SYS/monitor", "+/monitor", false),
            ("$SYS/monitor", "$SYS/#", true),
        ];
        for (topic, filter, expected) in cases {
            assert_eq!(matches(topic, filter), expected, "{topic} {filter}");
        }
    }

    #[test]
    fn topics_and_filters_are_distinguished() {
        assert!(is_topic("a/b") && !is_topic("a/+") && !is_topic("") && !is_topic("a\0b"));
        assert!(is_filter("a/+/#") && !is_filter("a/#/b") && !is_filter("a/b+"));
        assert!(!is_topic(&"a/".repeat(40)));
    }
}
