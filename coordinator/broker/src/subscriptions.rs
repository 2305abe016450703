//! Subscriptions, as a tree by levels of the filters.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rumqttc::QoS;

/// Filters by level, each with its subscribers and their quality of service.
#[derive(Debug, Default)]
pub(crate) struct SubscriptionTree {
    children: HashMap<String, SubscriptionTree>,
    /// Sessions whose filter ends at this level.
    subscribers: BTreeMap<Arc<str>, QoS>,
}

impl SubscriptionTree {
    pub(crate) fn insert(&mut self, filter: &str, session: &Arc<str>, qos: QoS) {
        let end =
            filter.split('/').fold(self, |branch, level| branch.children.entry(level.into()).or_default());
        end.subscribers.insert(Arc::clone(session), qos);
    }

    pub(crate) fn remove(&mut self, filter: &str, session: &str) {
        self.prune(&mut filter.split('/'), session);
    }

    /// Removes the session at the end of `levels`, and every branch that is left empty.
    fn prune(&mut self, levels: &mut std::str::Split<'_, char>, session: &str) {
        match levels.next() {
            None => {
                self.subscribers.remove(session);
            }
            Some(level) => {
                if let Some(child) = self.children.get_mut(level) {
                    child.prune(levels, session);
                    if child.children.is_empty() && child.subscribers.is_empty() {
                        self.children.remove(level);
                    }
                }
            }
        }
    }

    /// The sessions subscribed to `topic`, each once with the highest quality of service of its matching filters.
    pub(crate) fn matching(&self, topic: &str) -> BTreeMap<Arc<str>, QoS> {
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
        for (session, qos) in &self.subscribers {
            let best = found.entry(Arc::clone(session)).or_insert(*qos);
            if *qos > *best {
                *best = *qos;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topic_match::matches;
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

        /// The tree finds the same sessions as matching filter by filter.
        #[test]
        fn the_tree_agrees_with_plain_matching(
            filters in proptest::collection::vec(filter(), 1..8),
            removed in proptest::collection::vec(any::<bool>(), 8),
            topic in proptest::collection::vec(level(), 1..5).prop_map(|levels| levels.join("/")),
        ) {
            let mut tree = SubscriptionTree::default();
            let sessions: Vec<Arc<str>> = (0..filters.len()).map(|i| i.to_string().into()).collect();
            for (filter, session) in filters.iter().zip(&sessions) {
                tree.insert(filter, session, QoS::AtLeastOnce);
            }
            for ((filter, session), _) in filters.iter().zip(&sessions).zip(&removed).filter(|(_, gone)| **gone) {
                tree.remove(filter, session);
            }
            let expected: Vec<&Arc<str>> = filters
                .iter()
                .zip(&sessions)
                .zip(&removed)
                .filter(|((filter, _), gone)| !**gone && matches(&topic, filter))
                .map(|((_, session), _)| session)
                .collect();
            let found = tree.matching(&topic);
            prop_assert_eq!(found.keys().collect::<Vec<_>>(), expected);
            for (filter, session) in filters.iter().zip(&sessions) {
                tree.remove(filter, session);
            }
            prop_assert!(tree.children.is_empty(), "empty branches are removed");
        }
    }
}
