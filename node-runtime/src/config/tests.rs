#![allow(clippy::unwrap_used)]

use evenhand_program::config::TomlError;
use proptest::prelude::*;

use super::*;

const MINIMAL: &str = "[node]\nid = \"m1\"\nfederation = \"town\"\n[source]\nkind = \"household\"\n";

const CSV: &str = "[node]\nid = \"m1\"\nfederation = \"town\"\n[source]\nkind = \"csv\"\npath = \"a.csv\"\n";

fn error(text: &str) -> String {
    NodeConfig::parse(text).unwrap_err().to_string()
}

fn uncommented() -> String {
    evenhand_program::config::uncommented(&NodeConfig::default_text())
}

#[test]
fn the_printed_default_parses_and_says_the_truth() {
    let printed = NodeConfig::parse(&NodeConfig::default_text()).unwrap();
    let minimal = NodeConfig::parse(&MINIMAL.replace("m1", "meter-1").replace("town", "home")).unwrap();
    assert_eq!(printed, minimal);
    let mut shown: NodeConfig = toml::from_str(&uncommented()).unwrap();
    let (node, broker) = (&mut shown.node, &mut shown.broker);
    let sealed = (node.coordinator_key.take(), node.serial.take());
    assert!(matches!(sealed, (Some(_), Some(_))));
    let tokens = (node.token.take(), node.token_file.take(), node.token_env.take());
    let examples = (node.state_folder.take(), broker.username.take());
    let more = (broker.password_file.take(), broker.password_env.take(), broker.ca_file.take());
    let certificate = (broker.certificate_file.take(), broker.key_file.take());
    assert!(
        matches!(tokens, (Some(_), Some(_), Some(_)))
            && matches!(examples, (Some(_), Some(_)))
            && matches!(more, (Some(_), Some(_), Some(_)))
    );
    assert!(matches!(certificate, (Some(_), Some(_))));
    assert_eq!(shown, minimal, "what is shown as default is the default");
}

#[test]
fn optional_sections_are_documented() {
    let mut sections = Vec::new();
    let printed = NodeConfig::default_text();
    for name in ["owner", "metrics", "rows"] {
        let block = printed.split("\n\n").find(|block| block.contains(&format!("\n## [{name}]"))).unwrap();
        let keep = |line: &&str| line.contains(" = ") || line.starts_with("## [");
        let lines = block.lines().filter(keep).map(|line| line.trim_start_matches("## ").to_owned() + "\n");
        sections.push(lines.collect::<String>());
    }
    let text = format!("{MINIMAL}{}", sections.concat());
    let config: NodeConfig = toml::from_str(&text).unwrap();
    assert_eq!(config.owner, Some(OwnerConfig::default()));
    let (shown, known) = (text.parse::<toml::Table>().unwrap(), toml::Table::try_from(&config).unwrap());
    for section in ["metrics", "rows"] {
        let keys =
            |table: &toml::Table| table[section].as_table().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&shown), keys(&known));
    }
}

#[test]
fn every_key_is_documented() {
    let documented: toml::Table = uncommented().parse().unwrap();
    let known = toml::Table::try_from(NodeConfig::parse(MINIMAL).unwrap()).unwrap();
    for (section, keys) in known {
        for key in keys.as_table().unwrap().keys() {
            assert!(documented[&section].get(key).is_some(), "{section}.{key}");
        }
    }
}

#[test]
fn every_key_of_every_source_is_documented() {
    let mut kinds = Vec::new();
    for block in NodeConfig::default_text().split("\n\n").filter(|block| block.starts_with("## [source]")) {
        let text: String =
            block.lines().map(|line| line.trim_start_matches("## ").to_owned() + "\n").collect();
        let shown: toml::Table = text.parse().unwrap();
        let config =
            NodeConfig::parse(&format!("[node]\nid = \"m1\"\nfederation = \"town\"\n{text}")).unwrap();
        let known = toml::Table::try_from(&config).unwrap();
        let keys =
            |table: &toml::Table| table["source"].as_table().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&shown), keys(&known), "{text}");
        kinds.push(shown["source"]["kind"].as_str().unwrap().to_owned());
    }
    assert_eq!(kinds, ["csv", "jsonl", "mqtt", "modbus", "p1", "sml", "d0", "sunspec", "http"]);
}

