//! Clipping and noise of one message.

use rand_chacha::ChaCha20Rng;

use super::accountant::ReleaseKind;
use super::noise::{add_noise, clip, norm, normalise};
use crate::config::PrivacyConfig;

/// A vector as it may be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Protected {
    /// The vector.
    pub vector: Vec<f32>,
    /// Standard deviation of the noise on each value.
    pub deviation: f64,
    /// By what the vector was multiplied before.
    pub factor: f64,
}

/// What is sent of an update or a gradient, `rows_clipped` of whose rows were clipped one by one where rows are protected:
/// clipped and with noise. Without noise as it is.
///
/// # Sensitivity
///
/// Any two vectors of at most the length C differ by 2C at most, whatever the data, so that 2C holds for the household and for
/// a day, which by the naive profile is in every row of the month after it. A mean of n gradients of rows, each clipped to C,
/// moves by 2C/n if one row is another. Of a reference gradient only the direction counts: it is brought to length 1.
pub fn protect(
    mut vector: Vec<f32>,
    kind: ReleaseKind,
    rows_clipped: Option<usize>,
    privacy: &PrivacyConfig,
    generator: &mut ChaCha20Rng,
) -> Protected {
    if privacy.noise == 0.0 {
        return Protected { vector, deviation: 0.0, factor: 1.0 };
    }
    let before = norm(&vector);
    let sensitivity = match (rows_clipped, kind) {
        (Some(rows), _) => 2.0 * privacy.clip / rows.max(1) as f64,
        (None, ReleaseKind::Update) => {
            clip(&mut vector, privacy.clip);
            2.0 * privacy.clip
        }
        (None, ReleaseKind::Measurement) => {
            normalise(&mut vector);
            2.0
        }
    };
    let factor = if before > 0.0 { norm(&vector) / before } else { 1.0 };
    let deviation = privacy.noise * sensitivity;
    add_noise(&mut vector, deviation, generator);
    Protected { vector, deviation, factor }
}
