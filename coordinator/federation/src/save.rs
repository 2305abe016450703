//! A federation at rest: everything it needs to go on as if nothing had happened.

use std::sync::Arc;

use evenhand_protocol::identity::Digest;
use serde::{Deserialize, Serialize};

use super::input::Tick;
use super::round::{Absence, Stage};
use super::rules::Rules;
use super::shared::Shared;
use super::weights::Weights;
use super::{ClosedRound, Federation, Member, Phase};

/// Changes when saved bytes of older programs could be misunderstood.
const FORMAT: u16 = 5;

/// The whole state, without the updates of the open round (nodes send those again) and without the
/// ONNX file (it never changes, and is kept apart).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedFederation {
    shared: Shared,
    phase: Phase,
}

/// Why saved bytes are of no use.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RestoreError {
    /// Written by a program that is too old or too new.
    #[error("the saved state has format {0}, this program reads {FORMAT}; use the program that wrote it")]
    Format(u16),
    /// Not what was written.
    #[error("the saved state does not decode: {0}; restore it from a backup")]
    Decode(#[from] postcard::Error),
    /// The state of a federation with another file.
    #[error("the saved state belongs to another ONNX file; give the one it was founded with")]
    Onnx,
    /// Decodes, but cannot have been written.
    #[error("the saved state contradicts itself: {0}; restore it from a backup")]
    Contradiction(&'static str),
}

impl SavedFederation {
    /// The state as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let bytes = FORMAT.to_le_bytes().to_vec();
        postcard::to_extend(self, bytes).expect("plain data always encodes")
    }

    /// The rules it is run by.
    pub fn rules(&self) -> &Rules {
        &self.shared.rules
    }

    /// The same without what the rounds' records hold as well, so that keeping it costs the same every round.
    pub fn without_history(mut self) -> Self {
        for history in self.phase.histories_mut() {
            *history = history.emptied();
        }
        self
    }

    /// Undoes [`without_history`](Self::without_history) with the records that were kept.
    pub fn with_history<E: From<RestoreError>>(
        mut self,
        mut record: impl FnMut(u32) -> Result<Option<ClosedRound>, E>,
    ) -> Result<Self, E> {
        for history in self.phase.histories_mut() {
            if !history.recall(&mut record)? {
                return Err(RestoreError::Contradiction("the record of a round is missing").into());
            }
        }
        Ok(self)
    }

    /// The first round that is judged by the rules of this state: the open one, or the next.
    pub fn next_round(&self) -> u32 {
        let open = self.phase.stage().is_some_and(|stage| stage.round().is_some());
        self.shared.round + u32::from(!open)
    }

    /// Changes the rules of a federation that is not running: see [`Rules::amended`]. Under another token nobody is there
    /// before it has shown it; everybody has a round's time for that.
    pub fn amend(&mut self, rules: Rules) {
        let (token, before) = (&rules.admission.token_sha256, &self.shared.rules.admission.token_sha256);
        if !token.is_empty() && !token.eq_ignore_ascii_case(before) {
            self.shared.roster.dismiss_unless(|_| false);
            self.shared.roster.members_mut().for_each(|member| member.session.alive = false);
            if let Some(Stage::Resting { until }) = self.phase.stage_mut() {
                // Shortened when the link stands.
                *until = Tick(u64::MAX);
            }
        }
        self.shared.rules = rules;
    }

    /// The latest weights.
    pub fn weights(&self) -> &Weights {
        &self.shared.latest
    }

    /// The round that is open, or the last one.
    pub fn round(&self) -> u32 {
        self.shared.round
    }

    /// Every enrolled node, by column.
    pub fn members(&self) -> &[Member] {
        self.shared.roster.members()
    }

    /// The state from bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RestoreError> {
        let (format, rest) = bytes.split_first_chunk().ok_or(RestoreError::Format(0))?;
        match u16::from_le_bytes(*format) {
            FORMAT => Ok(postcard::from_bytes(rest)?),
            other => Err(RestoreError::Format(other)),
        }
    }
}

impl Federation {
    /// Goes on by other rules: see [`Rules::amended`].
    pub fn governed_by(mut self, rules: Rules) -> Self {
        self.shared.rules = rules;
        self
    }

    /// The state as it can be kept.
    pub fn save(&self) -> SavedFederation {
        let mut shared = self.shared.clone();
        shared.graph.onnx = Arc::default();
        shared.heard.clear();
        shared.unheard.clear();
        SavedFederation { shared, phase: self.phase.saved() }
    }

    /// Goes on from a kept state with the ONNX file it was founded with. Then feed [`Input::LinkRestored`](super::Input::LinkRestored): it
    /// asks the open round's nodes once more; nobody is drawn anew.
    pub fn restore(saved: SavedFederation, onnx: Arc<[u8]>) -> Result<Self, RestoreError> {
        let SavedFederation { mut shared, mut phase } = saved;
        if Digest::of(&onnx) != shared.graph.file {
            return Err(RestoreError::Onnx);
        }
        shared.graph.onnx = onnx;
        let members = shared.roster.members().len();
        let wrong = |ok: bool, what| if ok { Ok(()) } else { Err(RestoreError::Contradiction(what)) };
        if let Some(round) = phase.stage().and_then(|stage| stage.round()) {
            wrong(round.draw.round() == shared.round, "the open round is not the latest")?;
            wrong(round.draw.is_sound(members), "a draw of nodes that are not enrolled")?;
        }
        wrong(
            shared.strategy.kind() == shared.rules.federation.strategy,
            "another strategy than its rules name",
        )?;
        let dimension = shared.latest.values().len();
        let fits = shared.own.iter().all(|own| own.values().len() == dimension);
        wrong(fits && shared.own.len() <= members, "models of nobody, or of another shape")?;
        let measurement = &shared.measurement;
        wrong(
            measurement.fits(dimension) && measurement.config() == &shared.rules.contribution,
            "a measurement of another model or configuration",
        )?;
        let mut histories = phase.histories_mut().into_iter();
        wrong(histories.all(|history| history.is_sound(members)), "contributions of nobody, or none")?;
        match &phase {
            Phase::Exploring(exploring) => {
                wrong(
                    exploring.watched.iter().all(|column| *column < members),
                    "watched nodes are not enrolled",
                )?;
            }
            Phase::Exploiting(exploiting) => {
                wrong(exploiting.probabilities.len() <= members, "probabilities of nobody")?;
                wrong(
                    exploiting.drift.watched.iter().all(|column| *column < members),
                    "watched nodes are not enrolled",
                )?;
            }
            Phase::Enrolling(_) | Phase::Finished(_) | Phase::Failed(_) => {}
        }
        if let Some(round) = phase.stage_mut().and_then(Stage::round_mut) {
            for place in 0..round.draw.asked().len() {
                if shared.roster.member(round.draw.asked()[place].member).is_removed() {
                    round.give_up(place, Absence::Disconnected);
                }
            }
        }
        let mut federation = Self { shared, phase };
        federation.bar_unproven();
        Ok(federation)
    }
}
