//! Topic filters, as a tree by levels.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rumqttc::QoS;

/// The deepest topic that is accepted: the tree is walked level by level.
const LEVELS_MAX: usize = 32;

/// Whether a message may be published there.
pub(super) fn is_topic(topic: &str) -> bool {
    rumqttc::valid_topic(topic) && !topic.is_empty() && is_text(topic)
}

/// Whether it may be subscribed to.
pub(super) fn is_filter(filter: &str) -> bool {
    rumqttc::valid_filter(filter) && is_text(filter)
}

fn is_text(text: &str) -> bool {
    !text.contains('\0') && text.split('/').count() <= LEVELS_MAX
}

/// Whether what is published on `topic` is wanted by `filter`.
pub(super) fn matches(topic: &str, filter: &str) -> bool {
    // A wildcard in the first level does not mean the broker's own topics.
    if topic.starts_with('$') && filter.starts_with(['+', '#']) {
        return false;
    }
    let mut levels = topic.split('/');
    for wanted in filter.split('/') {
        match (wanted, levels.next()) {
            ("#", _) => return true,
            ("+", Some(_)) => {}
            (wanted, Some(level)) if wanted == level => {}
            _ => return false,
        }
    }
    levels.next().is_none()
}

/// Who wants what, and how reliably.
#[derive(Debug, Default)]
pub(super) struct Tree {
    children: HashMap<String, Tree>,
    /// Whose filter ends here.
    here: BTreeMap<Arc<str>, QoS>,
}

impl Tree {
    pub(super) fn insert(&mut self, filter: &str, client: &Arc<str>, qos: QoS) {
        let end =
            filter.split('/').fold(self, |branch, level| branch.children.entry(level.into()).or_default());
        end.here.insert(Arc::clone(client), qos);
    }

    pub(super) fn remove(&mut self, filter: &str, client: &str) {
        self.prune(&mut filter.split('/'), client);
    }

    /// Removes the client at the end of `levels`, and every branch that is left without purpose.
    fn prune(&mut self, levels: &mut std::str::Split<'_, char>, client: &str) {
        match levels.next() {
            None => {
                self.here.remove(client);
            }
            Some(level) => {
                if let Some(child) = self.children.get_mut(level) {
                    child.prune(levels, client);
                    if child.children.is_empty() && child.here.is_empty() {
                        self.children.remove(level);
                    }
                }
            }
        }
    }

    /// Everybody who wants what is published on `topic`: once each, as reliably as any of its filters says.
    pub(super) fn matching(&self, topic: &str) -> BTreeMap<Arc<str>, QoS> {
        let levels: Vec<&str> = topic.split('/').collect();
        let mut found = BTreeMap::new();
        self.collect(&levels, !topic.starts_with('$'), &mut found);
        found
    }

    fn collect(&self, levels: &[&str], wildcards: bool, found: &mut BTreeMap<Arc<str>, QoS>) {
        if wildcards && let Some(rest) = self.children.get("#") {
            rest.add(found);
        }
        let Some((level, below)) = levels.split_first() else { return self.add(found) };
        if let Some(child) = self.children.get(*level) {
            child.collect(below, true, found);
        }
        if wildcards && let Some(any) = self.children.get("+") {
            any.collect(below, true, found);
        }
    }

    fn add(&self, found: &mut BTreeMap<Arc<str>, QoS>) {
        for (client, qos) in &self.here {
            let best = found.entry(Arc::clone(client)).or_insert(*qos);
            if *qos > *best {
                *best = *qos;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn level() -> impl Strategy<Value = String> {
        prop_oneof![Just("a".to_owned()), Just("b".to_owned()), Just(String::new()), Just("$x".to_owned())]
    }

    fn filter() -> impl Strategy<Value = String> {
        let level = prop_oneof![4 => level(), 2 => Just("+".to_owned())];
        (proptest::collection::vec(level, 1..4), any::<bool>())
            .prop_map(|(mut levels, rest)| {
                if rest {
                    levels.push("#".to_owned());
                }
                levels.join("/")
            })
            .prop_filter("not empty", |filter| !filter.is_empty())
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 2000,
            rng_seed: proptest::test_runner::RngSeed::Fixed(1),
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        /// The tree finds what one comparison after the other finds.
        #[test]
        fn the_tree_agrees_with_plain_matching(
            filters in proptest::collection::vec(filter(), 1..8),
            removed in proptest::collection::vec(any::<bool>(), 8),
            topic in proptest::collection::vec(level(), 1..5).prop_map(|levels| levels.join("/")),
        ) {
            let mut tree = Tree::default();
            let clients: Vec<Arc<str>> = (0..filters.len()).map(|i| i.to_string().into()).collect();
            for (filter, client) in filters.iter().zip(&clients) {
                tree.insert(filter, client, QoS::AtLeastOnce);
            }
            for ((filter, client), _) in filters.iter().zip(&clients).zip(&removed).filter(|(_, gone)| **gone) {
                tree.remove(filter, client);
            }
            let expected: Vec<&Arc<str>> = filters
                .iter()
                .zip(&clients)
                .zip(&removed)
                .filter(|((filter, _), gone)| !**gone && matches(&topic, filter))
                .map(|((_, client), _)| client)
                .collect();
            let found = tree.matching(&topic);
            prop_assert_eq!(found.keys().collect::<Vec<_>>(), expected);
            for (filter, client) in filters.iter().zip(&clients) {
                tree.remove(filter, client);
            }
            prop_assert!(tree.children.is_empty(), "nothing is left behind");
        }
    }

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
        for (topic, filter, wanted) in cases {
            assert_eq!(matches(topic, filter), wanted, "{topic} {filter}");
        }
    }

    #[test]
    fn topics_and_filters_are_told_apart() {
        assert!(is_topic("a/b") && !is_topic("a/+") && !is_topic("") && !is_topic("a\0b"));
        assert!(is_filter("a/+/#") && !is_filter("a/#/b") && !is_filter("a/b+"));
        assert!(!is_topic(&"a/".repeat(40)));
    }
}
