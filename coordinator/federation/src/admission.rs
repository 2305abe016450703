//! What is let in: an update that was not refused is a value of its own type.

use evenhand_protocol::codec::{CodecError, EncodedUpdate};
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::{Birth, Refusal, Update};
use serde::{Deserialize, Serialize};

use super::settings::{AdmissionConfig, NormPolicy};

/// An update that may count: right length, finite, within the limits.
#[derive(Debug, Clone, PartialEq)]
pub struct AcceptedUpdate {
    vector: Vec<f32>,
    /// What was sent, where it is not the vector itself.
    sent: Option<EncodedUpdate>,
    norm: f64,
    /// ‖vector‖.
    length: f64,
    samples: u32,
    loss: f32,
    online: Option<OnlineLoss>,
}

/// How a node's own forecasts did since its last update.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OnlineLoss {
    /// Mean loss.
    pub loss: f32,
    /// Samples behind it.
    pub samples: u32,
}

impl AcceptedUpdate {
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

    /// Scales it down to this length if it is longer.
    pub(super) fn shorten(&mut self, length_max: f64) {
        if self.length > length_max {
            self.sent.get_or_insert_with(|| EncodedUpdate::F32(self.vector.clone()));
            let scale = length_max / self.length;
            self.vector.iter_mut().for_each(|v| *v = (f64::from(*v) * scale) as f32);
            self.length = length_max;
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
    pub fn online(&self) -> Option<OnlineLoss> {
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
pub(super) fn admit(update: Update, limits: Limits) -> Result<AcceptedUpdate, Refusal> {
    if update.samples == 0 || update.samples > limits.samples_max {
        return Err(Refusal::Samples);
    }
    let online = (update.online_samples > 0)
        .then_some(OnlineLoss { loss: update.online_loss, samples: update.online_samples });
    if !update.loss.is_finite() || online.is_some_and(|online| !online.loss.is_finite()) {
        return Err(Refusal::NotFinite);
    }
    let (vector, sent) = match update.vector {
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
    if norm > limits.norm_max && limits.norm == NormPolicy::Refuse {
        return Err(Refusal::Norm);
    }
    let (samples, loss) = (update.samples, update.loss);
    let mut accepted = AcceptedUpdate { vector, sent, norm, length: norm, samples, loss, online };
    accepted.shorten(limits.norm_max);
    Ok(accepted)
}

/// How loud one node may be beside the others of its round. What it exceeds is cut off and the rest counts, so that an honest
/// burst is not lost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Loudness {
    pub(super) length_max: f64,
    pub(super) samples_max: f64,
}

impl Loudness {
    /// By the medians of what arrived. Updates of zero say nothing about the length of others.
    pub(super) fn of<'a>(
        arrived: impl Iterator<Item = &'a AcceptedUpdate> + Clone,
        limits: &AdmissionConfig,
    ) -> Self {
        let lengths = arrived.clone().map(|accepted| accepted.length).filter(|length| *length > 0.0);
        let samples = arrived.map(|accepted| f64::from(accepted.samples));
        Self {
            length_max: times_median(limits.norm_ratio_max, lengths),
            samples_max: times_median(limits.samples_ratio_max, samples),
        }
    }
}

/// The lower of the two in the middle, if there are two: of two nodes, the louder one is limited.
fn times_median(ratio: f64, values: impl Iterator<Item = f64>) -> f64 {
    if ratio == 0.0 {
        return f64::INFINITY;
    }
    let mut values: Vec<f64> = values.collect();
    let middle = values.len().saturating_sub(1) / 2;
    values.sort_unstable_by(f64::total_cmp);
    values.get(middle).map_or(f64::INFINITY, |median| ratio * median)
}

impl AdmissionConfig {
    /// Whether a node may take part, if it can prove who it is.
    pub(super) fn lists(&self, node: &str) -> bool {
        self.nodes.is_empty() || self.nodes.iter().any(|allowed| allowed.as_str() == node)
    }

    /// Whether a node may take part.
    pub(super) fn welcomes(&self, node: &str, birth: &Birth) -> bool {
        let proven = self.token_sha256.is_empty()
            || birth.token.as_ref().is_some_and(|token| {
                Digest::of(token.as_bytes()).to_string().eq_ignore_ascii_case(&self.token_sha256)
            });
        self.lists(node) && proven
    }
}
