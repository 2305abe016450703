//! Bounds on handshakes, which cost more than other messages.

/// Handshakes that may come at once.
const BURST: u32 = 8;

/// Milliseconds in which one more is allowed.
const REFILL_MS: u64 = 500;

/// What one sender may still ask for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HelloBudget {
    left: u32,
    refilled_ms: u64,
    factor: u32,
}

impl HelloBudget {
    /// The budget of `factor` senders that share it.
    pub(crate) fn shared_by(factor: u32) -> Self {
        Self { left: BURST * factor, refilled_ms: 0, factor }
    }

    /// Takes one; false if none is left.
    pub(crate) fn take(&mut self, now_ms: u64) -> bool {
        let gained =
            now_ms.saturating_sub(self.refilled_ms).saturating_mul(u64::from(self.factor)) / REFILL_MS;
        if gained > 0 {
            let full = BURST * self.factor;
            self.left = self.left.saturating_add(u32::try_from(gained).unwrap_or(full)).min(full);
            self.refilled_ms = now_ms;
        }
        let some = self.left > 0;
        self.left -= u32::from(some);
        some
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_two_a_second() {
        let mut budget = HelloBudget::shared_by(1);
        let taken = |budget: &mut HelloBudget, now_ms| (0..100).filter(|_| budget.take(now_ms)).count();
        assert_eq!(taken(&mut budget, 10_000), 8);
        assert_eq!(taken(&mut budget, 10_499), 0);
        assert_eq!(taken(&mut budget, 11_000), 2);
        assert_eq!(taken(&mut budget, 1_000_000), 8);
        assert_eq!(taken(&mut HelloBudget::shared_by(10), 0), 80);
    }
}
