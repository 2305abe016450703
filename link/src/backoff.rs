//! Growing pauses between attempts, so that a thousand nodes do not storm a broker that comes back.

use std::time::Duration;

use evenhand_protocol::identity::Digest;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

const FIRST: Duration = Duration::from_millis(250);

/// The longest pause.
pub(crate) const LONGEST: Duration = Duration::from_secs(30);

/// A connection that lasted so long was a success: the next pause is short again.
pub(crate) const STABLE: Duration = Duration::from_secs(5);

/// Doubles from a quarter of a second to half a minute; each pause lies somewhere in its upper half.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    rng: ChaCha8Rng,
}

impl Backoff {
    /// Different clients pause differently, the same client always alike.
    pub(crate) fn new(client_id: &str) -> Self {
        Self { next: FIRST, rng: ChaCha8Rng::from_seed(Digest::of(client_id.as_bytes()).0) }
    }

    pub(crate) fn pause(&mut self) -> Duration {
        let longest = self.next;
        self.next = LONGEST.min(self.next * 2);
        let share = f64::from(self.rng.next_u32()) / f64::from(u32::MAX);
        longest.mul_f64(0.5 + 0.5 * share)
    }

    pub(crate) fn reset(&mut self) {
        self.next = FIRST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_longest_and_start_over() {
        let mut backoff = Backoff::new("meter-1");
        let pauses: Vec<_> = (0..20).map(|_| backoff.pause()).collect();
        assert!(pauses[0] >= FIRST / 2 && pauses[0] <= FIRST);
        assert!(pauses.windows(3).take(6).all(|three| three[2] > three[0]), "{pauses:?}");
        assert!(pauses[10..].iter().all(|pause| (LONGEST / 2..=LONGEST).contains(pause)));
        backoff.reset();
        assert!(backoff.pause() <= FIRST);
    }

    #[test]
    fn clients_do_not_return_in_step() {
        let mut first: Vec<_> = (0..100).map(|node| Backoff::new(&format!("meter-{node}")).pause()).collect();
        first.sort_unstable();
        first.dedup();
        assert!(first.len() > 90);
    }
}
