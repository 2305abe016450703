//! Who takes part in a round, and the only place where the latest model is handed out.
//!
//! The latest model is the reward. A [`TrainingTask`] is the only thing that carries it out of the core, and
//! only [`Draw::task`] can make one, for a member of that very draw.

use std::sync::Arc;

use evenhand_protocol::codec::CodecKind;
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::{LossKind, Train, UpdateKind, Why};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::member::{Member, Roster};
use super::rules::Rules;
use super::weights::Weights;
use evenhand_fairness::Sampler;

/// The members asked in one round, by column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Draw {
    round: u32,
    asked: Vec<Asked>,
    /// Members that were away.
    absent: Vec<usize>,
}

/// One member's part in a draw.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Asked {
    pub(super) member: usize,
    pub(super) why: Why,
}

impl Draw {
    /// Everybody who is there: how contributions are measured, and what some strategies always do.
    pub(super) fn everyone(round: u32, why: Why, roster: &mut Roster) -> Self {
        let asked = columns(roster, |member| member.is_present());
        Self::noted(round, asked.map(|member| Asked { member, why }).collect(), roster)
    }

    /// k by their probabilities among those who are there, and every newcomer that is being measured.
    pub(super) fn by_standing(
        round: u32,
        roster: &mut Roster,
        probabilities: &[f64],
        k: usize,
        sampler: &mut Sampler,
        rng: &mut ChaCha8Rng,
    ) -> Self {
        let settled = |member: &Member| member.is_present() && !member.standing.is_entering();
        let newcomer = |member: &Member| member.is_present() && member.standing.is_entering();
        let present: Vec<usize> = columns(roster, settled).collect();
        let drawn = sampler.draw_among(probabilities, &present, k, rng);
        let mut asked: Vec<Asked> =
            drawn.into_iter().map(|member| Asked { member, why: Why::Drawn }).collect();
        asked.extend(columns(roster, newcomer).map(|member| Asked { member, why: Why::Newcomer }));
        asked.sort_unstable_by_key(|asked| asked.member);
        Self::noted(round, asked, roster)
    }

    fn noted(round: u32, asked: Vec<Asked>, roster: &mut Roster) -> Self {
        for asked in &asked {
            let member = roster.member_mut(asked.member);
            member.drawn += 1;
            member.last_drawn = Some(round);
        }
        let absent = columns(roster, |member| !member.is_present()).collect();
        Self { round, asked, absent }
    }

    pub(super) fn round(&self) -> u32 {
        self.round
    }

    pub(super) fn asked(&self) -> &[Asked] {
        &self.asked
    }

    /// Why a member was asked, or not.
    pub(super) fn why(&self, member: usize) -> Why {
        match self.place(member) {
            Some(place) => self.asked[place].why,
            None if self.absent.binary_search(&member).is_ok() => Why::Absent,
            None => Why::NotDrawn,
        }
    }

    /// The place of a member in this draw, if it is in it.
    pub(super) fn place(&self, member: usize) -> Option<usize> {
        self.asked.binary_search_by_key(&member, |asked| asked.member).ok()
    }

    /// Whether a draw that was saved can have been made among so many members.
    pub(super) fn is_sound(&self, members: usize) -> bool {
        let ascending =
            self.asked.windows(2).all(|pair| pair[0].member < pair[1].member) && self.absent.is_sorted();
        ascending && self.asked.last().is_none_or(|last| last.member < members)
    }

    /// What the member in this `place` is to do, with the model that is its own or everybody's, unless it `holds` it
    /// already.
    pub(super) fn task(
        &self,
        place: usize,
        holds: Option<Digest>,
        model: &Weights,
        rules: &Rules,
        deadline_ms: u32,
    ) -> Option<(usize, TrainingTask)> {
        let asked = self.asked.get(place)?;
        let task = TrainingTask {
            round: self.round,
            digest: model.digest(),
            weights: (holds != Some(model.digest())).then(|| model.shared()),
            loss: rules.training.loss.into(),
            samples_max: rules.training.samples_max,
            kind: rules.training.update_kind(),
            codec: rules.training.codec,
            deadline_ms,
        };
        Some((asked.member, task))
    }
}

fn columns(roster: &Roster, wanted: impl Fn(&Member) -> bool) -> impl Iterator<Item = usize> {
    roster.members().iter().enumerate().filter(move |(_, member)| wanted(member)).map(|(column, _)| column)
}

/// One round's work for one member of its draw, with the latest model.
///
/// It shares the weights with whoever else is given the same, so that a thousand tasks cost one model; where every node has
/// a model of its own, as many as there are nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainingTask {
    round: u32,
    digest: Digest,
    weights: Option<Arc<[f32]>>,
    loss: LossKind,
    samples_max: u32,
    kind: UpdateKind,
    codec: CodecKind,
    deadline_ms: u32,
}

impl TrainingTask {
    /// The round it belongs to.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// Digest of the weights the update is to start from.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Those weights, unless the node holds them already.
    pub fn weights(&self) -> Option<&Arc<[f32]>> {
        self.weights.as_ref()
    }

    /// The task as it travels; copies the weights.
    pub fn to_train(&self) -> Train {
        Train {
            round: self.round,
            weights_digest: self.digest,
            weights: self.weights.as_deref().map(<[f32]>::to_vec),
            loss: self.loss,
            samples_max: self.samples_max,
            kind: self.kind,
            codec: self.codec,
            deadline_ms: self.deadline_ms,
        }
    }
}
