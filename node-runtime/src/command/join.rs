//! `join`: the configuration and the code of an invitation, written to this device.

use std::fs;
use std::path::{Path, PathBuf};

use evenhand_program::atomic::AtomicFile;
use evenhand_program::private;
use evenhand_seal::Invitation;

use crate::config::NodeConfig;
use crate::shell::identity_files;

/// The longest file that is looked at.
const FILE_BYTES_MAX: u64 = 1 << 16;

/// Where an invitation is written to.
pub(super) struct JoinPlaces<'a> {
    /// The configuration file.
    pub(super) config: &'a Path,
    /// The state folder; none for that of the configuration.
    pub(super) state: Option<PathBuf>,
    /// The serial number of the meter, where the invitation names none.
    pub(super) serial: Option<String>,
    /// A configuration that is there is changed.
    pub(super) force: bool,
}

/// Writes the configuration and the secrets of an invitation, which is a file or its text; what was done, as a sentence.
pub(super) fn join(invitation: &str, places: JoinPlaces<'_>) -> Result<String, String> {
    let invitation: Invitation = read(invitation)?.parse().map_err(|error| format!("{error}"))?;
    let config = places.config.display();
    let before = match fs::read_to_string(places.config) {
        Ok(_) if !places.force => {
            return Err(format!(
                "{config} exists; with --force its node and broker are replaced, and the rest stays"
            ));
        }
        Ok(text) => Some((NodeConfig::parse(&text).map_err(|error| format!("{config}: {error}"))?, text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(format!("cannot read {config}: {error}")),
    };
    let configured = before.as_ref().and_then(|(parsed, _)| parsed.node.state_folder.clone());
    let state = places.state.or(configured).unwrap_or_else(|| "/var/lib/evenhand".into());
    let state = std::path::absolute(&state).map_err(|error| format!("{}: {error}", state.display()))?;
    let text = before.map_or_else(NodeConfig::default_text, |(_, text)| text);
    let text = configuration(&text, &invitation, &state, invitation.serial.clone().or(places.serial));
    NodeConfig::parse(&text).map_err(|error| format!("the invitation cannot be used here: {error}"))?;

    private::create_folder(&state).map_err(|error| format!("cannot create {}: {error}", state.display()))?;
    let write = |path: &Path, text: &str| {
        AtomicFile::new(path)
            .owner_only()
            .write(text.as_bytes())
            .map_err(|error| format!("cannot write {}: {error}", path.display()))
    };
    write(&state.join(identity_files::INVITATION), &format!("{}\n", invitation.code.to_text()))?;
    if let Some(password) = &invitation.password {
        write(&state.join(identity_files::PASSWORD), &format!("{password}\n"))?;
    }
    // Last: with it, the node can start.
    let file = AtomicFile::new(places.config);
    file.write(text.as_bytes()).map_err(|error| format!("cannot write {config}: {error}"))?;
    let Invitation { node, federation, .. } = invitation;
    Ok(format!(
        "{config} written: node {node} of federation {federation}; set its [source], then start the node\n"
    ))
}

/// The text of an invitation: itself, or that of the file it names.
fn read(invitation: &str) -> Result<String, String> {
    let path = Path::new(invitation);
    match fs::metadata(path) {
        Ok(metadata) if metadata.len() > FILE_BYTES_MAX => Err(format!("{invitation} is no invitation")),
        Ok(_) => fs::read_to_string(path).map_err(|error| format!("cannot read {invitation}: {error}")),
        Err(_) => Ok(invitation.to_owned()),
    }
}

/// `text` with the values of the invitation.
fn configuration(text: &str, invitation: &Invitation, state: &Path, serial: Option<String>) -> String {
    let password =
        invitation.password.as_ref().map(|_| state.join(identity_files::PASSWORD).display().to_string());
    let mut values = vec![
        ("node", "id", Some(invitation.node.to_string())),
        ("node", "federation", Some(invitation.federation.to_string())),
        ("node", "coordinator_key", Some(invitation.coordinator.to_string())),
        ("node", "serial", serial),
        ("node", "state_folder", Some(state.display().to_string())),
        ("broker", "url", Some(invitation.broker.clone())),
        ("broker", "password_file", password),
    ];
    values.retain(|(.., value)| value.is_some());
    let (mut section, mut lines) = (String::new(), Vec::new());
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[') {
            // What the section did not mention comes before the next one.
            insert_rest(&section, &mut values, &mut lines);
            section = name.trim_end().trim_end_matches(']').to_owned();
        }
        let shown = line.strip_prefix("# ").unwrap_or(line);
        let key = shown.split_once('=').map(|(key, _)| key.trim());
        let found = values.iter().position(|(of, name, _)| *of == section && key == Some(name));
        match found.map(|at| values.remove(at)) {
            Some((_, name, value)) => lines.push(setting(name, value)),
            None => lines.push(line.to_owned()),
        }
    }
    insert_rest(&section, &mut values, &mut lines);
    for of in ["node", "broker"] {
        if values.iter().any(|(section, ..)| *section == of) {
            lines.push(format!("\n[{of}]"));
            insert_rest(of, &mut values, &mut lines);
        }
    }
    lines.join("\n") + "\n"
}

/// A section, a key and its value.
type ConfigValue = (&'static str, &'static str, Option<String>);

fn insert_rest(section: &str, values: &mut Vec<ConfigValue>, lines: &mut Vec<String>) {
    let (here, rest) = values.drain(..).partition(|(of, ..)| *of == section);
    *values = rest;
    let here: Vec<ConfigValue> = here;
    lines.extend(here.into_iter().map(|(_, name, value)| setting(name, value)));
}

fn setting(name: &str, value: Option<String>) -> String {
    format!("{name} = {}", toml::Value::String(value.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use evenhand_protocol::identity::{FederationId, NodeId};
    use evenhand_seal::{Entropy, KeyPair, OneTimeCode};
    use std::os::unix::fs::PermissionsExt;

    fn invitation() -> Invitation {
        let mut entropy = Entropy::from_seed([1; 32]);
        Invitation {
            broker: "mqtts://broker.example".into(),
            federation: FederationId::new("town").unwrap(),
            node: NodeId::new("meter-7").unwrap(),
            coordinator: KeyPair::generate(&mut entropy).public(),
            code: OneTimeCode::generate(&mut entropy),
            serial: Some("S1".into()),
            password: Some("secret".into()),
        }
    }

    #[test]
    fn a_device_joins_once_and_keeps_its_other_settings() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("node.toml");
        let state = folder.path().join("state");
        let places = |force| JoinPlaces { config: &config, state: Some(state.clone()), serial: None, force };
        let said = join(&invitation().to_string(), places(false)).unwrap();
        assert!(said.contains("node meter-7 of federation town"), "{said}");
        let text = fs::read_to_string(&config).unwrap();
        let parsed = NodeConfig::parse(&text).unwrap();
        assert_eq!(parsed.node.id, invitation().node);
        assert_eq!(parsed.node.coordinator_key, Some(invitation().coordinator));
        assert_eq!(parsed.node.serial.as_deref(), Some("S1"));
        assert_eq!(parsed.broker.url, "mqtts://broker.example");
        assert_eq!(parsed.broker.password_file, Some(state.join("password")));
        assert!(!text.contains(&invitation().code.to_text()), "the configuration is no secret");
        for (name, content) in [("invitation", invitation().code.to_text()), ("password", "secret".into())] {
            let file = state.join(name);
            assert_eq!(fs::read_to_string(&file).unwrap(), content + "\n");
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }

        let refused = join(&invitation().to_string(), places(false)).unwrap_err();
        assert!(refused.contains("--force"), "{refused}");
        fs::write(&config, text.replace("# parameters_max = 2000000", "parameters_max = 77")).unwrap();
        let again = Invitation { node: NodeId::new("meter-8").unwrap(), ..invitation() };
        let file = folder.path().join("line.invitation");
        fs::write(&file, format!("{again}\n")).unwrap();
        join(file.to_str().unwrap(), places(true)).unwrap();
        let parsed = NodeConfig::parse(&fs::read_to_string(&config).unwrap()).unwrap();
        assert_eq!((parsed.node.id, parsed.node.parameters_max), (again.node, 77));
    }

    #[test]
    fn what_is_no_invitation_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("node.toml");
        let places = || JoinPlaces { config: &config, state: None, serial: None, force: false };
        for wrong in ["/nowhere/at/all", "EVENHAND1:AAAA", ""] {
            assert!(join(wrong, places()).is_err(), "{wrong}");
        }
        assert!(!config.exists());
    }
}
