//! Mistakes of an owner, each with the sentence that the real program says. docs/results/mistakes.md lists them.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use evenhand_link::testing::free_port;
use evenhand_node::shell::StatusSnapshot;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use super::*;
use crate::support::coordinator::ScriptedCoordinator;

/// The lines that `check-config` says, and its exit code.
fn check(folder: &Path, text: &str) -> (i32, String) {
    let path = configure(folder, text);
    let output = Command::new(PROGRAM).args(["check-config", "-c"]).arg(path).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// Runs a node on `broker` until its log has `sentence`.
fn says(folder: &Path, broker: &str, sentence: &str) {
    let text = format!(
        "[node]\nid = \"m1\"\nfederation = \"town\"\n[broker]\n{broker}\n[source]\nkind = \"household\"\n"
    );
    let node = NodeProcess::start(PROGRAM, &configure(folder, &text), &[]);
    node.wait_for_log(sentence, 1);
    end(node);
}

fn end(node: NodeProcess) -> Vec<String> {
    node.terminate();
    node.wait().1
}

#[test]
fn a_broker_that_is_down_is_named_with_its_address() {
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    says(
        folder.path(),
        &format!("url = \"mqtt://127.0.0.1:{port}\""),
        &format!("127.0.0.1:{port}: Connection refused"),
    );
}

/// An authority and what it signs, in files of `folder`.
struct Authority(Issuer<'static, KeyPair>);

impl Authority {
    fn new(folder: &Path, file: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, file);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        fs::write(folder.join(file), params.self_signed(&key).unwrap().pem()).unwrap();
        Self(Issuer::new(params, key))
    }

    fn sign(&self, folder: &Path, name: &str, host: &str) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        fs::write(folder.join(format!("{name}.pem")), params.signed_by(&key, &self.0).unwrap().pem())
            .unwrap();
        fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }
}

#[test]
fn permanent_faults_of_tls_are_one_sentence_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), "ca.pem");
    authority.sign(folder.path(), "server", "127.0.0.1");
    authority.sign(folder.path(), "m1", "m1");
    let stranger = tempfile::tempdir().unwrap();
    Authority::new(stranger.path(), "ca.pem").sign(stranger.path(), "m1", "m1");
    let lines = "allow_anonymous true\nrequire_certificate true\n\
                 cafile FOLDER/ca.pem\ncertfile FOLDER/server.pem\nkeyfile FOLDER/server.key\n";
    let place = folder.path().to_path_buf();
    let broker = Mosquitto::start_in(folder, lines, true);
    let node = tempfile::tempdir().unwrap();
    let url = broker.url();
    let ca = |folder: &Path| format!("ca_file = {:?}", folder.join("ca.pem"));
    let pair = |folder: &Path| {
        format!("certificate_file = {:?}\nkey_file = {:?}", folder.join("m1.pem"), folder.join("m1.key"))
    };
    let with = |url: &str, more: &[String]| format!("url = \"{url}\"\n{}", more.join("\n"));
    says(
        node.path(),
        &with(&url, &[ca(stranger.path()), pair(&place)]),
        "signed the broker's certificate in broker.ca_file",
    );
    says(node.path(), &with(&url, &[ca(&place)]), "set broker.certificate_file and broker.key_file");
    says(
        node.path(),
        &with(&url, &[ca(&place), pair(stranger.path())]),
        "the broker refuses this program's certificate",
    );
    says(
        node.path(),
        &with(&url.replace("127.0.0.1", "localhost"), &[ca(&place), pair(&place)]),
        "write a name in broker.url",
    );
    says(
        node.path(),
        &with(&url.replace("mqtts", "mqtt"), &[]),
        "if it expects TLS, write mqtts:// in broker.url",
    );
}

