//! An attempt at a round: the state before its draw, to which one that nobody answers returns.

use evenhand_fairness::Sampler;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::Federation;
use crate::effect::EffectBuffer;
use crate::index::NodeIndex;
use crate::input::Tick;
use crate::phase::FederationPhase;
use crate::roster::Roster;
use crate::round::{OpenRound, RoundStage};

/// The state before a draw, as far as the draw changed it.
///
/// A round nobody answered is not a round: generator, credits and counts are as if it had never been opened, so that the
/// records alone lead from one round to the next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct BeforeDraw {
    pub(crate) rng: ChaCha8Rng,
    pub(crate) sampler: Sampler,
    pub(crate) tested: Vec<NodeIndex>,
    /// By index: the round in which each member was last drawn; nodes that were enrolled for the round have none.
    last_drawn: Vec<Option<u32>>,
}

impl BeforeDraw {
    /// The state of the roster, with what the phase keeps for its draws.
    pub(crate) fn new(rng: &ChaCha8Rng, sampler: &Sampler, tested: &[NodeIndex], roster: &Roster) -> Self {
        Self {
            rng: rng.clone(),
            sampler: sampler.clone(),
            tested: tested.to_vec(),
            last_drawn: roster.members().iter().map(|member| member.last_drawn).collect(),
        }
    }

    /// Undoes the draw's traces in the roster: nobody was drawn, and who was removed since was removed before the round.
    fn undo(&self, round: &OpenRound, roster: &mut Roster) {
        let number = round.draw.round();
        for member in roster.members_mut().filter(|member| member.removed == Some(number)) {
            member.removed = Some(number - 1);
        }
        for asked in round.draw.asked() {
            let member = roster.member_mut(asked.node);
            member.drawn -= 1;
            member.last_drawn = self.last_drawn.get(asked.node.get()).copied().flatten();
        }
    }

    /// Whether it can belong to so many members.
    pub(crate) fn is_sound(&self, members: usize) -> bool {
        self.last_drawn.len() <= members && self.tested.iter().all(|node| node.get() < members)
    }
}

impl Federation {
    /// Ends an attempt that nobody answered: the round is still to come, and is asked again when there may be new data.
    pub(crate) fn abandon(
        &mut self,
        round: &OpenRound,
        before: BeforeDraw,
        until: Tick,
        out: &mut EffectBuffer,
    ) {
        before.undo(round, &mut self.roster);
        self.round -= 1;
        self.rng = before.rng;
        if let FederationPhase::Running(running) = &mut self.phase {
            running.return_to(before.sampler, before.tested);
            running.stage = RoundStage::Resting { until };
        }
        out.persist = true;
    }
}
