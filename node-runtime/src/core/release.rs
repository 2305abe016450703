//! Noise on what is sent, and its account.

use super::node::Node;
use crate::config::PrivacyUnit;
use crate::privacy::{ReleaseKind, protect};

const DAY_MS: i64 = 86_400_000;

impl Node {
    /// True if the owner's budget has room for one more message.
    pub(super) fn may_release(&self, kind: ReleaseKind) -> bool {
        self.accountant.permits(kind, self.data_day(), &self.settings.privacy)
    }

    /// What is sent of a trained vector or a gradient, [protected](protect) and accounted for.
    pub(super) fn release(
        &mut self,
        kind: ReleaseKind,
        vector: Vec<f32>,
        rows_clipped: Option<usize>,
    ) -> Vec<f32> {
        let privacy = &self.settings.privacy;
        let protected = protect(vector, kind, rows_clipped, privacy, &mut self.noise);
        if privacy.noise > 0.0 {
            self.accountant.add(kind, self.data_day(), self.settings.privacy.noise);
        }
        protected.vector
    }

    /// True if nothing but noisy vectors may leave the node: no loss, no skill.
    pub(super) fn is_noisy(&self) -> bool {
        self.settings.privacy.noise > 0.0
    }

    /// Rows whose gradients were clipped one by one.
    pub(super) fn rows_clipped(&self, samples: usize, is_gradient: bool) -> Option<usize> {
        let by_row = self.is_noisy() && self.settings.privacy.unit == PrivacyUnit::Row;
        (by_row && is_gradient).then_some(samples)
    }

    /// The day of the newest reading, by UTC.
    fn data_day(&self) -> i64 {
        self.window.newest_ms().map_or(0, |newest_ms| newest_ms.div_euclid(DAY_MS))
    }
}
