//! The commands about names, keys and invitations.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::anyhow;
use clap::Args;
use evenhand_coordinator::config::CoordinatorConfig;
use evenhand_coordinator::control::{self, ControlError, ControlRequest};
use evenhand_coordinator::joining::{
    self, CoordinatorGate, CoordinatorKeys, Invitee, JoinGate, JoinPolicy, KeyFileError, NodeRegistry,
    rotation,
};
use evenhand_coordinator::store::{Store, StoreError};
use evenhand_program::atomic::AtomicFile;
use evenhand_program::entropy;
use evenhand_program::exit::Exit;
use evenhand_program::private;
use evenhand_protocol::identity::{FederationId, NodeId};
use evenhand_seal::{Entropy, Invitation, OneTimeCode};
use qrcode::{EcLevel, QrCode, render};

use super::operate::{open_or_copy, open_with_retry};
use super::{CommandFailure, load, print};

/// Invitations of one command.
const INVITATIONS_MAX: u32 = 10_000;

/// Arguments of `invite`.
#[derive(Debug, Args)]
pub(super) struct InviteArguments {
    /// The configuration file; without it, the defaults.
    #[arg(long)]
    config: Option<PathBuf>,
    /// The node's name, or with --count, its beginning.
    #[arg(long, default_value = "meter")]
    name: String,
    /// Make so many: NAME-1, NAME-2, …
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(INVITATIONS_MAX)))]
    count: Option<u32>,
    /// The number of the first with --count.
    #[arg(long, default_value_t = 1)]
    first: u32,
    /// The serial number of the meter it is for.
    #[arg(long, conflicts_with = "count")]
    serial: Option<String>,
    /// Replace the device of a node that has joined; the old one is heard until the new one joins, unless it is revoked.
    #[arg(long, value_name = "NODE", conflicts_with_all = ["name", "count"])]
    again: Option<NodeId>,
    /// Write a file for each, NAME.invitation, and with --qr NAME.svg, to this folder instead of lines to stdout.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Also as QR codes: files with --out, else in the terminal.
    #[arg(long)]
    qr: bool,
}

fn wrong(error: impl Into<anyhow::Error>) -> CommandFailure {
    CommandFailure::new(Exit::Config, error)
}

fn usage(sentence: impl std::fmt::Display) -> CommandFailure {
    CommandFailure::new(Exit::Usage, anyhow!("{sentence}"))
}

fn data(error: KeyFileError) -> CommandFailure {
    CommandFailure::new(Exit::Data, error)
}

fn fresh_entropy() -> Result<Entropy, CommandFailure> {
    let seed = entropy::seed().map_err(|error| CommandFailure::new(Exit::Software, error))?;
    Ok(Entropy::from_seed(seed))
}

/// The sealing of a coordinator that starts, and its keys.
pub(super) fn open(
    config: &CoordinatorConfig,
    store: Option<&Arc<Store>>,
    federation: &FederationId,
) -> Result<(Arc<CoordinatorGate>, CoordinatorKeys), CommandFailure> {
    let policy = config.join_policy();
    let mut entropy = fresh_entropy()?;
    let (keys, gate) = match store {
        Some(store) => {
            let keys = CoordinatorKeys::load_or_create(store.folder(), &mut entropy).map_err(data)?;
            let gate = JoinGate::stored(policy, store.registry()?, Arc::clone(store));
            (keys.at(rotation::now_ms()), gate)
        }
        None => (CoordinatorKeys::generate(&mut entropy), JoinGate::in_memory(policy)),
    };
    let admits = match policy {
        JoinPolicy::Open => "any node under a free name",
        JoinPolicy::Invited => "invited nodes",
    };
    tracing::info!(key = %keys.current.public(), admits, "messages are sealed");
    let sealing = joining::sealing(federation.clone(), keys.clone(), gate)
        .map_err(|error| CommandFailure::new(Exit::Software, error))?;
    Ok((sealing, keys))
}

pub(super) fn invite(arguments: InviteArguments) -> Result<(), CommandFailure> {
    let config = load(arguments.config.clone())?;
    let folder = &config.state.folder;
    if folder.as_os_str().is_empty() {
        return Err(wrong(anyhow!("state.folder is \"\": invitations would be forgotten; set a folder")));
    }
    let broker = match config.joining.address.as_str() {
        "" => config.broker.address().ok_or_else(|| {
            wrong(anyhow!("the broker's address as homes reach it is missing; write it into the configuration: [joining] address = \"mqtt://HOST\""))
        })?,
        address => address.to_owned(),
    };
    let mut entropy = fresh_entropy()?;
    private::create_folder(folder).map_err(wrong)?;
    let keys = CoordinatorKeys::load_or_create(folder, &mut entropy).map_err(data)?;
    let mut invitations = Vec::new();
    for node in names(&arguments)? {
        invitations.push(Invitation {
            broker: broker.clone(),
            federation: config.federation.name.clone(),
            password: config.password(&node).ok(),
            coordinator: keys.current.public(),
            code: OneTimeCode::generate(&mut entropy),
            serial: arguments.serial.clone(),
            node,
        });
    }
    // What would be refused afterwards must not have been stored.
    if let Some(out) = &arguments.out {
        private::create_folder(out).map_err(usage)?;
    }
    let invitees: Vec<Invitee> = invitations
        .iter()
        .map(|it| Invitee { node: it.node.clone(), code: it.code.digest(), serial: it.serial.clone() })
        .collect();
    register(folder, invitees, arguments.again.is_some())?;
    for invitation in &invitations {
        hand_out(invitation, &arguments)?;
    }
    match &arguments.out {
        Some(out) => print(format_args!("{} invitations in {}\n", invitations.len(), out.display())),
        None => Ok(()),
    }
}

