//! Log lines about nodes that join, leave and return, and about rounds that outrun the meters.

use std::collections::BTreeMap;

use evenhand_federation::{Federation, Member};
use evenhand_protocol::identity::NodeId;

/// The last logged presence of every member.
pub(super) struct MembershipLog {
    online: BTreeMap<NodeId, bool>,
    /// True once the operator was told that the interval is too short.
    outrun_told: bool,
}

impl MembershipLog {
    /// Logs changes from now on.
    pub(super) fn new(members: &[Member]) -> Self {
        let online = members.iter().map(|member| (member.id().clone(), member.is_online()));
        Self { online: online.collect(), outrun_told: false }
    }

    /// Logs the changes since the last call.
    pub(super) fn update(&mut self, federation: &Federation) {
        for member in federation.members() {
            match self.online.get_mut(member.id()) {
                None => {
                    tracing::info!("node {} joined", member.id());
                    self.online.insert(member.id().clone(), member.is_online());
                }
                Some(online) if *online != member.is_online() => {
                    *online = member.is_online();
                    tracing::info!("node {} {}", member.id(), if *online { "online" } else { "offline" });
                }
                Some(_) => {}
            }
        }
        let outrun = federation.outruns_meters().filter(|outrun| outrun.interval_ms > 0);
        if let Some(outrun) = outrun
            && !std::mem::replace(&mut self.outrun_told, true)
        {
            tracing::warn!("{outrun}");
        }
    }
}
