//! The enrolled nodes, in the order of their indices, and the pending ones.

use std::collections::BTreeMap;

use evenhand_protocol::identity::NodeId;
use serde::{Deserialize, Serialize};

use crate::config::Rules;
use crate::index::NodeIndex;
use crate::member::{Member, Pending};
use crate::standing::Standing;

/// All nodes that the federation knows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(from = "SavedRoster", into = "SavedRoster")]
pub(crate) struct Roster {
    members: Vec<Member>,
    indices: BTreeMap<NodeId, NodeIndex>,
    pending: BTreeMap<NodeId, Pending>,
}

/// A roster as it is saved: without what follows from the rest.
#[derive(Serialize, Deserialize)]
struct SavedRoster {
    members: Vec<Member>,
    pending: BTreeMap<NodeId, Pending>,
}

impl From<SavedRoster> for Roster {
    fn from(SavedRoster { members, pending }: SavedRoster) -> Self {
        let indices =
            members.iter().enumerate().map(|(i, member)| (member.id.clone(), NodeIndex(i))).collect();
        Self { members, indices, pending }
    }
}

impl From<Roster> for SavedRoster {
    fn from(roster: Roster) -> Self {
        Self { members: roster.members, pending: roster.pending }
    }
}

/// A name's entry in the roster.
pub(crate) enum RosterEntry<'a> {
    Member(NodeIndex),
    Pending(&'a mut Pending),
    Unknown,
}

impl Roster {
    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    pub(crate) fn member(&self, node: NodeIndex) -> &Member {
        &self.members[node.get()]
    }

    pub(crate) fn member_mut(&mut self, node: NodeIndex) -> &mut Member {
        &mut self.members[node.get()]
    }

    pub(crate) fn members_mut(&mut self) -> impl Iterator<Item = &mut Member> {
        self.members.iter_mut()
    }

    /// Every member with its index.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (NodeIndex, &Member)> + Clone {
        self.members.iter().enumerate().map(|(i, member)| (NodeIndex(i), member))
    }

    /// Indices of the members that satisfy `condition`.
    pub(crate) fn indices_where(
        &self,
        condition: impl Fn(&Member) -> bool,
    ) -> impl Iterator<Item = NodeIndex> {
        self.iter().filter(move |(_, member)| condition(member)).map(|(node, _)| node)
    }

    /// Indices of those that were not removed.
    pub(crate) fn enrolled(&self) -> impl Iterator<Item = NodeIndex> {
        self.indices_where(|member| !member.is_removed())
    }

    pub(crate) fn find(&mut self, node: &NodeId) -> RosterEntry<'_> {
        match self.indices.get(node) {
            Some(index) => RosterEntry::Member(*index),
            None => self.pending.get_mut(node).map_or(RosterEntry::Unknown, RosterEntry::Pending),
        }
    }

    pub(crate) fn contains(&self, node: &NodeId) -> bool {
        self.indices.contains_key(node) || self.pending.contains_key(node)
    }

    /// Places that are taken. A node that is offline keeps its own: it may come back to its standing.
    pub(crate) fn len(&self) -> usize {
        self.enrolled().count() + self.pending.len()
    }

    /// Number of nodes that could take part in the next round.
    pub(crate) fn present(&self) -> usize {
        self.members.iter().filter(|member| member.is_present()).count() + self.pending.len()
    }

    /// Names of the nodes that could take part in the next round.
    pub(crate) fn names_present(&self) -> impl Iterator<Item = &NodeId> {
        let members = self.members.iter().filter(|member| member.is_present());
        members.map(Member::id).chain(self.pending.keys())
    }

    pub(crate) fn add_pending(&mut self, node: NodeId, pending: Pending) {
        self.pending.insert(node, pending);
    }

    pub(crate) fn drop_pending(&mut self, node: &NodeId) {
        self.pending.remove(node);
    }

    pub(crate) fn retain_pending(&mut self, condition: impl Fn(&NodeId) -> bool) {
        self.pending.retain(|node, _| condition(node));
    }

    /// Enrols the pending nodes, by name, so that the order of arrival changes nothing.
    pub(crate) fn enrol_pending(&mut self, standing: Standing) {
        for (id, pending) in std::mem::take(&mut self.pending) {
            self.enrol(id, pending, standing);
        }
    }

    /// Enrols one node.
    pub(crate) fn enrol(&mut self, id: NodeId, pending: Pending, standing: Standing) {
        self.indices.insert(id.clone(), NodeIndex(self.members.len()));
        self.members.push(Member::enrolled(id, pending, standing));
    }

    /// β: as set, or as found for the wanted worst staleness of the standings so far.
    pub(crate) fn temperature(&self, rules: &Rules) -> f64 {
        let enrolled = self.members.iter().filter(|member| !member.is_removed());
        let standings: Vec<f64> = enrolled.map(|member| member.standing.value()).collect();
        rules.exploiting.temperature_for(&standings)
    }

    /// The mean standing of the enrolled nodes that are no newcomers yet to be measured; 0 without any.
    pub(crate) fn mean_standing(&self) -> f64 {
        let known =
            |m: &&Member| !m.is_removed() && (m.standing.entry_rounds() == 0 || m.standing.rounds() > 0);
        let standings = self.members.iter().filter(known).map(|m| m.standing.value());
        let (sum, count) = standings.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
        if count == 0 { 0.0 } else { sum / f64::from(count) }
    }
}
