//! The commands that do not run a node.

use std::fs::File;
use std::process::{Command, Output, Stdio};

use super::*;

fn run(arguments: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = Command::new(PROGRAM).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

#[test]
fn the_printed_configuration_can_be_checked_and_its_faults_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let (code, printed, _) = run(&["print-config"]);
    assert_eq!(code, 0);
    let check = |text: &str| {
        let path = configure(folder.path(), text);
        run(&["check-config", "--config", path.to_str().unwrap()])
    };
    let (code, said, _) = check(&printed);
    assert_eq!((code, said.contains("configuration OK")), (0, true), "{said}");
    for (fault, sentence) in [
        (printed.replace("# lags = 24", "lag = 24"), "did you mean `lags`?"),
        (printed.replace("# token_file = \"/etc/evenhand/token\"", "token_file = \"/no/such\""), "/no/such"),
        (
            printed
                .replace("# url = \"mqtt:", "url = \"mqtts:")
                .replace("# ca_file = \"/etc", "ca_file = \"/no"),
            "/no/",
        ),
        (
            format!("{printed}\n[owner.broker]\nusername = \"a\"\npassword_env = \"EVENHAND_NONE\"\n"),
            "EVENHAND_NONE",
        ),
    ] {
        let (code, _, said) = check(&fault);
        assert_eq!((code, said.contains(sentence)), (78, true), "{sentence}: {said}");
    }
}

#[test]
fn a_wrong_command_line_is_answered_with_the_way_to_help() {
    for arguments in [&[][..], &["walk"], &["run", "--fast"], &["run", "check-config"], &["run", "--config"]]
    {
        let (code, _, said) = run(arguments);
        assert_eq!((code, said.contains("evenhand-node help")), (64, true), "{arguments:?}: {said}");
    }
    let (code, said, _) = run(&["version"]);
    assert!(code == 0 && said.contains(env!("CARGO_PKG_VERSION")) && said.contains("modbus"), "{said}");
    let (code, said, _) = run(&["--help"]);
    assert!(
        code == 0
            && ["run", "check-config", "print-config", "status", "version"]
                .iter()
                .all(|name| said.contains(name))
    );
}

#[test]
fn a_status_that_is_not_there_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[node]\nid = \"m1\"\nfederation = \"town\"\n[source]\nkind = \"household\"\n";
    let config = configure(folder.path(), text);
    let (code, _, said) = run(&["status", "-c", config.to_str().unwrap()]);
    assert_eq!((code, said.contains("state_folder")), (78, true), "{said}");
    let config = configure(folder.path(), &text.replace("[source]", "state_folder = \"/no/such\"\n[source]"));
    let (code, _, said) = run(&["status", "-c", config.to_str().unwrap()]);
    assert_eq!((code, said.contains("is the node running?")), (65, true), "{said}");
}

#[test]
fn a_reader_that_is_gone_is_no_failure_and_a_full_disk_is_one() {
    let (reader, unread) = std::io::pipe().unwrap();
    drop(reader);
    let full = File::options().write(true).open("/dev/full").unwrap();
    for (stdout, expected) in [
        (Stdio::from(unread), (0, String::new())),
        (
            full.into(),
            (70, "evenhand-node: cannot write to stdout: No space left on device (os error 28)\n".into()),
        ),
    ] {
        let ended = Command::new(PROGRAM).arg("print-config").stdout(stdout).output().unwrap();
        assert_eq!((ended.status.code().unwrap(), String::from_utf8(ended.stderr).unwrap()), expected);
    }
}
