//! Corruption of what an agent observes, by which experiments make agents differ.

use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

/// The corruption of an agent's observations; the game itself and its scores are as they are.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ObservationNoise {
    /// Share of the clipped rewards that are replaced by −1, 0 or 1 at random.
    pub reward_share: f64,
    /// Share of the frames to each byte of which a normally distributed number is added.
    pub frame_share: f64,
    /// Standard deviation of these numbers, where 255 is white.
    pub frame_deviation: f64,
    /// Bytes wrap around, as in the published code: black becomes white; otherwise they end at 0 and 255.
    pub wraps: bool,
}

impl ObservationNoise {
    /// The reward as the agent sees it: clipped to −1, 0 or 1.
    pub fn reward(&self, reward: f32, generator: &mut impl Rng) -> i8 {
        if self.reward_share > 0.0 && generator.random_bool(self.reward_share.min(1.0)) {
            return generator.random_range(-1..=1);
        }
        if reward > 0.0 {
            1
        } else if reward < 0.0 {
            -1
        } else {
            0
        }
    }

    /// Changes a frame into what the agent sees.
    pub fn frame(&self, frame: &mut [u8], generator: &mut impl Rng) {
        if self.frame_share <= 0.0 || !generator.random_bool(self.frame_share.min(1.0)) {
            return;
        }
        for pair in frame.chunks_mut(2) {
            let (first, second) = normal_pair(generator);
            for (byte, noise) in pair.iter_mut().zip([first, second]) {
                let value = (f64::from(*byte) + noise * self.frame_deviation).floor();
                *byte =
                    if self.wraps { value.rem_euclid(256.0) as u8 } else { value.clamp(0.0, 255.0) as u8 };
            }
        }
    }
}

/// Two independent standard normal numbers, by Box and Muller.
fn normal_pair(generator: &mut impl Rng) -> (f64, f64) {
    let radius = (-2.0 * (1.0 - generator.random::<f64>()).ln()).sqrt();
    let (sine, cosine) = (std::f64::consts::TAU * generator.random::<f64>()).sin_cos();
    (radius * cosine, radius * sine)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn nothing_is_changed_without_noise() {
        let (noise, mut generator) = (ObservationNoise::default(), ChaCha8Rng::seed_from_u64(1));
        let mut frame = [0, 7, 255];
        noise.frame(&mut frame, &mut generator);
        assert_eq!(frame, [0, 7, 255]);
        let rewards = [3.0, -2.0, 0.0].map(|reward| noise.reward(reward, &mut generator));
        assert_eq!((rewards, generator), ([1, -1, 0], ChaCha8Rng::seed_from_u64(1)), "no number was drawn");
    }

    #[test]
    fn the_share_of_rewards_is_reassigned() {
        let noise = ObservationNoise { reward_share: 0.6, ..Default::default() };
        let mut generator = ChaCha8Rng::seed_from_u64(2);
        let seen: Vec<i8> = (0..30_000).map(|_| noise.reward(0.0, &mut generator)).collect();
        let count = |reward| seen.iter().filter(|seen| **seen == reward).count() as f64 / 30_000.0;
        assert!(
            (count(1) - 0.2).abs() < 0.01 && (count(-1) - 0.2).abs() < 0.01,
            "{} {}",
            count(1),
            count(-1)
        );
    }

    #[test]
    fn frames_get_the_stated_variance_within_their_bounds_or_wrap() {
        let noise =
            ObservationNoise { frame_share: 1.0, frame_deviation: 50f64.sqrt(), ..Default::default() };
        let mut generator = ChaCha8Rng::seed_from_u64(3);
        let mut frame = vec![128; 40_001];
        noise.frame(&mut frame, &mut generator);
        let offsets = || frame.iter().map(|byte| f64::from(*byte) + 0.5 - 128.0);
        let mean = offsets().sum::<f64>() / frame.len() as f64;
        let variance = offsets().map(|offset| (offset - mean).powi(2)).sum::<f64>() / frame.len() as f64;
        assert!(mean.abs() < 0.15 && (variance - 50.0).abs() < 1.5, "{mean} {variance}");
        let mut black = vec![0; 1000];
        noise.frame(&mut black, &mut generator);
        assert!(black.iter().all(|byte| *byte < 60));
        let mut wrapped = vec![0; 1000];
        ObservationNoise { frame_deviation: 50.0, wraps: true, ..noise }.frame(&mut wrapped, &mut generator);
        assert!(wrapped.iter().filter(|byte| **byte > 128).count() > 400, "black turns white");
    }
}
