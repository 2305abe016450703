//! The limit on open files: every node is a connection.

use rlimit::Resource;

/// As many as the shipped unit sets.
const WANTED: u64 = 65_536;

/// Raises the limit as far as the system permits, and says so if it stays low.
pub fn raise_limit() {
    let raised = Resource::NOFILE.get().and_then(|(soft, hard)| {
        let reachable = hard.min(WANTED);
        if soft >= reachable {
            return Ok(());
        }
        tracing::debug!(before = soft, now = reachable, "raising the limit on open files");
        Resource::NOFILE.set(reachable, hard)
    });
    if let Err(error) = raised {
        tracing::warn!(
            %error,
            "cannot raise the limit on open files, and every node on the embedded broker needs one"
        );
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_limit_is_raised_as_far_as_permitted() {
        let (soft, hard) = Resource::NOFILE.get().unwrap();
        let lowered = soft.min(512);
        Resource::NOFILE.set(lowered, hard).unwrap();
        raise_limit();
        assert_eq!(Resource::NOFILE.get().unwrap(), (hard.min(WANTED).max(lowered), hard));
    }
}
