//! The nodes of one round, and the only place where the latest model is handed out.
//!
//! The latest model is the reward. A [`TrainingTask`] is the only thing that carries it out of the core, and
//! only [`Draw::task`] makes one, for a node of that very draw.

mod task;

use evenhand_fairness::Sampler;
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::Why;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::config::TrainingConfig;
use crate::index::{DrawSlot, NodeIndex};
use crate::measuring::MeasureDraw;
use crate::member::Member;
use crate::roster::Roster;
use crate::weights::Weights;

pub use self::task::TrainingTask;

/// The nodes asked in one round, by index.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Draw {
    round: u32,
    asked: Vec<AskedNode>,
    /// Members that were offline or removed.
    absent: Vec<NodeIndex>,
    /// Nodes asked for a reference gradient, under the policy that measures in every round.
    measure: Option<MeasureDraw>,
}

/// One node of a draw.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct AskedNode {
    pub(crate) node: NodeIndex,
    pub(crate) why: Why,
}

impl Draw {
    /// Every present node: the draw of exploring rounds, and of strategies in which everybody takes part.
    pub(crate) fn everyone(round: u32, why: Why, roster: &mut Roster) -> Self {
        let asked = roster.indices_where(Member::is_present).map(|node| AskedNode { node, why }).collect();
        Self::recorded(round, asked, roster)
    }

    /// k present nodes by their probabilities, and every newcomer that is being measured.
    pub(crate) fn by_standing(
        round: u32,
        roster: &mut Roster,
        probabilities: &[f64],
        k: usize,
        sampler: &mut Sampler,
        rng: &mut ChaCha8Rng,
    ) -> Self {
        let settled = |member: &Member| member.is_present() && !member.standing.is_entering();
        let newcomer = |member: &Member| member.is_present() && member.standing.is_entering();
        let present: Vec<usize> = roster.indices_where(settled).map(NodeIndex::get).collect();
        let drawn = sampler.draw_among(probabilities, &present, k, rng).into_iter().map(NodeIndex);
        let mut asked: Vec<AskedNode> = drawn.map(|node| AskedNode { node, why: Why::Drawn }).collect();
        asked.extend(roster.indices_where(newcomer).map(|node| AskedNode { node, why: Why::Newcomer }));
        asked.sort_unstable_by_key(|asked| asked.node);
        Self::recorded(round, asked, roster)
    }

    /// k present nodes by their probabilities, which are 0 where a node is new; and everybody present for a reference gradient.
    pub(crate) fn measured(
        round: u32,
        roster: &mut Roster,
        probabilities: &[f64],
        k: usize,
        sampler: &mut Sampler,
        seed: u64,
        rng: &mut ChaCha8Rng,
    ) -> Self {
        let nodes: Vec<NodeIndex> = roster.indices_where(Member::is_present).collect();
        let can_be_drawn = nodes.iter().filter(|node| probabilities[node.get()] > 0.0);
        let can_be_drawn: Vec<usize> = can_be_drawn.map(|node| node.get()).collect();
        let drawn = sampler.draw_among(probabilities, &can_be_drawn, k, rng).into_iter().map(NodeIndex);
        let asked = drawn.map(|node| AskedNode { node, why: Why::Drawn }).collect();
        Self { measure: Some(MeasureDraw { seed, nodes }), ..Self::recorded(round, asked, roster) }
    }

    fn recorded(round: u32, asked: Vec<AskedNode>, roster: &mut Roster) -> Self {
        for asked in &asked {
            let member = roster.member_mut(asked.node);
            member.drawn += 1;
            member.last_drawn = Some(round);
        }
        let absent = roster.indices_where(|member| !member.is_present()).collect();
        Self { round, asked, absent, measure: None }
    }

    pub(crate) fn round(&self) -> u32 {
        self.round
    }

    pub(crate) fn asked(&self) -> &[AskedNode] {
        &self.asked
    }

    /// Nodes asked for a reference gradient.
    pub(crate) fn measure(&self) -> Option<&MeasureDraw> {
        self.measure.as_ref()
    }

    /// The place of a node among those asked for a reference gradient.
    pub(crate) fn measure_place(&self, node: NodeIndex) -> Option<usize> {
        self.measure.as_ref()?.nodes.binary_search(&node).ok()
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = DrawSlot> + use<> {
        (0..self.asked.len()).map(DrawSlot)
    }

    /// The node in a slot.
    pub(crate) fn node(&self, slot: DrawSlot) -> NodeIndex {
        self.asked[slot.0].node
    }

    /// The slot of a node, if it is in this draw.
    pub(crate) fn slot(&self, node: NodeIndex) -> Option<DrawSlot> {
        self.asked.binary_search_by_key(&node, |asked| asked.node).ok().map(DrawSlot)
    }

    /// The reason why a node was asked, or not.
    pub(crate) fn why(&self, node: NodeIndex) -> Why {
        match self.slot(node) {
            Some(slot) => self.asked[slot.0].why,
            None if self.absent.binary_search(&node).is_ok() => Why::Absent,
            None => Why::NotDrawn,
        }
    }

    /// True if a saved draw can have been made among so many members.
    pub(crate) fn is_sound(&self, members: usize) -> bool {
        let ascending =
            self.asked.windows(2).all(|pair| pair[0].node < pair[1].node) && self.absent.is_sorted();
        let measured = self.measure.as_ref().is_none_or(|measure| {
            measure.nodes.is_sorted_by(|a, b| a < b)
                && measure.nodes.last().is_none_or(|last| last.get() < members)
        });
        ascending && measured && self.asked.last().is_none_or(|last| last.node.get() < members)
    }

    /// The task of the node in a slot: with its model, unless it `holds` that already.
    pub(crate) fn task(
        &self,
        slot: DrawSlot,
        holds: Option<Digest>,
        model: &Weights,
        training: &TrainingConfig,
        deadline_ms: u32,
    ) -> Option<TrainingTask> {
        self.asked.get(slot.0)?;
        Some(TrainingTask::new(self.round, holds, model, training, deadline_ms))
    }
}
