#![allow(clippy::unwrap_used)]
use std::collections::BTreeMap;

use super::*;

#[test]
fn the_printed_defaults_are_the_defaults() {
    let text = default_toml();
    assert_eq!(CoordinatorConfig::parse(&text).unwrap(), CoordinatorConfig::default());
    assert_eq!(CoordinatorConfig::parse(&config::uncommented(&text)).unwrap(), CoordinatorConfig::default());
    CoordinatorConfig::default().check().unwrap();
}

/// The keys or sections that the parser expects in the place of an unknown one.
fn expected(text: &str) -> Vec<String> {
    let error = CoordinatorConfig::parse(text).unwrap_err().to_string();
    let (_, names) = error.lines().find_map(|line| line.split_once("expected")).unwrap();
    names.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn every_key_is_printed_with_an_explanation() {
    let text = default_toml();
    let mut section = "";
    let mut explained = false;
    let mut printed = BTreeMap::new();
    for line in text.lines() {
        section = line.strip_prefix('[').map_or(section, |line| line.trim_end_matches(']'));
        match line.trim_start_matches('#').trim_start().split_once(" = ") {
            Some((key, _)) if line.starts_with('#') => {
                printed.insert(format!("{section}.{key}"), std::mem::take(&mut explained));
            }
            _ => explained = line.starts_with("## "),
        }
    }
    let sections = expected("unknown = 1");
    assert_eq!(sections.len(), 13, "{sections:?}");
    for section in sections {
        let keys = expected(&format!("[{section}]\nunknown = 1"));
        assert!(!keys.is_empty(), "{section}");
        for key in keys {
            let explained = printed.get(&format!("{section}.{key}"));
            assert_eq!(explained, Some(&true), "{section}.{key}: printed, and explained");
        }
    }
}

#[test]
fn nothing_of_the_laboratory_is_printed() {
    let text = default_toml().to_lowercase();
    for word in ["zeta", "ζ", "baseline", "as-published", "recall", "fedavg", "fed-avg"] {
        assert!(!text.contains(word), "{word}");
    }
}

#[test]
fn unknown_keys_and_wrong_values_are_named() {
    let error = |text: &str| match CoordinatorConfig::parse(text) {
        Ok(config) => config.check().unwrap_err().to_string(),
        Err(error) => error.to_string(),
    };
    assert!(error("[federation]\nround = 3").ends_with("in [federation]; did you mean `rounds`?"));
    assert!(error("[trainnig]\nsamples_max = 3").ends_with("did you mean `training`?"));
    assert!(error("[log]\nlevel = \"loud\"").contains("unknown variant `loud`"));
    for (model, loss, fits) in [
        ("mnist-cnn", "mse", "nll"),
        ("electricity-rnn", "pinball", "mse"),
        ("load-quantiles", "huber", "pinball"),
        ("mnist-cnn", "cross-entropy", "nll"),
    ] {
        let said = error(&format!("[model]\nonnx = \"{model}\"\n[training]\nloss = \"{loss}\""));
        assert!(said.ends_with(&format!("set training.loss = \"{fits}\"")), "{model}, {loss}: {said}");
    }
    for (bytes, remedy) in [(400_000_000_usize, "256 MiB"), (1000, "at least 1024")] {
        let said = error(&format!("[broker]\npayload_bytes_max = {bytes}"));
        assert!(said.starts_with("broker.payload_bytes_max") && said.contains(remedy), "{said}");
    }
    assert!(error("[exploiting]\nk = 99").starts_with("k = 99 exceeds the 12 nodes"));
    assert!(error("[contribution]\nutility = \"accuracy\"").contains("unknown variant `accuracy`"));
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
fn a_regression_may_have_either_loss_and_a_model_without_metadata_any() {
    for loss in ["mse", "huber"] {
        let text = format!("[model]\nonnx = \"electricity-rnn\"\n[training]\nloss = \"{loss}\"");
        CoordinatorConfig::parse(&text).unwrap().check().unwrap();
    }
}

#[test]
fn packets_that_most_brokers_refuse_are_a_concern() {
    let concerns = |bytes: usize| {
        CoordinatorConfig::parse(&format!("[broker]\npayload_bytes_max = {bytes}")).unwrap().concerns()
    };
    assert_eq!(concerns(1 << 20), Vec::<String>::new());
    assert!(concerns(100_000_000)[0].contains("payload_bytes_max = 100000000"));
}