#[test]
fn a_wrong_key_is_refused_with_the_nearest_known_one() {
    let text = MINIMAL.replace("[source]", "[broker]\nulr = \"mqtt://h\"\n[source]");
    assert!(error(&text).contains("did you mean `url`?"), "{}", error(&text));
    let text = format!("{MINIMAL}nose = 0.5\n");
    assert!(error(&text).contains("did you mean `noise`?"), "{}", error(&text));
    let text = MINIMAL.replace("household", "houshold");
    assert!(error(&text).contains("did you mean `household`?"), "{}", error(&text));
    let text = format!("{MINIMAL}[zzzzzzzzzz]\n");
    assert!(!error(&text).contains("did you mean"), "{}", error(&text));
}

#[test]
fn wrong_values_are_one_sentence_with_the_remedy() {
    for (text, expected) in [
        (format!("{MINIMAL}noise = 1.5\n"), "between 0 and 1"),
        (format!("{MINIMAL}step_s = 7\n"), "divisor"),
        (format!("{MINIMAL}[window]\nlags = 0\n"), "at least one step"),
        (format!("{MINIMAL}[window]\nlags = 5000\n"), "raise it to lags + horizon = 5001"),
        (format!("{MINIMAL}[window]\nholidays = [\"2026-02-30\"]\n"), "is no date; write it as"),
        (format!("{MINIMAL}[pace]\nspeed = 0.0\n"), "positive"),
        (format!("{MINIMAL}[broker]\nurl = \"http://h\"\n"), "mqtt://HOST:PORT"),
        (
            format!("{MINIMAL}[broker]\nusername = \"\"\npassword_file = \"p\"\n"),
            "broker: a password needs a username",
        ),
        (
            format!("{MINIMAL}[broker]\nurl = \"mqtt://a:b@h\"\npassword_file = \"p\"\n"),
            "broker: a password needs a username",
        ),
        (
            format!("{MINIMAL}[owner.broker]\npassword_env = \"P\"\n"),
            "owner.broker: a password needs a username",
        ),
        (format!("{MINIMAL}[broker]\nca_file = \"p\"\n"), "mqtts:// only"),
        (format!("{MINIMAL}[owner.broker]\nkeep_alive_s = 0\n"), "owner.broker: keep_alive_s"),
        (format!("{MINIMAL}[owner]\ntopic = \"a/#\"\n"), "without wildcards"),
        (format!("{MINIMAL}[rows]\nshape = [2]\n"), "label_column"),
        (format!("{CSV}label_column = \"y\"\n"), "needs a [rows] section"),
        (format!("{CSV}[pace]\nby = \"rounds\"\n"), "follow = false"),
        (MINIMAL.replace("[source]", "token = \"a\"\ntoken_env = \"B\"\n[source]"), "exclude each other"),
        (MINIMAL.replace("m1", "a/b"), "'/' is not allowed"),
        (MINIMAL.replace("\"household\"", "\"csv\""), "name the CSV file"),
    ] {
        assert!(error(&text).contains(expected), "{}", error(&text));
    }
}

#[test]
fn secrets_come_from_files_or_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    std::fs::write(&path, "s3cret\n").unwrap();
    let mut config = NodeConfig::parse(MINIMAL).unwrap();
    config.node.token_file = Some(path);
    assert_eq!(config.settings().unwrap().token.as_deref(), Some("s3cret"));
    config.node.token_file = Some(folder.path().join("missing"));
    assert!(config.settings().unwrap_err().to_string().contains("missing"));
    config.node.token_file = None;
    config.node.token_env = Some("PATH".into());
    assert_eq!(config.settings().unwrap().token, std::env::var("PATH").ok());
    config.node.token_env = Some("EVENHAND_NO_SUCH_VARIABLE".into());
    assert!(config.settings().unwrap_err().to_string().contains("EVENHAND_NO_SUCH_VARIABLE"));
}

#[test]
fn the_federations_broker_gets_the_nodes_name_unless_another_is_configured() {
    let user = |broker: &str| {
        let config = NodeConfig::parse(&format!("{MINIMAL}[broker]\n{broker}")).unwrap();
        config.link_options().unwrap().broker.user().map(str::to_owned)
    };
    assert_eq!(user("").as_deref(), Some("m1"));
    assert_eq!(user("username = \"u\"").as_deref(), Some("u"));
    assert_eq!(user("username = \"\""), None);
    assert_eq!(user("url = \"mqtt://a:b@h\"").as_deref(), Some("a"));
    assert_eq!(user("url = \"mqtt://a:b@h\"\nusername = \"u\"").as_deref(), Some("u"));
    let owner = NodeConfig::parse(&format!("{MINIMAL}[owner]\n")).unwrap().owner.unwrap();
    assert_eq!(owner.broker.resolve(None).unwrap().0.user(), None, "the broker at home knows no node");
}

