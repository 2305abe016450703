#![allow(clippy::unwrap_used)]

use super::*;

/// A process in which every episode has three steps, with one byte a frame; it ends after a number of requests.
const SCRIPT: &str = r#"
import struct, sys
requests = int(sys.argv[1])
out = sys.stdout.buffer
out.write(b"EVG1" + struct.pack("<5I", 1, 1, 1, 1, 3)); out.flush()
step = 0
while True:
    request = sys.stdin.buffer.read(1)
    requests -= 1
    if not request or requests < 0: sys.exit()
    step = 0 if request == b"\xff" else step + 1
    out.write(struct.pack("<fBB", step * 0.5, step == 3, 10 * step + min(request[0], 9))); out.flush()
"#;

fn python(script: &str, argument: &str) -> Vec<String> {
    ["python3", "-c", script, argument].map(str::to_owned).into()
}

#[test]
fn a_process_is_an_environment() {
    let mut process = GymnasiumProcess::start("steps", python(SCRIPT, "100")).unwrap();
    assert_eq!((process.frame_shape().state_len(), process.actions()), (1, 3));
    let mut frame = [0];
    process.reset(&mut frame).unwrap();
    assert_eq!(frame, [9]);
    let step = process.step(2, &mut frame).unwrap();
    assert_eq!((step, frame), (EnvironmentStep { reward: 0.5, end: EpisodeEnd::Continues }, [12]));
    process.step(0, &mut frame).unwrap();
    assert_eq!(process.step(0, &mut frame).unwrap().end, EpisodeEnd::Terminated);
    assert!(process.step(3, &mut frame).is_err());
    assert_eq!(process.notice(), None);
}

#[test]
fn a_dead_process_is_started_again_and_said_once() {
    let mut process = GymnasiumProcess::start("steps", python(SCRIPT, "2")).unwrap();
    let mut frame = [0];
    process.reset(&mut frame).unwrap();
    process.step(1, &mut frame).unwrap();
    assert_eq!(process.step(1, &mut frame).unwrap().end, EpisodeEnd::Truncated);
    let notice = process.notice().unwrap();
    assert!(notice.contains("started again"), "{notice}");
    process.reset(&mut frame).unwrap();
    process.step(1, &mut frame).unwrap();
    assert_eq!(process.step(1, &mut frame).unwrap().end, EpisodeEnd::Truncated);
    assert_eq!((process.notice(), process.restarts()), (None, 2));
}

#[test]
fn a_process_that_never_answers_is_given_up() {
    let mut process = GymnasiumProcess::start("steps", python(SCRIPT, "0")).unwrap();
    let error = process.reset(&mut [0]).unwrap_err().to_string();
    assert!(error.contains("ended"), "{error}");
}

#[test]
fn a_program_that_is_no_environment_is_refused_with_a_sentence() {
    let start = |command: &[&str]| {
        GymnasiumProcess::start("none", command.iter().map(|word| (*word).to_owned()).collect())
    };
    let error = |command: &[&str]| start(command).err().unwrap().to_string();
    assert!(error(&["/nowhere/at/all"]).contains("cannot start"));
    assert!(error(&["true"]).contains("ended"));
    assert!(error(&["echo", "hello, hello"]).contains("something else"));
    assert!(error(&[]).contains("cannot start"));
    let header = r#"import sys; sys.stdout.buffer.write(b"EVG1" + bytes(20))"#;
    assert!(error(&["python3", "-c", header]).contains("frames without a byte"));
}
