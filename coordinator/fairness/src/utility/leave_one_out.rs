//! The utility `leave-one-out`.

use super::MeasureRound;
use super::cosine::gram_game;
use crate::round::RoundUpdates;
use crate::{Contributions, FairnessError, shapley};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// The cosine that is lost without a node: cheap, and not a Shapley value, see
/// [`leave_one_out`](shapley::leave_one_out).
///
/// # Formula
/// φᵢ = U(N) − U(N∖{i}), U the utility of [`Cosine`](super::Cosine).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaveOneOut;

impl MeasureRound for LeaveOneOut {
    fn measure(
        &mut self,
        round: &RoundUpdates<'_>,
        _: &mut ChaCha8Rng,
    ) -> Result<Contributions, FairnessError> {
        Ok(shapley::leave_one_out(&mut gram_game(round)?))
    }
}
