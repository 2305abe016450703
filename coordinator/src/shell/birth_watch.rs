//! Watch over nodes that come online again and again: two programs with one name, or a connection that keeps breaking.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use evenhand_protocol::identity::NodeId;

/// The period in which births are counted.
const PERIOD: Duration = Duration::from_secs(60);
/// Births in a period that are told.
const BIRTHS_MIN: u32 = 5;
/// Time after which the same node is told again.
const TELL_AGAIN: Duration = Duration::from_secs(24 * 3600);
/// Names that are watched at a time: strangers may make up any number.
const NAMES_MAX: usize = 4096;

/// Recent births by name.
#[derive(Debug, Default)]
pub(super) struct BirthWatch(BTreeMap<NodeId, RecentBirths>);

#[derive(Debug)]
struct RecentBirths {
    begun: Instant,
    births: u32,
    told: Option<Instant>,
}

impl BirthWatch {
    /// Notes a birth; true if the operator is to be told.
    pub(super) fn born(&mut self, node: &NodeId, now: Instant) -> bool {
        if self.0.len() >= NAMES_MAX && !self.0.contains_key(node) {
            self.0.retain(|_, recent| now.saturating_duration_since(recent.begun) < PERIOD);
            if self.0.len() >= NAMES_MAX {
                return false;
            }
        }
        let recent = self.0.entry(node.clone()).or_insert(RecentBirths { begun: now, births: 0, told: None });
        if now.saturating_duration_since(recent.begun) >= PERIOD {
            (recent.begun, recent.births) = (now, 0);
        }
        recent.births += 1;
        let silent = recent.told.is_none_or(|told| now.saturating_duration_since(told) >= TELL_AGAIN);
        let tell = recent.births >= BIRTHS_MIN && silent;
        if tell {
            recent.told = Some(now);
        }
        tell
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn many_births_in_a_minute_are_told_once_a_day() {
        let (begin, mut watch) = (Instant::now(), BirthWatch::default());
        let (a, b) = (NodeId::new("a").unwrap(), NodeId::new("b").unwrap());
        let at = |seconds| begin + Duration::from_secs(seconds);
        let told: Vec<u64> = (0..120).filter(|second| watch.born(&a, at(*second))).collect();
        assert_eq!(told, [4]);
        let slow = (0..60).filter(|minute| watch.born(&b, at(minute * 15)));
        assert_eq!(slow.count(), 0, "four a minute: a node that is restarted by hand");
        let later = (0..10).filter(|second| watch.born(&a, at(90_000 + second))).count();
        assert_eq!(later, 1);
    }

    #[test]
    fn made_up_names_do_not_fill_the_memory() {
        let (begin, mut watch) = (Instant::now(), BirthWatch::default());
        for number in 0..10_000 {
            watch.born(&NodeId::new(&format!("n{number}")).unwrap(), begin);
        }
        assert_eq!(watch.0.len(), NAMES_MAX);
        assert!(!watch.born(&NodeId::new("late").unwrap(), begin + PERIOD), "there is room again");
        assert_eq!(watch.0.len(), 1);
    }
}
