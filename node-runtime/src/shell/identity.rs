//! The node's keys and what it knows of its coordinator, in the state folder.

use std::io;
use std::sync::Arc;

use evenhand_link::{Broker, NodeSealing, Sealing};
use evenhand_program::entropy;
use evenhand_seal::{Entropy, KeyPair, NodeIdentity, NodeSeal, OneTimeCode, PublicKey};

use super::NodeError;
use super::disk::Disk;
use super::identity_files::{COORDINATOR, INVITATION, KEY};
use crate::config::NodeConfig;

/// The first coordinator was trusted.
const FIRST: &str = "first";

/// The node's sealing, by the keys in its state folder; they are made if they are not there.
pub(super) fn sealing(
    config: &NodeConfig,
    disk: Option<&dyn Disk>,
    broker: &Broker,
    session: u64,
) -> Result<Arc<dyn Sealing>, NodeError> {
    let state = |cause| NodeError::State { cause };
    let mut entropy = Entropy::from_seed(entropy::seed().map_err(state)?);
    let text = |name| disk.map_or(Ok(None), |disk| read_text(disk, name)).map_err(state);
    let keys = match text(KEY)? {
        Some(text) => KeyPair::parse_secret(&text).map_err(|_| NodeError::Key(KEY))?,
        None => {
            let keys = KeyPair::generate(&mut entropy);
            if let Some(disk) = disk {
                disk.replace(KEY, format!("{}\n", *keys.secret_text()).as_bytes()).map_err(state)?;
            }
            keys
        }
    };
    let (federation, node) = (config.node.federation.clone(), config.node.id.clone());
    let mut identity = NodeIdentity::new(federation, node, keys);
    if disk.is_none() {
        identity = identity.without_lasting_key();
    }
    let configured = config.node.coordinator_key;
    match text(COORDINATOR)?.and_then(|text| learnt_key(&text, configured)).or(configured) {
        Some(key) => identity = identity.knowing(key),
        None if broker.is_local() => {}
        None => return Err(NodeError::CoordinatorUnknown),
    }
    if let Some(text) = text(INVITATION)? {
        identity = identity.invited_by(OneTimeCode::parse(&text).ok_or(NodeError::Key(INVITATION))?);
    }
    if let Some(serial) = &config.node.serial {
        identity = identity.with_serial(serial.clone());
    }
    Ok(Arc::new(NodeSealing::new(NodeSeal::new(identity, session, entropy))))
}

/// Saves the coordinator's key that was learnt in a session with the one that was known.
pub(super) fn save_learnt(
    disk: &dyn Disk,
    configured: Option<PublicKey>,
    learnt: PublicKey,
) -> io::Result<()> {
    let from = configured.map_or_else(|| FIRST.to_owned(), |key| key.to_string());
    disk.replace(COORDINATOR, format!("{learnt}\n{from}\n").as_bytes())
}

/// Removes the code of an invitation: it is used up.
pub(super) fn forget_invitation(disk: &dyn Disk) -> io::Result<()> {
    match disk.read(INVITATION)? {
        Some(code) if !code.is_empty() => disk.replace(INVITATION, b""),
        _ => Ok(()),
    }
}

/// The key that was learnt, if it was learnt from the one that is configured: an owner who changes that means it.
fn learnt_key(text: &str, configured: Option<PublicKey>) -> Option<PublicKey> {
    let (learnt, from) = text.trim().split_once('\n')?;
    let same = match configured {
        Some(key) => from.parse() == Ok(key),
        None => true,
    };
    learnt.parse().ok().filter(|_| same)
}

fn read_text(disk: &dyn Disk, name: &str) -> io::Result<Option<String>> {
    let text = disk.read(name)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok(text.filter(|text| !text.trim().is_empty()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::shell::disk::Folder;

    #[test]
    fn a_learnt_key_holds_until_the_configured_one_changes() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Folder(folder.path().to_owned());
        let key = |seed| KeyPair::generate(&mut Entropy::from_seed([seed; 32])).public();
        let read = || read_text(&disk, COORDINATOR).unwrap().unwrap();
        save_learnt(&disk, Some(key(1)), key(2)).unwrap();
        assert_eq!(learnt_key(&read(), Some(key(1))), Some(key(2)));
        assert_eq!(learnt_key(&read(), Some(key(3))), None);
        save_learnt(&disk, None, key(2)).unwrap();
        assert_eq!(learnt_key(&read(), None), Some(key(2)));
        assert_eq!(learnt_key(&read(), Some(key(3))), None);
        assert_eq!(learnt_key("nonsense", None), None);
    }
}
