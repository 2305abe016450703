#![allow(clippy::unwrap_used)]
use std::collections::BTreeSet;

use super::*;

#[test]
fn the_printed_defaults_are_the_defaults() {
    assert_eq!(Config::parse(DEFAULT).unwrap(), Config::default());
    assert_eq!(Config::parse(&config::uncommented(DEFAULT)).unwrap(), Config::default());
    Config::default().check().unwrap();
}

/// What the parser would have understood in the place of something unknown.
fn understood(text: &str) -> Vec<String> {
    let error = Config::parse(text).unwrap_err().to_string();
    let (_, names) = error.split_once("expected").unwrap();
    names.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn every_setting_is_shown() {
    let mut section = "";
    let mut shown = BTreeSet::new();
    for line in DEFAULT.lines() {
        section = line.strip_prefix('[').map_or(section, |line| line.trim_end_matches(']'));
        let setting = line.trim_start_matches('#').trim_start().split_once(" = ");
        shown.extend(setting.map(|(name, _)| format!("{section}.{name}")));
    }
    let sections = understood("unknown = 1");
    assert_eq!(sections.len(), 11, "{sections:?}");
    for section in sections {
        let settings = understood(&format!("[{section}]\nunknown = 1"));
        assert!(!settings.is_empty(), "{section}");
        for setting in settings {
            let name = format!("{section}.{setting}");
            assert!(shown.contains(&name), "{name} is not shown");
        }
    }
}

#[test]
fn unknown_settings_and_wrong_values_are_named() {
    let error = |text: &str| match Config::parse(text) {
        Ok(config) => config.check().unwrap_err().to_string(),
        Err(error) => error.to_string(),
    };
    assert!(error("[federation]\nround = 3").contains("unknown field `round`"));
    assert!(error("[exploiting]\nk = 99").starts_with("k = 99 exceeds the 12 nodes"));
    assert!(error("[contribution]\nutility = \"accuracy\"").contains("of which this program has none"));
    assert!(error("[training]\ncodec = \"zip\"").contains("unknown codec"));
    assert!(error("[broker]\nurl = \"http://x\"").starts_with("broker.url: "));
    assert!(error("[broker]\nurl = \"mqtt://h\"\npassword_file = \"none\"").starts_with("cannot read none"));
    assert!(error("[broker]\nurl = \"mqtt://alice@h\"\npassword_file = \"none\"").contains("names a user"));
    assert!(error("[broker]\npassword_file = \"none\"").contains("broker.url = \"embedded\" needs none"));
    assert!(error("[broker]\nsecret_file = \"none\"").starts_with("broker.secret_file: cannot read none"));
    assert!(error("[broker]\nurl = \"mqtts://x\"\nca_file = \"none.pem\"").contains("none.pem"));
    assert!(
        error("[dashboard]\ntoken_file = \"none\"").starts_with("dashboard.token_file: cannot read none")
    );
    assert!(error("[model]\nonnx = \"nothing\"").contains("electricity-rnn"));
}

#[test]
fn beyond_this_machine_the_embedded_broker_wants_proof() {
    let config = |listen: &str, more: &str| {
        Config::parse(&format!("[broker]\nlisten = \"{listen}\"\n{more}")).unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    std::fs::write(&file, "0123456789abcdef0123456789abcdef\n").unwrap();
    let secret = format!("secret_file = {file:?}\n");
    let node = NodeId::new("meter-1").unwrap();
    for here in ["127.0.0.1:1883", "127.9.9.9:1883", "[::1]:1883", "[::ffff:127.0.0.1]:1883"] {
        for more in ["", "access = \"open\"", &secret] {
            config(here, more).broker().unwrap();
        }
    }
    for beyond in ["0.0.0.0:1883", "[::]:1883", "192.168.1.2:1883"] {
        let unproven = config(beyond, "").broker().unwrap_err();
        assert!(matches!(unproven, ConfigError::Unproven(_)), "{unproven}");
        assert!(unproven.to_string().contains("set broker.secret_file"));
        let open = format!("access = \"open\"\n{secret}");
        assert!(matches!(config(beyond, &open).broker().unwrap_err(), ConfigError::Exposed(_)));
        config(beyond, &secret).broker().unwrap();
    }
    let external = "url = \"mqtt://broker.example\"";
    config("0.0.0.0:1883", external).broker().unwrap();
    assert_eq!(config("127.0.0.1:1883", &secret).password(&node).unwrap().len(), 64);
    for more in [String::new(), format!("{external}\n{secret}")] {
        let none = config("127.0.0.1:1883", &more).password(&node).unwrap_err();
        assert!(matches!(none, ConfigError::NoPasswords), "{none}");
    }
}
