//! Commands of the operator.

use evenhand_protocol::identity::NodeId;

use crate::Federation;
use crate::effect::EffectBuffer;
use crate::finished::Finished;
use crate::input::Command;
use crate::phase::FederationPhase;
use crate::roster::RosterEntry;
use crate::round::Absence;
use crate::strategy::Participation;

/// The reason why a command cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandRejection {
    /// It is finished, or has failed.
    #[error("the federation is over")]
    Over,
    /// It waits for nobody any more.
    #[error("the federation has begun already")]
    Begun,
    /// There is nothing to measure again yet.
    #[error("contributions are not settled yet; they are being measured anyway")]
    Unsettled,
    /// The strategy knows no exploring.
    #[error("the strategy {0} does not explore")]
    NeverExplores(&'static str),
    /// The policy measures in every round.
    #[error("contributions are measured in every round; there is nothing to explore again")]
    AlwaysMeasured,
    /// The node is unknown.
    #[error("there is no node {0} in this federation")]
    UnknownNode(NodeId),
}

impl Federation {
    /// The reason why a command would do nothing, if it would. To ask for what is so already, such as a second pause, is
    /// fine.
    pub fn rejection(&self, command: &Command) -> Option<CommandRejection> {
        let strategy = &self.strategy;
        match (command, &self.phase) {
            (_, FederationPhase::Finished(_) | FederationPhase::Failed(_)) => Some(CommandRejection::Over),
            (
                Command::Begin,
                FederationPhase::Exploring(_) | FederationPhase::Exploiting(_) | FederationPhase::Running(_),
            ) => Some(CommandRejection::Begun),
            (Command::Explore, FederationPhase::Running(_)) => Some(CommandRejection::AlwaysMeasured),
            (Command::Explore, _) if strategy.participation() != Participation::ExploreThenDraw => {
                Some(CommandRejection::NeverExplores(strategy.name()))
            }
            (Command::Explore, FederationPhase::Enrolling(_) | FederationPhase::Exploring(_)) => {
                Some(CommandRejection::Unsettled)
            }
            (Command::Remove(node), _) if !self.roster.contains(node) => {
                Some(CommandRejection::UnknownNode(node.clone()))
            }
            _ => None,
        }
    }

    pub(crate) fn command(&mut self, command: Command, out: &mut EffectBuffer) {
        if self.rejection(&command).is_some() {
            return;
        }
        match command {
            Command::Begin => {
                if let FederationPhase::Enrolling(enrolling) = &mut self.phase {
                    enrolling.begin = true;
                }
            }
            Command::Explore => {
                if let FederationPhase::Exploiting(exploiting) = &mut self.phase {
                    exploiting.explore = true;
                }
            }
            Command::Pause => self.paused = true,
            Command::Resume => self.paused = false,
            Command::Finish => self.phase = FederationPhase::Finished(Finished::default()),
            Command::Remove(node) => self.remove(&node),
        }
        out.state_changed();
    }

    fn remove(&mut self, node: &NodeId) {
        match self.roster.find(node) {
            RosterEntry::Member(index) => {
                self.roster.member_mut(index).removed.get_or_insert(self.round);
                if let Some(round) = self.phase.round_mut() {
                    round.leave(index, Absence::Disconnected);
                }
            }
            RosterEntry::Pending(_) => self.roster.drop_pending(node),
            RosterEntry::Unknown => {}
        }
    }
}
