//! The calculators as programs: what comes out where, and with which exit code.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn calc(calculator: &str, question: &str) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_evenhand-fleet"))
        .args(["calc", calculator])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    program.stdin.take().unwrap().write_all(question.as_bytes()).unwrap();
    program.wait_with_output().unwrap()
}

#[test]
fn an_answer_is_one_json_object_on_stdout() {
    for (calculator, question, field) in [
        ("shapley", r#"{"updates":[[1,2],[2,1]],"weights":[0.5,0.5],"estimator":"exact"}"#, "contributions"),
        ("stop", r#"{"samples":[[1],[2],[4]],"mu0":[0]}"#, "p_value"),
        ("incentive", r#"{"standings":[1,2],"k":1,"temperature":1}"#, "sampling_probability"),
    ] {
        let Output { status, stdout, stderr } = calc(calculator, question);
        assert_eq!(status.code(), Some(0), "{}", String::from_utf8_lossy(&stderr));
        let answer: serde_json::Value = serde_json::from_slice(&stdout).unwrap();
        assert!(answer.get(field).is_some(), "{answer}");
        assert!(stderr.is_empty());
    }
}

#[test]
fn bad_input_is_one_error_that_names_the_field_and_exit_code_65() {
    for (calculator, question, field) in [
        ("shapley", r#"{"updates":[[1,2],[2]],"weights":[0.5,0.5]}"#, "updates[1]"),
        ("shapley", r#"{"updates":[[1,NaN]],"weights":[1]}"#, "updates[0][1]"),
        ("shapley", r#"{"updates":[[1]],"weights":[-1]}"#, "weights[0]"),
        ("stop", r#"{"contributions":[[1,2],[2]]}"#, "contributions[1]"),
        ("incentive", r#"{"standings":[1,2],"k":0,"temperature":1}"#, "k = 0"),
    ] {
        let Output { status, stdout, stderr } = calc(calculator, question);
        let stderr = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(65), "{stderr}");
        assert!(stdout.is_empty());
        assert!(stderr.contains(field) && stderr.lines().count() == 1, "{stderr}");
    }
}
