//! Substitutes: somebody else is drawn, in the same round, for who takes the model and sends no update.

use evenhand_fairness::SamplerKind;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::Federation;
use crate::effect::EffectBuffer;
use crate::index::NodeIndex;
use crate::input::Tick;
use crate::phase::FederationPhase;
use crate::roster::Roster;
use crate::round::OpenRound;
use crate::running::ContinuousPhase;

impl Federation {
    /// Draws a node for every drawn one that declined, was refused, left, or has not answered by half the deadline: at
    /// most k a round, so that who declines cannot hand the model round. Saved first, then asked.
    pub(crate) fn draw_substitutes(&mut self, now: Tick, out: &mut EffectBuffer) {
        let FederationPhase::Running(running) = &mut self.phase else { return };
        let Some(round) = running.stage.round_mut() else { return };
        round.tick(now);
        let (drawn, k) = (round.draw.substitutes().len(), self.rules.exploiting.k as usize);
        let missing = round.slots_missing().min(k).saturating_sub(drawn);
        if missing == 0 || !round.has_time_left(now) {
            return;
        }
        let Some(round) = running.stage.round() else { return };
        let standby = running.standby(round, &self.roster, &self.rng);
        let chosen: Vec<NodeIndex> = standby.into_iter().take(missing).collect();
        let Some(round) = running.stage.round_mut() else { return };
        for node in &chosen {
            round.substitute(*node, &mut self.roster);
        }
        out.persist |= !chosen.is_empty();
        if let Some(round) = self.phase.round() {
            for node in chosen {
                let slot = round.draw.slot(node);
                out.tasks.extend(slot.and_then(|slot| self.task(round, slot, now)));
            }
        }
    }
}

impl ContinuousPhase {
    /// The nodes that can still be drawn in this round, in the order of the draw: by credit, or by chance.
    ///
    /// The generator of the state stands still while a round is open; a copy of it gives the same order to a coordinator
    /// that was killed.
    fn standby(&self, round: &OpenRound, roster: &Roster, rng: &ChaCha8Rng) -> Vec<NodeIndex> {
        let mut rng = rng.clone();
        let by_credit = self.sampler.kind() == SamplerKind::Credit;
        let mut standby: Vec<(f64, NodeIndex)> = Vec::new();
        for (node, probability) in self.probabilities.iter().enumerate() {
            let clock = -(-rng.random::<f64>()).ln_1p() / probability;
            let node = NodeIndex(node);
            let order = match self.sampler.credits().get(node.get()) {
                Some(credit) if by_credit => -credit,
                _ => clock,
            };
            let free = *probability > 0.0 && roster.member(node).is_present();
            if free && round.draw.slot(node).is_none() && round.may_measure(node) {
                standby.push((order, node));
            }
        }
        standby.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        standby.into_iter().map(|(_, node)| node).collect()
    }
}
