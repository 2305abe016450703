//! Log lines about nodes that join, leave and return.

use evenhand_federation::Member;

/// The last logged presence of every member, by its index.
pub(super) struct MembershipLog {
    online: Vec<bool>,
}

impl MembershipLog {
    /// Logs changes from now on.
    pub(super) fn new(members: &[Member]) -> Self {
        Self { online: members.iter().map(Member::is_online).collect() }
    }

    /// Logs the changes since the last call.
    pub(super) fn update(&mut self, members: &[Member]) {
        for (member, online) in members.iter().zip(&mut self.online) {
            if std::mem::replace(online, member.is_online()) != member.is_online() {
                tracing::info!("node {} {}", member.id(), if *online { "online" } else { "offline" });
            }
        }
        for member in &members[self.online.len()..] {
            tracing::info!("node {} joined", member.id());
            self.online.push(member.is_online());
        }
    }
}
