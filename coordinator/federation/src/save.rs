//! A saved federation: everything it needs to go on as if nothing had happened.

use std::sync::Arc;

use evenhand_fairness::Measurement;
use evenhand_protocol::identity::Digest;
use evenhand_protocol::reference::sketch_dimension;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::Federation;
use crate::closed::ClosedRound;
use crate::config::Rules;
use crate::input::Tick;
use crate::member::Member;
use crate::model::{ModelFile, ModelState};
use crate::phase::FederationPhase;
use crate::presence::Unconfirmed;
use crate::rate_limiter::RateLimiter;
use crate::roster::Roster;
use crate::round::{Absence, RoundStage};
use crate::strategy::{DynStrategy, Evenhand, MemoryError, Strategy};
use crate::weights::Weights;

/// Changes when saved bytes of older programs could be misunderstood.
const FORMAT: u16 = 10;

/// The whole state, without the updates of the open round (nodes send those again) and without the
/// ONNX file (it never changes, and is stored apart).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedFederation {
    rules: Rules,
    file: ModelFile,
    roster: Roster,
    model: ModelState,
    measurement: Measurement,
    strategy: SavedStrategy,
    rng: ChaCha8Rng,
    round: u32,
    attempt: u32,
    paused: bool,
    rate_limiter: RateLimiter,
    phase: FederationPhase,
}

/// A strategy's name and memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SavedStrategy {
    name: String,
    memory: Vec<u8>,
}

/// The reason why saved bytes are of no use.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RestoreError {
    /// Written by a program that is too old or too new.
    #[error("the saved state has format {0}, this program reads {FORMAT}; use the program that wrote it")]
    Format(u16),
    /// Damaged bytes.
    #[error("the saved state does not decode: {0}; restore it from a backup")]
    Decode(#[from] postcard::Error),
    /// The state of a federation with another file.
    #[error("the saved state belongs to another ONNX file; give the one it was founded with")]
    Onnx,
    /// The state of a federation with another strategy.
    #[error("the saved state belongs to the strategy {saved}, not to {given}")]
    Strategy {
        /// The name in the state.
        saved: String,
        /// The name of the strategy that was to go on.
        given: &'static str,
    },
    /// The memory of another strategy under this name.
    #[error("{0}; restore it from a backup")]
    Memory(#[from] MemoryError),
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

    /// The state from bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RestoreError> {
        let (format, rest) = bytes.split_first_chunk().ok_or(RestoreError::Format(0))?;
        match u16::from_le_bytes(*format) {
            FORMAT => Ok(postcard::from_bytes(rest)?),
            other => Err(RestoreError::Format(other)),
        }
    }

    /// The rules in force.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The same without the contributions that the round log holds as well, so that saving costs the same every round.
    pub fn without_history(mut self) -> Self {
        for history in self.phase.histories_mut() {
            *history = history.emptied();
        }
        self
    }

    /// Undoes [`without_history`](Self::without_history) with the recorded rounds.
    pub fn with_history<E: From<RestoreError>>(
        mut self,
        mut recorded: impl FnMut(u32) -> Result<Option<ClosedRound>, E>,
    ) -> Result<Self, E> {
        for history in self.phase.histories_mut() {
            if !history.reload(&mut recorded)? {
                return Err(RestoreError::Contradiction("the record of a round is missing").into());
            }
        }
        Ok(self)
    }

    /// The first round under the rules of this state: the open one, or the next.
    pub fn next_round(&self) -> u32 {
        self.round + u32::from(self.phase.round().is_none())
    }

    /// Changes the rules of a federation that is not running: see [`Rules::amended`]. One that was finished goes on if more
    /// rounds are wanted. Under another token no node is online
    /// before it has shown it; everybody has a round's time for that.
    pub fn amend(&mut self, rules: Rules) {
        let (token, before) = (&rules.admission.token_sha256, &self.rules.admission.token_sha256);
        if !token.is_empty() && !token.eq_ignore_ascii_case(before) {
            self.roster.retain_pending(|_| false);
            self.roster.members_mut().for_each(|member| member.session.online = false);
            if let Some(RoundStage::Resting { until }) = self.phase.stage_mut() {
                // Shortened when the link is up.
                *until = Tick(u64::MAX);
            }
        }
        if let FederationPhase::Finished(finished) = &mut self.phase
            && !rules.federation.ends_with(self.round)
            && let Some(resumed) = finished.resume.take()
        {
            self.phase = *resumed;
        }
        self.rules = rules;
    }

    /// The latest weights.
    pub fn weights(&self) -> &Weights {
        &self.model.latest
    }

    /// The round that is open, or the last one.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// Every enrolled node, by index.
    pub fn members(&self) -> &[Member] {
        self.roster.members()
    }

    /// Checks that the parts can belong together.
    fn check(&mut self) -> Result<(), &'static str> {
        let members = self.roster.members().len();
        if let Some(round) = self.phase.round() {
            if round.draw.round() != self.round {
                return Err("the open round is not the latest");
            }
            if !(round.draw.is_sound(members) && round.before.as_ref().is_none_or(|b| b.is_sound(members))) {
                return Err("a draw of nodes that are not enrolled");
            }
        }
        if !self.model.is_sound(members) {
            return Err("models of nodes that are not enrolled, or of another shape");
        }
        if !self.measurement.fits(self.model.dimension()) {
            return Err("a measurement of another shape");
        }
        if *self.measurement.config() != self.rules.contribution {
            return Err("a measurement by other rules");
        }
        let sketch =
            sketch_dimension(self.model.dimension(), self.rules.continuous.sketch_dimension as usize);
        self.phase.is_sound(members, sketch)
    }
}