fn names(arguments: &InviteArguments) -> Result<Vec<NodeId>, CommandFailure> {
    if let Some(node) = &arguments.again {
        return Ok(vec![node.clone()]);
    }
    let Some(count) = arguments.count else { return Ok(vec![NodeId::new(&arguments.name).map_err(usage)?]) };
    let last = arguments.first.checked_add(count - 1).ok_or_else(|| usage("--first is too large"))?;
    let width = last.to_string().len();
    let name = |number| NodeId::new(&format!("{}-{number:0width$}", arguments.name)).map_err(usage);
    (arguments.first..=last).map(name).collect()
}

/// Stores invitations: by the coordinator that runs, or without one.
fn register(folder: &Path, invitees: Vec<Invitee>, again: bool) -> Result<(), CommandFailure> {
    at_registry(folder, ControlRequest::Invite { invitees: invitees.clone(), again }, |gate| {
        gate.invite(&invitees, again)
    })
}

/// Has the running coordinator carry out `request`; without one, changes its registry.
fn at_registry(
    folder: &Path,
    request: ControlRequest,
    change: impl FnOnce(&mut JoinGate) -> Result<(), joining::GateError>,
) -> Result<(), CommandFailure> {
    match open_with_retry(folder, || Store::open_or_create(folder)) {
        Ok(store) => {
            let store = Arc::new(store);
            let mut gate = JoinGate::stored(JoinPolicy::Invited, store.registry()?, Arc::clone(&store));
            change(&mut gate).map_err(usage)
        }
        Err(StoreError::InUse { folder }) => match control::send(&folder, &request) {
            Ok(_) => Ok(()),
            Err(ControlError::NotRunning(_)) => Err(StoreError::InUse { folder }.into()),
            Err(error) => Err(error.into()),
        },
        Err(error) => Err(error.into()),
    }
}

fn hand_out(invitation: &Invitation, arguments: &InviteArguments) -> Result<(), CommandFailure> {
    let text = invitation.to_string();
    let code = match arguments.qr {
        true => Some(QrCode::with_error_correction_level(&text, EcLevel::L).map_err(usage)?),
        false => None,
    };
    let Some(out) = &arguments.out else {
        print(format_args!("{text}\n"))?;
        return match code {
            Some(code) => print(format_args!("{}\n", code.render::<render::unicode::Dense1x2>().build())),
            None => Ok(()),
        };
    };
    let write = |ending: &str, content: &str| {
        let path = out.join(format!("{}.{ending}", invitation.node));
        AtomicFile::new(&path)
            .owner_only()
            .write(content.as_bytes())
            .map_err(|error| usage(format_args!("cannot write {}: {error}", path.display())))
    };
    write("invitation", &format!("{text}\n"))?;
    match code {
        Some(code) => write("svg", &code.render::<render::svg::Color<'_>>().build()),
        None => Ok(()),
    }
}

pub(super) fn revoke(state: &Path, node: NodeId) -> Result<(), CommandFailure> {
    at_registry(state, ControlRequest::Revoke(node.clone()), |gate| gate.revoke(&node))?;
    print(format_args!(
        "{node} is revoked; evenhand-coordinator invite --again {node} admits another device\n"
    ))
}

pub(super) fn rotate_key(state: &Path, overlap_days: u32) -> Result<(), CommandFailure> {
    let request = ControlRequest::RotateKey { overlap_days };
    match control::send(state, &request) {
        Ok(_) => {}
        Err(ControlError::NotRunning(_)) => {
            rotation::rotate_file(state, overlap_days).map_err(usage)?;
        }
        Err(error) => return Err(error.into()),
    }
    key(state)
}

pub(super) fn key(state: &Path) -> Result<(), CommandFailure> {
    match CoordinatorKeys::load(state).map_err(data)? {
        Some(keys) => print(format_args!("{}\n", keys.current.public())),
        None => Err(usage("there is no key yet; the first start makes one")),
    }
}

pub(super) fn nodes(state: &Path, json: bool) -> Result<(), CommandFailure> {
    let (store, _copy) = open_or_copy(state)?;
    let registry = store.registry()?;
    if json {
        let all: std::collections::BTreeMap<_, _> = registry.entries().collect();
        let text = serde_json::to_string(&all).map_err(|error| CommandFailure::new(Exit::Software, error))?;
        return print(format_args!("{text}\n"));
    }
    print(table(&registry))
}

fn table(registry: &NodeRegistry) -> String {
    let line = |(node, entry): (&NodeId, &joining::RegistryEntry)| {
        let state = match (entry.revoked, entry.key.is_some(), entry.invitation.is_some()) {
            (true, ..) => "revoked",
            (_, true, true) => "joined, invited again",
            (_, true, false) => "joined",
            (_, false, _) => "invited",
        };
        let key = entry.key.map(|key| key.to_string()).unwrap_or_default();
        format!("{node}\t{state}\t{}\t{key}\n", entry.serial.as_deref().unwrap_or("-"))
    };
    registry.entries().map(line).collect()
}
