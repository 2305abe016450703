//! What is let in: an update that was not refused is a value of its own type.

use evenhand_protocol::codec::{CodecError, EncodedUpdate};
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::{Birth, Refusal, Update};
use serde::{Deserialize, Serialize};

use super::settings::{Admission, NormPolicy};

/// An update that may count: right length, finite, within the limits.
#[derive(Debug, Clone, PartialEq)]
pub struct Accepted {
    vector: Vec<f32>,
    /// What was sent, where it is not the vector itself.
    sent: Option<EncodedUpdate>,
    norm: f64,
    samples: u32,
    loss: f32,
    online: Option<Online>,
}

/// How a node's own forecasts did since its last update.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Online {
    /// Mean loss.
    pub loss: f32,
    /// Samples behind it.
    pub samples: u32,
}

impl Accepted {
    /// Δθᵢ,ₜ.
    pub fn vector(&self) -> &[f32] {
        &self.vector
    }

    /// The message it came as, to be judged again by whoever checks the round.
    pub fn received(&self, round: u32) -> Update {
        Update {
            round,
            samples: self.samples,
            loss: self.loss,
            online_loss: self.online.map_or(0.0, |online| online.loss),
            online_samples: self.online.map_or(0, |online| online.samples),
            vector: self.sent.clone().unwrap_or_else(|| EncodedUpdate::F32(self.vector.clone())),
        }
    }

    /// ‖Δθᵢ,ₜ‖ as it arrived, before any clipping.
    pub fn norm(&self) -> f64 {
        self.norm
    }

    /// Samples behind the update.
    pub fn samples(&self) -> u32 {
        self.samples
    }

    /// Loss of the received weights on the node's batch.
    pub fn loss(&self) -> f32 {
        self.loss
    }

    /// How the node's forecasts did, if it made any.
    pub fn online(&self) -> Option<Online> {
        self.online
    }
}

/// What an update must satisfy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) dimension: usize,
    pub(super) samples_max: u32,
    pub(super) norm_max: f64,
    pub(super) norm: NormPolicy,
}

/// Lets `update` in or says why not. Who sent it, and when, was judged before.
pub(super) fn admit(update: Update, limits: Limits) -> Result<Accepted, Refusal> {
    if update.samples == 0 || update.samples > limits.samples_max {
        return Err(Refusal::Samples);
    }
    let online = (update.online_samples > 0)
        .then_some(Online { loss: update.online_loss, samples: update.online_samples });
    if !update.loss.is_finite() || online.is_some_and(|online| !online.loss.is_finite()) {
        return Err(Refusal::NotFinite);
    }
    let (mut vector, mut sent) = match update.vector {
        EncodedUpdate::F32(values) if values.len() == limits.dimension => (values, None),
        encoded => {
            let vector = encoded.decode(limits.dimension).map_err(|error| match error {
                CodecError::Dimension { .. } => Refusal::Dimension,
                CodecError::Structure(_) => Refusal::Malformed,
            })?;
            (vector, Some(encoded))
        }
    };
    // A sum of squares of f32 cannot overflow f64, so it is finite exactly if every entry is.
    let norm = vector.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
    if !norm.is_finite() {
        return Err(Refusal::NotFinite);
    }
    if norm > limits.norm_max {
        match limits.norm {
            NormPolicy::Refuse => return Err(Refusal::Norm),
            NormPolicy::Clip => {
                sent.get_or_insert_with(|| EncodedUpdate::F32(vector.clone()));
                let scale = limits.norm_max / norm;
                vector.iter_mut().for_each(|v| *v = (f64::from(*v) * scale) as f32);
            }
        }
    }
    Ok(Accepted { vector, sent, norm, samples: update.samples, loss: update.loss, online })
}

impl Admission {
    /// Whether a node may enrol at all.
    pub(super) fn welcomes(&self, node: &str, birth: &Birth) -> bool {
        let listed = self.nodes.is_empty() || self.nodes.iter().any(|allowed| allowed.as_str() == node);
        let proven = self.token_sha256.is_empty()
            || birth.token.as_ref().is_some_and(|token| {
                Digest::of(token.as_bytes()).to_string().eq_ignore_ascii_case(&self.token_sha256)
            });
        listed && proven
    }
}
