//! The phases of a federation. A phase keeps policy only: whom to ask, what an evaluation means, what comes next.

use evenhand_fairness::StopVerdict;
use serde::{Deserialize, Serialize};

use crate::enrolling::Enrolling;
use crate::evaluation::CreditedContributions;
use crate::exploiting::Exploiting;
use crate::exploring::Exploring;
use crate::failed::Failed;
use crate::finished::Finished;
use crate::history::History;
use crate::index::NodeIndex;
use crate::round::{OpenRound, RoundStage};
use crate::running::ContinuousPhase;

/// The current phase, with what only it needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum FederationPhase {
    Enrolling(Enrolling),
    Exploring(Exploring),
    Exploiting(Exploiting),
    Running(Box<ContinuousPhase>),
    Finished(Finished),
    Failed(Failed),
}

/// A phase's view of a round that was evaluated.
pub(crate) struct Assessment {
    /// The contributions that enter standings.
    pub(crate) credited: CreditedContributions,
    /// The verdict of the stop rule or of the drift test, if there was one.
    pub(crate) verdict: Option<StopVerdict>,
    /// Nodes chosen for the test that it had to do without.
    pub(crate) untested: Vec<NodeIndex>,
    /// β.
    pub(crate) temperature: f64,
    /// By index: ϱ of the round.
    pub(crate) probabilities: Vec<f64>,
    /// The reason why contributions were not measured, though they were wanted.
    pub(crate) unmeasured: Option<String>,
}

impl FederationPhase {
    pub(crate) fn stage(&self) -> Option<&RoundStage> {
        match self {
            Self::Exploring(exploring) => Some(&exploring.stage),
            Self::Exploiting(exploiting) => Some(&exploiting.stage),
            Self::Running(running) => Some(&running.stage),
            Self::Enrolling(_) | Self::Finished(_) | Self::Failed(_) => None,
        }
    }

    pub(crate) fn stage_mut(&mut self) -> Option<&mut RoundStage> {
        match self {
            Self::Exploring(exploring) => Some(&mut exploring.stage),
            Self::Exploiting(exploiting) => Some(&mut exploiting.stage),
            Self::Running(running) => Some(&mut running.stage),
            Self::Enrolling(_) | Self::Finished(_) | Self::Failed(_) => None,
        }
    }

    pub(crate) fn round(&self) -> Option<&OpenRound> {
        self.stage().and_then(RoundStage::round)
    }

    pub(crate) fn round_mut(&mut self) -> Option<&mut OpenRound> {
        self.stage_mut().and_then(RoundStage::round_mut)
    }

    /// The phase as it is saved.
    pub(crate) fn saved(&self) -> Self {
        let mut saved = match self {
            Self::Exploring(exploring) => Self::Exploring(exploring.clone_without_round()),
            Self::Exploiting(exploiting) => Self::Exploiting(exploiting.clone_without_round()),
            Self::Running(running) => Self::Running(Box::new(running.clone_without_round())),
            other => other.clone(),
        };
        if let (Some(saved), Some(stage)) = (saved.stage_mut(), self.stage()) {
            *saved = stage.saved();
        }
        saved
    }

    /// Everything that grows with the rounds.
    pub(crate) fn histories_mut(&mut self) -> Vec<&mut History> {
        match self {
            Self::Exploring(exploring) => vec![&mut exploring.test.history],
            Self::Exploiting(exploiting) => exploiting.drift.histories_mut().into(),
            Self::Running(running) => vec![&mut running.test.history],
            Self::Finished(finished) => {
                finished.resume.as_mut().map_or_else(Vec::new, |resume| resume.histories_mut())
            }
            Self::Enrolling(_) | Self::Failed(_) => Vec::new(),
        }
    }

    /// Checks that every history and every index can belong to so many members, every sketch to its length.
    pub(crate) fn is_sound(&mut self, members: usize, sketch: usize) -> Result<(), &'static str> {
        if !self.histories_mut().into_iter().all(|history| history.is_sound(members)) {
            return Err("contributions of nodes that are not enrolled, or none");
        }
        if let Self::Finished(Finished { resume: Some(resume) }) = self {
            return resume.is_sound(members, sketch);
        }
        let (tested, probabilities): (&[NodeIndex], usize) = match self {
            Self::Exploring(exploring) => (&exploring.test.tested, 0),
            Self::Exploiting(exploiting) => (&exploiting.drift.tested, exploiting.probabilities.len()),
            Self::Running(running) if !running.is_sound(members, sketch) => {
                return Err("measurements of nodes that are not enrolled, or of another shape");
            }
            Self::Running(running) => (&running.test.tested, running.probabilities.len()),
            Self::Enrolling(_) | Self::Finished(_) | Self::Failed(_) => (&[], 0),
        };
        if tested.iter().any(|node| node.get() >= members) {
            return Err("tested nodes are not enrolled");
        }
        if probabilities > members {
            return Err("probabilities of nodes that are not enrolled");
        }
        Ok(())
    }
}