#[tokio::test]
async fn two_nodes_with_one_name_say_so() {
    let (broker, first, second) =
        (Mosquitto::start(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let nodes = [start(&broker, first.path(), "", ""), start(&broker, second.path(), "", "")];
    nodes[0].wait_for_log("another program is connected as \"evenhand-town-m1\"", 1);
    for node in nodes {
        let log = end(node);
        let said = log.iter().filter(|line| line.contains("another program is connected")).count();
        assert!(said <= 6, "not every second: {log:?}");
    }
}

#[test]
fn a_certificate_for_another_name_is_a_concern() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), "ca.pem");
    authority.sign(folder.path(), "meter-7", "meter-7");
    let file = |name: &str| folder.path().join(name);
    let text = |id: &str| {
        format!(
            "[node]\nid = \"{id}\"\nfederation = \"town\"\n[broker]\nurl = \"mqtts://h\"\nca_file = {:?}\n\
             certificate_file = {:?}\nkey_file = {:?}\n[source]\nkind = \"household\"\n",
            file("ca.pem"),
            file("meter-7.pem"),
            file("meter-7.key")
        )
    };
    let (code, said) = check(folder.path(), &text("m1"));
    assert!(code == 0 && said.contains("the certificate is for \"meter-7\", node.id is \"m1\""), "{said}");
    let (_, said) = check(folder.path(), &text("meter-7"));
    authority.sign(folder.path(), "other", "other");
    let (code, mismatch) = check(folder.path(), &text("m1").replace("meter-7.key", "other.key"));
    assert!(code == 78 && mismatch.contains("keys may not be consistent"), "{mismatch}");
    assert!(!said.contains("certificate is for"), "{said}");
}

#[test]
fn what_check_config_finds_in_names_sections_and_packets() {
    let folder = tempfile::tempdir().unwrap();
    let node = "[node]\nid = \"m1\"\nfederation = \"town\"\n";
    let source = "[source]\nkind = \"household\"\n";
    for (text, code, sentence) in [
        (format!("{node}{source}{source}"), 78, "the file has the section [source] twice; keep one"),
        (
            format!("{}{source}", node.replace("m1", "evenhand-coordinator")),
            78,
            "is the coordinator's name on brokers; choose another",
        ),
        (format!("{node}[broker]\npayload_bytes_max = 400000000\n{source}"), 78, "256 MiB"),
        (
            format!("{node}[broker]\npayload_bytes_max = 100000000\n{source}"),
            0,
            "drop connections with packets of more than 1 MiB",
        ),
    ] {
        let (found, said) = check(folder.path(), &text);
        assert_eq!((found, said.contains(sentence)), (code, true), "{sentence}: {said}");
    }
}

/// The log line about the first reading that is kept out of a csv file with these lines.
fn kept_out(lines: &str, settings: &str, sentence: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.csv");
    fs::write(&file, lines).unwrap();
    let text = format!(
        "[node]\nid = \"m1\"\nfederation = \"town\"\n[broker]\nurl = \"mqtt://127.0.0.1:{}\"\n\
         [source]\nkind = \"csv\"\npath = {file:?}\n{settings}\n",
        free_port()
    );
    let node = NodeProcess::start(PROGRAM, &configure(folder.path(), &text), &[]);
    node.wait_for_log(sentence, 1);
    end(node);
}

#[test]
fn readings_that_are_kept_out_are_said_with_the_setting_to_change() {
    let header = "time,value\n";
    kept_out("time;value\n2024-01-01T00:00:00Z;1,5\n", "delimiter = \";\"", "decimal_comma");
    kept_out(&format!("{header}01.02.2024 00:15,1.5\n"), "", "time_format");
    kept_out(&format!("{header}1704067200,1.5\n"), "", "time_format");
    kept_out(&format!("{header}1704067200,1.5\n"), "time_format = \"unix-ms\"", "1970");
    kept_out(&format!("{header}2036-01-01T00:00:00Z,1.5\n"), "", "2036");
}

/// The owner's page and what it shows.
#[tokio::test]
async fn the_owners_page_shows_the_forecast_and_is_not_read_under_foreign_names() {
    let (broker, folder, port) = (Mosquitto::start(), tempfile::tempdir().unwrap(), free_port());
    let mut coordinator = ScriptedCoordinator::connect(&broker);
    let node = start(&broker, folder.path(), "", &format!("[page]\nlisten = \"127.0.0.1:{port}\"\n"));
    coordinator.welcome().await;
    coordinator.train(1, &coordinator.model.initial_weights(), true).await;
    coordinator.update().await;
    let ask = |path: &str, host: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    for (path, expected) in [("/", "<!doctype html>"), ("/page.css", "--accent"), ("/page.js", "page.json")] {
        let answer = ask(path, "127.0.0.1");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(expected), "{path}: {answer}");
    }
    assert!(ask("/page.json", "evil.example").starts_with("HTTP/1.1 421"));
    let answer = ask("/page.json", "localhost");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("application/json") && head.contains("no-store"), "{head}");
    let page: serde_json::Value = serde_json::from_str(body).unwrap();
    let status: StatusSnapshot = serde_json::from_value(page["status"].clone()).unwrap();
    assert_eq!((status.node.as_str(), &page["unit"]), ("m1", &"kW".into()));
    assert!(page["outcomes"].is_array() && page["ends_ms"].is_array(), "{page}");
    end(node);
}
