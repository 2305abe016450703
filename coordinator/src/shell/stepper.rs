//! The federation with its persistence and observer, on the blocking thread.

use std::sync::Arc;
use std::time::Instant;

use evenhand_program::log_rate::LogRate;
use evenhand_protocol::message::{Phase, Refusal};
use tokio::sync::mpsc;

use super::clock::MonotonicClock;
use super::membership_log::MembershipLog;
use super::{FederationObserver, Persistence, ShellError, TimedRound};
use evenhand_federation::{Effect, Federation, Input, OrderPayload};

/// Everything that a step of the federation needs.
pub(super) struct Stepper {
    pub(super) federation: Federation,
    pub(super) persistence: Box<dyn Persistence>,
    pub(super) observer: Option<Box<dyn FederationObserver>>,
    pub(super) clock: MonotonicClock,
    pub(super) membership_log: MembershipLog,
    /// Log lines about messages that were refused: anybody can cause them who can publish.
    pub(super) refusals: LogRate,
    pub(super) rounds: mpsc::UnboundedSender<TimedRound>,
}

impl Stepper {
    /// True if the federation has finished or failed.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.federation.phase(), Phase::Finished | Phase::Failed)
    }

    /// Steps through the inputs and persists the results; returns the effects that are for the broker.
    pub(super) fn step(self, inputs: Vec<Input>) -> Result<(Self, Vec<Effect>), ShellError> {
        let Self {
            mut federation,
            mut persistence,
            mut observer,
            clock,
            mut membership_log,
            mut refusals,
            rounds,
        } = self;
        let mut outbound = Vec::new();
        for input in inputs {
            let began = Instant::now();
            let effects = federation.step(clock.now(), input);
            let mut closed = Vec::new();
            for effect in effects {
                match effect {
                    Effect::Record(round) => closed.push(Arc::new(*round)),
                    Effect::Persist(saved) => {
                        persistence.persist(&closed, *saved).map_err(ShellError::Persistence)?;
                    }
                    effect => {
                        log_refusal(&effect, &mut refusals);
                        outbound.push(effect);
                    }
                }
            }
            let seconds = began.elapsed().as_secs_f64();
            for evidence in closed {
                let round = TimedRound { evidence, seconds };
                if let Some(observer) = &mut observer {
                    observer.round_closed(&round);
                }
                // The receiver is optional.
                let _unreceived = rounds.send(round);
            }
        }
        membership_log.update(&federation);
        if let Some(observer) = &mut observer {
            observer.stepped(&federation);
        }
        Ok((Self { federation, persistence, observer, clock, membership_log, refusals, rounds }, outbound))
    }
}

fn log_refusal(effect: &Effect, rate: &mut LogRate) {
    if let Effect::Publish { node, payload: OrderPayload::Refused { round, refusal } } = effect
        && let Some(left_out) = rate.permit(Instant::now())
    {
        tracing::warn!(round, left_out, "node {node} refused ({}): {}", refusal.name(), reason(*refusal));
    }
}

/// What was wrong with a message, and the setting that decides.
fn reason(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Unknown => {
            "it is not admitted: it was removed, its token is wrong (admission.token_sha256), it is not in admission.nodes, or \
             there are federation.nodes_max already"
        }
        Refusal::NotDrawn => "it was not asked in this round",
        Refusal::Late => {
            "its answer came after the round; if that happens often, raise federation.round_deadline_ms"
        }
        Refusal::Repeated => "it had answered before",
        Refusal::Dimension => "its vector is not as long as the model; is it of this version?",
        Refusal::NotFinite => "its vector holds values that are no numbers",
        Refusal::Norm => "its vector is longer than admission.norm_max",
        Refusal::Samples => "it claims no samples, or more than training.samples_max",
        Refusal::Malformed => "its message cannot be read; is it of this version?",
        Refusal::Rate => {
            "it sends more than admission.messages_max in a round; do two programs use this name?"
        }
    }
}
