//! Gaussian noise on what a node sends, and an account of the privacy that it costs.
//!
//! What a message carries is clipped to a length C, and Gaussian noise of z times the sensitivity is added to each value:
//! z is `privacy.noise`, the sensitivity the farthest that other data could have moved the clipped vector. The account adds
//! up 1/z² over all messages ([`Accountant`]); ε at a given δ follows from the sum ([`epsilon`]).

mod accountant;
mod epsilon;
mod noise;
mod protect;

pub use accountant::{Accountant, PrivacySpent, ReleaseKind};
pub use epsilon::{cost_of, epsilon, noise_for};
pub use noise::NoiseSeed;
pub(crate) use noise::clip;
pub use protect::{Protected, protect};
