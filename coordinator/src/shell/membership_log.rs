//! Log lines about nodes that join, leave and return, and about rounds that outrun the meters.

use std::collections::BTreeMap;
use std::time::Instant;

use evenhand_federation::{Federation, Member};
use evenhand_program::log_rate::LogRate;
use evenhand_protocol::identity::NodeId;

/// Lines about members in a minute.
const LINES_MAX: u32 = 200;

/// The last logged presence of every member.
pub(super) struct MembershipLog {
    online: BTreeMap<NodeId, bool>,
    /// Strangers may join and leave by the thousand.
    lines: LogRate,
    /// True once the operator was told that the interval is too short.
    outrun_told: bool,
}

impl MembershipLog {
    /// Logs changes from now on.
    pub(super) fn new(members: &[Member]) -> Self {
        let online = members.iter().map(|member| (member.id().clone(), member.is_online()));
        let lines = LogRate::default().with_lines(LINES_MAX);
        Self { online: online.collect(), lines, outrun_told: false }
    }

    /// Logs the changes since the last call.
    pub(super) fn update(&mut self, federation: &Federation) {
        for member in federation.members() {
            match self.online.get_mut(member.id()) {
                None => {
                    if let Some(left_out) = self.lines.permit(Instant::now()) {
                        let nodes = federation.members().iter().filter(|member| !member.is_removed()).count();
                        tracing::info!(left_out, nodes, "node {} has joined", member.id());
                    }
                    self.online.insert(member.id().clone(), member.is_online());
                }
                Some(online) if *online != member.is_online() => {
                    *online = member.is_online();
                    if let Some(left_out) = self.lines.permit(Instant::now()) {
                        let now = match (*online, member.is_removed()) {
                            (true, false) => "is back",
                            (false, false) => "has left, or its connection is lost",
                            (true, true) => "was removed, and comes back in vain",
                            (false, true) => "was removed, and has gone",
                        };
                        tracing::info!(left_out, "node {} {now}", member.id());
                    }
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