proptest! {
    #[test]
    fn any_text_is_a_configuration_or_an_error_that_says_where(
        text in "\\PC{0,80}",
        damaged: prop::sample::Index,
        damage in "[0-9a-z\"=.\\[-]|\\PC",
    ) {
        let _ = NodeConfig::parse(&text);
        let whole = NodeConfig::parse(&NodeConfig::default_text()).unwrap();
        let keys: Vec<String> = toml::Table::try_from(&whole).unwrap().into_iter().flat_map(|(section, keys)| {
            let keys = keys.as_table().unwrap().keys().cloned().collect::<Vec<_>>();
            keys.into_iter().chain([section])
        }).collect();
        let mut characters: Vec<String> = toml::to_string(&whole).unwrap().chars().map(String::from).collect();
        let damaged = damaged.index(characters.len());
        characters[damaged] = damage;
        match NodeConfig::parse(&characters.concat()) {
            Ok(_) => {}
            Err(NodeConfigError::Syntax(TomlError { message, .. })) => {
                prop_assert!(message.starts_with("TOML parse error at line "), "{message}");
            }
            Err(error) => {
                let sentence = error.to_string();
                prop_assert_eq!(sentence.lines().count(), 1, "{}", sentence);
                prop_assert!(keys.iter().any(|key| sentence.contains(key)), "{sentence}");
            }
        }
    }
}

#[test]
fn nodes_without_a_seed_have_different_seeds() {
    let seed = |id: &str, seed: u64| {
        let mut config = NodeConfig::parse(&MINIMAL.replace("m1", id)).unwrap();
        config.node.seed = seed;
        config.with_derived_seed().settings().unwrap().seed
    };
    assert_eq!(seed("m1", 0), seed("m1", 0), "the same after every start");
    let seeds = std::collections::BTreeSet::from([seed("m1", 0), seed("m2", 0), seed("m1", 1), 0]);
    assert_eq!(seeds.len(), 4);
}

#[test]
fn side_series_are_documented_and_checked() {
    let printed = NodeConfig::default_text();
    let mut shown = String::new();
    for name in ["leave_out", "covariate"] {
        let block = printed.split("\n\n").find(|block| block.contains(&format!("## [[{name}]]"))).unwrap();
        let keep = |line: &&str| line.contains(" = ") || line.starts_with("## [");
        block.lines().filter(keep).for_each(|line| shown += &format!("{}\n", line.trim_start_matches("## ")));
    }
    let config = NodeConfig::parse(&format!("{MINIMAL}{shown}")).unwrap();
    let names: Vec<String> = config.side_series().map(|(side, _)| side.name).collect();
    assert_eq!(names, ["car", "temperature"]);
    assert_eq!(config.settings().unwrap().side_series.len(), 2);
    assert_eq!(NodeConfig::parse(&toml::to_string(&config).unwrap()).unwrap(), config);

    let one = |section: &str, name: &str, more: &str| {
        format!(
            "[[{section}]]\nname = \"{name}\"\n[{section}.source]\nkind = \"csv\"\npath = \"a.csv\"\n{more}"
        )
    };
    let covariates: String = ["a", "b", "c"].iter().map(|name| one("covariate", name, "")).collect();
    let loads: String = (0..9).map(|number| one("leave_out", &number.to_string(), "")).collect();
    for (text, expected) in [
        (covariates, "a model takes 2 at most"),
        (loads, "leave out 8 at most"),
        (one("leave_out", "Car", ""), "use 1 to 32 of a-z"),
        (one("leave_out", "source", ""), "is taken"),
        (one("leave_out", "a", "") + &one("covariate", "a", ""), "give every series a name of its own"),
        (one("covariate", "a", "label_column = \"b\"\n"), "has a label_column"),
        (one("covariate", "a", "[window]\nsamples = \"lags\"\n"), "set window.samples = \"day-ahead\""),
        (one("covariate", "a", "[pace]\nby = \"rounds\"\n"), "set its source.follow = false"),
        (one("covariate", "a", "").replace("a.csv", ""), "[[covariate]] \"a\": source.path is missing"),
        ("[[leave_out]]\nname = \"car\"\n".into(), "source"),
    ] {
        let said = error(&format!("{MINIMAL}{text}"));
        assert!(said.contains(expected), "{said}");
    }
}
