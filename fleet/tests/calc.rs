//! The calculators as programs: output and exit codes.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::process::{Command, Output, Stdio};

use evenhand_models::shipped::HFT_MLP;

fn calc(calculator: &str, question: &str) -> Output {
    ask(&[calculator], question)
}

fn ask(arguments: &[&str], question: &str) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_evenhand-fleet"))
        .arg("calc")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that refuses its arguments does not read the question.
    let _ = program.stdin.take().unwrap().write_all(question.as_bytes());
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

/// Asks for a gradient of a file with these bytes.
fn gradient(model: &[u8], loss: &str, question: &str) -> Output {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(model).unwrap();
    ask(&["gradient", "--model", file.path().to_str().unwrap(), "--loss", loss], question)
}

fn order_book(targets: &str) -> String {
    let inputs = vec!["0.5"; 144].join(",");
    format!(r#"{{"inputs":[{inputs}],"shape":[1,144],"targets":[{targets}]}}"#)
}

#[test]
fn a_gradient_is_one_json_object_with_a_part_for_every_tensor() {
    let Output { status, stdout, stderr } = gradient(HFT_MLP, "nll", &order_book("2"));
    assert_eq!(status.code(), Some(0), "{}", String::from_utf8_lossy(&stderr));
    assert!(stderr.is_empty());
    let answer: serde_json::Value = serde_json::from_slice(&stdout).unwrap();
    assert_eq!(answer["parameters"], 27_011);
    let tensors = answer["tensors"].as_array().unwrap();
    let values: usize = tensors.iter().map(|tensor| tensor["gradient"].as_array().unwrap().len()).sum();
    assert_eq!(values, 27_011);
    assert_eq!(tensors[0]["shape"], serde_json::json!([128, 144]));
}

/// Models and questions that cannot be worked with: one line that says what and where, and exit code 65.
#[test]
fn what_cannot_be_differentiated_is_named_with_exit_code_65() {
    let replaced = |from: &[u8], to: &[u8]| {
        let place = HFT_MLP.windows(from.len()).position(|window| window == from).unwrap();
        [&HFT_MLP[..place], to, &HFT_MLP[place + from.len()..]].concat()
    };
    let unsupported = replaced(b"Relu", b"Selu");
    let attribute = replaced(b"transB", b"transQ");
    let cyclic = replaced(b"\x0a\x01x", b"\x0a\x01y");
    let good = order_book("2");
    for (model, question, parts) in [
        (
            &unsupported[..],
            &good[..],
            &["node `relu1`", "operator Selu is not supported", "supported are Add, "][..],
        ),
        (&attribute, &good, &["node `fc1` (Gemm)", "attribute `transQ` is not supported"]),
        (&cyclic, &good, &["`fc1`", "the graph is cyclic"]),
        (&HFT_MLP[..5_000], &good, &["not an ONNX file"]),
        (b"", &good, &["operator set 0 is not supported; supported are 11 to 21"]),
        (HFT_MLP, "{", &["stdin"]),
        (HFT_MLP, "{}", &["missing field `inputs`"]),
        (HFT_MLP, r#"{"inputs":[1,"x"],"shape":[1],"targets":[]}"#, &["inputs[1]"]),
        (
            HFT_MLP,
            r#"{"inputs":[1],"shape":[1,1],"targets":[0]}"#,
            &["do not fit the model's input [?, 144]"],
        ),
        (HFT_MLP, &order_book("3"), &["column 3 of 3"]),
        (HFT_MLP, &order_book("0.5"), &["target 0.5 is not a class"]),
    ] {
        let Output { status, stdout, stderr } = gradient(model, "nll", question);
        let stderr = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(65), "{parts:?}: {stderr}");
        assert!(stdout.is_empty());
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(parts.iter().all(|part| stderr.contains(part)), "{parts:?}: {stderr}");
    }
    let Output { status, stderr, .. } = ask(&["gradient", "--model", "/no/such/file"], &good);
    assert_eq!(status.code(), Some(65));
    assert!(String::from_utf8(stderr).unwrap().contains("cannot read /no/such/file"));
}

#[test]
fn an_unknown_loss_is_a_usage_error() {
    let Output { status, stderr, .. } = gradient(HFT_MLP, "l1", &order_book("2"));
    let stderr = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(64), "{stderr}");
    assert!(stderr.contains("use mse, cross-entropy, nll, huber or pinball"), "{stderr}");
}
