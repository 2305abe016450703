//! Numbers that were received.

/// Numbers behind the newest that may still arrive, each once: chunks that were lost are sent again, so that a long message
/// may be overtaken.
const WIDTH: u64 = 64;

/// The newest number, and which of those before it were received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ReceiveWindow {
    /// One above the newest.
    next: u64,
    /// Bit i: the number next − 1 − i was received.
    received: u64,
}

impl ReceiveWindow {
    /// True if the number was not received and is not too old.
    pub(crate) fn is_new(&self, number: u64) -> bool {
        match self.next.checked_sub(number) {
            None | Some(0) => true,
            Some(behind) => behind <= WIDTH && self.received & 1 << (behind - 1) == 0,
        }
    }

    /// Marks a number as received.
    pub(crate) fn mark(&mut self, number: u64) {
        match self.next.checked_sub(number) {
            None | Some(0) => {
                let steps = number - self.next + 1;
                self.received = if steps < WIDTH { self.received << steps | 1 } else { 1 };
                self.next = number + 1;
            }
            Some(behind) if behind <= WIDTH => self.received |= 1 << (behind - 1),
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn agrees_with_a_set(numbers in proptest::collection::vec(0u64..300, 0..400)) {
            let (mut window, mut seen) = (ReceiveWindow::default(), BTreeSet::new());
            for number in numbers {
                let too_old = seen.last().is_some_and(|newest: &u64| newest + 1 > number + WIDTH);
                prop_assert_eq!(window.is_new(number), !seen.contains(&number) && !too_old);
                if window.is_new(number) {
                    window.mark(number);
                    seen.insert(number);
                }
            }
        }
    }
}
