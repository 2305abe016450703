//! Admission of updates: an update that was accepted is a type of its own.

use evenhand_protocol::codec::{CodecError, EncodedUpdate};
use evenhand_protocol::message::{Refusal, Update};
use serde::{Deserialize, Serialize};

use crate::config::{NormPolicy, Rules};

/// An update that may count: of the right length, finite, within the limits.
#[derive(Debug, Clone, PartialEq)]
pub struct AcceptedUpdate {
    vector: Vec<f32>,
    /// The encoded form, where it is not the vector itself.
    received: Option<EncodedUpdate>,
    /// ‖Δθᵢ,ₜ‖ as received.
    received_norm: f64,
    /// ‖vector‖.
    clipped_norm: f64,
    samples: u32,
    loss: f32,
    online: Option<OnlineLoss>,
}

/// The loss of a node's own forecasts since its last update.
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

    /// The message as received, so that an audit can admit it again.
    pub fn to_message(&self, round: u32) -> Update {
        Update {
            round,
            samples: self.samples,
            loss: self.loss,
            online_loss: self.online.map_or(0.0, |online| online.loss),
            online_samples: self.online.map_or(0, |online| online.samples),
            vector: self.received.clone().unwrap_or_else(|| EncodedUpdate::F32(self.vector.clone())),
        }
    }

    /// Scales it down to `norm_max` if it is longer.
    pub(crate) fn clip_norm(&mut self, norm_max: f64) {
        if self.clipped_norm > norm_max {
            self.received.get_or_insert_with(|| EncodedUpdate::F32(self.vector.clone()));
            let scale = norm_max / self.clipped_norm;
            self.vector.iter_mut().for_each(|v| *v = (f64::from(*v) * scale) as f32);
            self.clipped_norm = norm_max;
        }
    }

    /// ‖Δθᵢ,ₜ‖ as it is now, clipped or not.
    pub(crate) fn clipped_norm(&self) -> f64 {
        self.clipped_norm
    }

    /// ‖Δθᵢ,ₜ‖ as received, before any clipping.
    pub fn norm(&self) -> f64 {
        self.received_norm
    }

    /// Samples behind the update.
    pub fn samples(&self) -> u32 {
        self.samples
    }

    /// Loss of the received weights on the node's batch.
    pub fn loss(&self) -> f32 {
        self.loss
    }

    /// The loss of the node's forecasts, if it made any.
    pub fn online(&self) -> Option<OnlineLoss> {
        self.online
    }
}

/// Limits that an update must satisfy by itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UpdateLimits {
    dimension: usize,
    samples_max: u32,
    norm_max: f64,
    on_norm_exceeded: NormPolicy,
}

impl UpdateLimits {
    /// The limits of these rules for a model of `dimension` parameters.
    pub(crate) fn new(rules: &Rules, dimension: usize) -> Self {
        Self {
            dimension,
            samples_max: rules.training.samples_max,
            norm_max: rules.admission.norm_max,
            on_norm_exceeded: rules.admission.on_norm_exceeded,
        }
    }

    /// Accepts `update`, or says why not. Its sender and its round were checked before.
    pub(crate) fn admit(self, update: Update) -> Result<AcceptedUpdate, Refusal> {
        if update.samples == 0 || update.samples > self.samples_max {
            return Err(Refusal::Samples);
        }
        let online = (update.online_samples > 0)
            .then_some(OnlineLoss { loss: update.online_loss, samples: update.online_samples });
        if !update.loss.is_finite() || online.is_some_and(|online| !online.loss.is_finite()) {
            return Err(Refusal::NotFinite);
        }
        let (vector, received) = match update.vector {
            EncodedUpdate::F32(values) if values.len() == self.dimension => (values, None),
            encoded => {
                let vector = encoded.decode(self.dimension).map_err(|error| match error {
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
        if norm > self.norm_max && self.on_norm_exceeded == NormPolicy::Refuse {
            return Err(Refusal::Norm);
        }
        let (samples, loss) = (update.samples, update.loss);
        let mut accepted = AcceptedUpdate {
            vector,
            received,
            received_norm: norm,
            clipped_norm: norm,
            samples,
            loss,
            online,
        };
        accepted.clip_norm(self.norm_max);
        Ok(accepted)
    }
}