impl Federation {
    /// Goes on under other rules: see [`Rules::amended`].
    pub fn with_rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// The state to be saved.
    pub fn save(&self) -> SavedFederation {
        SavedFederation {
            rules: self.rules.clone(),
            file: ModelFile { onnx: Arc::default(), ..self.file.clone() },
            roster: self.roster.clone(),
            model: self.model.clone(),
            measurement: self.measurement.clone(),
            strategy: SavedStrategy { name: self.strategy.name().into(), memory: self.strategy.save() },
            rng: self.rng.clone(),
            round: self.round,
            attempt: self.attempt,
            paused: self.paused,
            rate_limiter: self.rate_limiter.saved(),
            phase: self.phase.saved(),
        }
    }

    /// Goes on from a saved state with the ONNX file it was founded with. Then feed
    /// [`Input::LinkRestored`](crate::Input::LinkRestored): it asks the open round's nodes once more; the draw stays.
    pub fn restore(saved: SavedFederation, onnx: Arc<[u8]>) -> Result<Self, RestoreError> {
        Self::restore_with_strategy(saved, onnx, Box::new(Evenhand))
    }

    /// The same with another strategy than [`Evenhand`], whose memory is taken over from the state.
    pub fn restore_with_strategy(
        mut saved: SavedFederation,
        onnx: Arc<[u8]>,
        mut strategy: Box<dyn Strategy>,
    ) -> Result<Self, RestoreError> {
        if Digest::of(&onnx) != saved.file.file {
            return Err(RestoreError::Onnx);
        }
        if saved.strategy.name != strategy.name() {
            return Err(RestoreError::Strategy { saved: saved.strategy.name, given: strategy.name() });
        }
        strategy.restore(&saved.strategy.memory)?;
        saved.check().map_err(RestoreError::Contradiction)?;
        let SavedFederation {
            rules,
            file,
            roster,
            model,
            measurement,
            rng,
            round,
            attempt,
            paused,
            rate_limiter,
            phase,
            ..
        } = saved;
        let mut federation = Self {
            rules,
            file: ModelFile { onnx, ..file },
            roster,
            model,
            measurement,
            strategy: DynStrategy::new(strategy),
            rng,
            round,
            attempt,
            paused,
            rate_limiter,
            unconfirmed: Unconfirmed::default(),
            phase,
        };
        if let Some(round) = federation.phase.round_mut() {
            for node in federation.roster.indices_where(Member::is_removed) {
                round.leave(node, Absence::Disconnected);
            }
        }
        federation.suspend_unproven();
        Ok(federation)
    }
}
