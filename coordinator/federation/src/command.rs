//! What the operator wants.

use evenhand_protocol::identity::NodeId;

use super::finished::Finished;
use super::input::Command;
use super::member::Place;
use super::round::{Absence, Stage};
use super::shared::Outbox;
use super::{Federation, Phase};
use crate::strategy::StrategyKind;

/// Why a command cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandRejection {
    /// It is finished, or has failed.
    #[error("the federation is over")]
    Over,
    /// Nobody is waited for any more.
    #[error("the federation has begun already")]
    Begun,
    /// There is nothing to measure anew yet.
    #[error("contributions are not settled yet; they are being measured anyway")]
    Unsettled,
    /// The strategy knows no exploring.
    #[error("the strategy {} does not explore", .0.name())]
    NeverExplores(StrategyKind),
    /// The node that is meant is unknown.
    #[error("there is no node {0} in this federation")]
    Stranger(NodeId),
}

impl Federation {
    /// Why a command would do nothing, if it would. To ask for what is so already, such as a second pause, is fine.
    pub fn objection(&self, command: &Command) -> Option<CommandRejection> {
        let strategy = &self.shared.strategy;
        match (command, &self.phase) {
            (_, Phase::Finished(_) | Phase::Failed(_)) => Some(CommandRejection::Over),
            (Command::Begin, Phase::Exploring(_) | Phase::Exploiting(_)) => Some(CommandRejection::Begun),
            (Command::Explore, _) if !strategy.get().explores() => {
                Some(CommandRejection::NeverExplores(strategy.kind()))
            }
            (Command::Explore, Phase::Enrolling(_) | Phase::Exploring(_)) => {
                Some(CommandRejection::Unsettled)
            }
            (Command::Remove(node), _) if !self.shared.roster.contains(node) => {
                Some(CommandRejection::Stranger(node.clone()))
            }
            _ => None,
        }
    }

    pub(super) fn command(&mut self, command: Command, out: &mut Outbox) {
        if self.objection(&command).is_some() {
            return;
        }
        match command {
            Command::Begin => {
                if let Phase::Enrolling(enrolling) = &mut self.phase {
                    enrolling.begin = true;
                }
            }
            Command::Explore => {
                if let Phase::Exploiting(exploiting) = &mut self.phase {
                    exploiting.explore = true;
                }
            }
            Command::Pause => self.shared.paused = true,
            Command::Resume => self.shared.paused = false,
            Command::Finish => self.phase = Phase::Finished(Finished),
            Command::Remove(node) => self.remove(&node),
        }
        out.persist = true;
        out.manifest = true;
    }

    fn remove(&mut self, node: &NodeId) {
        match self.shared.roster.find(node) {
            Place::Member(column) => {
                let round = self.shared.round;
                self.shared.roster.member_mut(column).removed.get_or_insert(round);
                let round = self.phase.stage_mut().and_then(Stage::round_mut);
                if let Some((round, place)) = round.and_then(|r| r.draw.place(column).map(|p| (r, p))) {
                    round.give_up(place, Absence::Disconnected);
                }
            }
            Place::Lobby(_) => self.shared.roster.dismiss(node),
            Place::Stranger => {}
        }
    }
}
