//! Who belongs to the federation, and who waits to.

use std::collections::BTreeMap;

use evenhand_protocol::identity::{Digest, NodeId};
use evenhand_protocol::message::{Life, Status};
use serde::{Deserialize, Serialize};

use super::standing::Standing;

/// One enrolled node. Nothing of it is ever dropped: it may leave and come back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Member {
    id: NodeId,
    pub(super) session: Session,
    pub(super) standing: Standing,
    /// The weights it is known to hold.
    pub(super) holds: Option<Digest>,
    /// Whether its contributions count in the current exploration: from the first round it was asked in.
    pub(super) measured: bool,
    /// The round in or after which the operator shut it out.
    pub(super) removed: Option<u32>,
    /// Whether it must be born, and welcome, before it is heard; found out anew at every start.
    #[serde(skip)]
    pub(super) barred: bool,
    pub(super) drawn: u32,
    pub(super) last_drawn: Option<u32>,
    pub(super) last_counted: Option<u32>,
}

impl Member {
    /// Its name.
    pub fn id(&self) -> &NodeId {
        &self.id
    }

    /// Whether it is there.
    pub fn is_alive(&self) -> bool {
        self.session.alive
    }

    /// Whether the operator shut it out.
    pub fn is_removed(&self) -> bool {
        self.removed.is_some()
    }

    /// ψᵢ and what stands behind it.
    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    /// How often it was drawn.
    pub fn drawn(&self) -> u32 {
        self.drawn
    }

    /// The round it was last drawn in.
    pub fn last_drawn(&self) -> Option<u32> {
        self.last_drawn
    }

    /// Rounds since it last received the model, seen from `round`.
    pub fn staleness(&self, round: u32) -> u32 {
        round.saturating_sub(self.last_drawn.unwrap_or(0))
    }

    /// Keeps it out until it is born again and welcome.
    pub(super) fn bar(&mut self) {
        self.barred = true;
        self.session.alive = false;
    }

    pub(super) fn is_present(&self) -> bool {
        self.session.alive && !self.is_removed()
    }
}

/// The newest session of a node that is known, and whether it lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Session {
    pub(super) number: u64,
    pub(super) alive: bool,
}

impl Session {
    /// Takes in a status unless it is the will of an older session: that can be overtaken by the next birth. A birth counts
    /// whatever its number, which comes from a clock that may have been set back: births do not overtake each other.
    pub(super) fn heed(&mut self, status: &Status) -> bool {
        let alive = matches!(status.life, Life::Born(_));
        let news = alive || status.session >= self.number;
        if news {
            *self = Self { number: status.session, alive };
        }
        news
    }
}

/// A node that was born and enters with the next round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Candidate {
    pub(super) session: Session,
    pub(super) holds: Option<Digest>,
}

/// All nodes: the enrolled ones in the order of their columns, and the lobby.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(from = "Listed", into = "Listed")]
pub(super) struct Roster {
    members: Vec<Member>,
    index: BTreeMap<NodeId, usize>,
    lobby: BTreeMap<NodeId, Candidate>,
}

/// A roster as it is saved: without what follows from the rest.
#[derive(Serialize, Deserialize)]
struct Listed {
    members: Vec<Member>,
    lobby: BTreeMap<NodeId, Candidate>,
}

impl From<Listed> for Roster {
    fn from(Listed { members, lobby }: Listed) -> Self {
        let index = members.iter().enumerate().map(|(i, member)| (member.id.clone(), i)).collect();
        Self { members, index, lobby }
    }
}

impl From<Roster> for Listed {
    fn from(roster: Roster) -> Self {
        Self { members: roster.members, lobby: roster.lobby }
    }
}

/// Where a node stands.
pub(super) enum Place<'a> {
    Member(usize),
    Lobby(&'a mut Candidate),
    Stranger,
}

impl Roster {
    pub(super) fn members(&self) -> &[Member] {
        &self.members
    }

    pub(super) fn member(&self, index: usize) -> &Member {
        &self.members[index]
    }

    pub(super) fn member_mut(&mut self, index: usize) -> &mut Member {
        &mut self.members[index]
    }

    pub(super) fn members_mut(&mut self) -> impl Iterator<Item = &mut Member> {
        self.members.iter_mut()
    }

    pub(super) fn find(&mut self, node: &NodeId) -> Place<'_> {
        match self.index.get(node) {
            Some(index) => Place::Member(*index),
            None => self.lobby.get_mut(node).map_or(Place::Stranger, Place::Lobby),
        }
    }

    pub(super) fn contains(&self, node: &NodeId) -> bool {
        self.index.contains_key(node) || self.lobby.contains_key(node)
    }

    /// Places that are taken. Whoever is away keeps its own: it may come back to its standing.
    pub(super) fn len(&self) -> usize {
        self.members.iter().filter(|member| !member.is_removed()).count() + self.lobby.len()
    }

    /// Nodes that could take part in the next round.
    pub(super) fn present(&self) -> usize {
        self.members.iter().filter(|member| member.is_present()).count() + self.lobby.len()
    }

    /// Their names.
    pub(super) fn names_present(&self) -> impl Iterator<Item = &NodeId> {
        let members = self.members.iter().filter(|member| member.is_present());
        members.map(Member::id).chain(self.lobby.keys())
    }

    pub(super) fn wait(&mut self, node: NodeId, candidate: Candidate) {
        self.lobby.insert(node, candidate);
    }

    pub(super) fn dismiss(&mut self, node: &NodeId) {
        self.lobby.remove(node);
    }

    /// Sends away those in the lobby that are not `wanted` any more.
    pub(super) fn dismiss_unless(&mut self, wanted: impl Fn(&NodeId) -> bool) {
        self.lobby.retain(|node, _| wanted(node));
    }

    /// Enrols the lobby, by name, so that the order of arrival changes nothing.
    pub(super) fn enrol_lobby(&mut self, standing: Standing) {
        for (id, candidate) in std::mem::take(&mut self.lobby) {
            self.index.insert(id.clone(), self.members.len());
            self.members.push(Member {
                id,
                session: candidate.session,
                standing,
                holds: candidate.holds,
                measured: false,
                removed: None,
                barred: false,
                drawn: 0,
                last_drawn: None,
                last_counted: None,
            });
        }
    }

    /// The mean standing of those who have one.
    pub(super) fn mean_standing(&self) -> f64 {
        let standings = self.members.iter().filter(|m| !m.is_removed()).map(|m| m.standing.value());
        let (sum, count) = standings.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
        if count == 0 { 0.0 } else { sum / f64::from(count) }
    }
}
