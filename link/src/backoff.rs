//! Exponential backoff with jitter, so that a thousand nodes do not reconnect to a restarted broker at once.

use std::time::Duration;

use evenhand_protocol::identity::Digest;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

const DELAY_MIN: Duration = Duration::from_millis(250);
const DELAY_MAX: Duration = Duration::from_secs(30);

/// A connection that lasted this long counts as a success: the next delay is short again.
pub(crate) const STABLE_AFTER: Duration = Duration::from_secs(5);

/// Delays whose upper bounds double from [`DELAY_MIN`] to [`DELAY_MAX`]; each is drawn from the upper half below its bound.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    rng: ChaCha8Rng,
}

impl Backoff {
    /// Delays that differ between clients and are the same for the same client.
    pub(crate) fn new(client_id: &str) -> Self {
        Self { next: DELAY_MIN, rng: ChaCha8Rng::from_seed(Digest::of(client_id.as_bytes()).0) }
    }

    pub(crate) fn next_delay(&mut self) -> Duration {
        let bound = self.next;
        self.next = DELAY_MAX.min(self.next * 2);
        let share = f64::from(self.rng.next_u32()) / f64::from(u32::MAX);
        bound.mul_f64(0.5 + 0.5 * share)
    }

    pub(crate) fn reset(&mut self) {
        self.next = DELAY_MIN;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_the_maximum_and_shrink_after_a_reset() {
        let mut backoff = Backoff::new("meter-1");
        let delays: Vec<_> = (0..20).map(|_| backoff.next_delay()).collect();
        assert!(delays[0] >= DELAY_MIN / 2 && delays[0] <= DELAY_MIN);
        assert!(delays.windows(3).take(6).all(|three| three[2] > three[0]), "{delays:?}");
        assert!(delays[10..].iter().all(|delay| (DELAY_MAX / 2..=DELAY_MAX).contains(delay)));
        backoff.reset();
        assert!(backoff.next_delay() <= DELAY_MIN);
    }

    #[test]
    fn clients_do_not_reconnect_in_step() {
        let mut first: Vec<_> =
            (0..100).map(|node| Backoff::new(&format!("meter-{node}")).next_delay()).collect();
        first.sort_unstable();
        first.dedup();
        assert!(first.len() > 90);
    }
}
