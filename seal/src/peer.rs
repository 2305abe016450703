//! The coordinator's side of one node.

use evenhand_protocol::topic::Channel;
use subtle::ConstantTimeEq;

use crate::error::SealError;
use crate::hello_budget::HelloBudget;
use crate::keys::PublicKey;
use crate::session::Session;
use crate::wire::{self, HelloStamp};

/// A session with the digest of its will.
#[derive(Debug)]
pub(crate) struct NodeConnection {
    session: Session,
    /// Taken when the will was heard.
    death: Option<[u8; 32]>,
    stamp: HelloStamp,
}

/// The sessions of one node.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) key: PublicKey,
    /// The newest hello; those before it were repeated by somebody else.
    newest: Option<HelloStamp>,
    /// Agreed to, and not yet used by the node.
    offered: Option<NodeConnection>,
    current: Option<NodeConnection>,
    /// What was sent before the node greeted again may still arrive.
    previous: Option<NodeConnection>,
    /// What a broker would retain for the node, in clear: sealed anew to each session.
    retained: Option<(Channel, Vec<u8>)>,
    pub(crate) hellos: HelloBudget,
}

impl Peer {
    pub(crate) fn new(key: PublicKey) -> Self {
        let hellos = HelloBudget::shared_by(1);
        Self { key, newest: None, offered: None, current: None, previous: None, retained: None, hellos }
    }

    /// True if a hello is newer than all before.
    pub(crate) fn is_newer(&self, stamp: HelloStamp) -> bool {
        self.newest.is_none_or(|newest| stamp > newest)
    }

    /// Offers a session; the node uses it or does not.
    pub(crate) fn offer(&mut self, session: Session, stamp: HelloStamp, death: [u8; 32]) {
        self.newest = Some(stamp);
        self.offered = Some(NodeConnection { session, death: Some(death), stamp });
    }

    /// The message in sealed bytes, and whether it is the first of its session.
    pub(crate) fn open(&mut self, channel: Channel, bytes: &[u8]) -> Result<(Vec<u8>, bool), SealError> {
        let named = |connection: &Option<NodeConnection>| {
            connection.as_ref().is_some_and(|connection| connection.session.is_named_by(bytes))
        };
        if named(&self.offered)
            && let Some(offered) = &mut self.offered
        {
            let message = offered.session.open(channel, bytes)?;
            self.previous = std::mem::replace(&mut self.current, self.offered.take());
            return Ok((message, true));
        }
        for connection in [&mut self.current, &mut self.previous] {
            if named(connection)
                && let Some(connection) = connection
            {
                return connection.session.open(channel, bytes).map(|message| (message, false));
            }
        }
        Err(SealError::NoSession)
    }

    /// The message sealed to the node; none without a session.
    pub(crate) fn seal(&mut self, channel: Channel, message: &[u8]) -> Option<Vec<u8>> {
        Some(self.current.as_mut()?.session.seal(channel, message))
    }

    /// Keeps what the node is to know in every session.
    pub(crate) fn retain(&mut self, channel: Channel, message: Vec<u8>) {
        self.retained = Some((channel, message));
    }

    pub(crate) fn retained(&self) -> Option<(Channel, Vec<u8>)> {
        self.retained.clone()
    }

    /// True if the node has a session.
    pub(crate) fn is_secured(&self) -> bool {
        self.current.is_some()
    }

    /// The node's start that a will ends; each will once.
    pub(crate) fn die(&mut self, token: &[u8; wire::DEATH_BYTES]) -> Result<u64, SealError> {
        let current = self.current.as_mut().ok_or(SealError::NoSession)?;
        let digest = wire::death_digest(token);
        match current.death {
            Some(death) if bool::from(death.ct_eq(&digest)) => {
                current.death = None;
                Ok(current.stamp.session)
            }
            _ => Err(SealError::Forged),
        }
    }
}
