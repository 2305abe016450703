//! The real program in a process of its own.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};

/// A node process, killed at the latest when this is dropped.
pub(crate) struct NodeProcess {
    child: Child,
    log: Arc<Log>,
    reader: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Log {
    lines: Mutex<(Vec<String>, bool)>,
    changed: Condvar,
}

impl NodeProcess {
    /// Runs `program run` with this configuration and these variables.
    pub(crate) fn start(program: &str, config: &Path, environment: &[(&str, &str)]) -> Self {
        let mut child = Command::new(program)
            .args(["run", "--config"])
            .arg(config)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Arc::new(Log::default());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let listening = Arc::clone(&log);
        let reader = thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                listening.lines.lock().unwrap().0.push(line);
                listening.changed.notify_all();
            }
            listening.lines.lock().unwrap().1 = true;
            listening.changed.notify_all();
        });
        Self { child, log, reader: Some(reader) }
    }

    /// Waits until `count` lines of the log contain `text`; panics if the node ends before.
    pub(crate) fn wait_for_log(&self, text: &str, count: usize) {
        let mut lines = self.log.lines.lock().unwrap();
        while lines.0.iter().filter(|line| line.contains(text)).count() < count {
            assert!(!lines.1, "the node ended without {text:?}:\n{}", lines.0.join("\n"));
            lines = self.log.changed.wait(lines).unwrap();
        }
    }

    /// Number of log lines so far that contain `text`.
    pub(crate) fn said(&self, text: &str) -> usize {
        self.log.lines.lock().unwrap().0.iter().filter(|line| line.contains(text)).count()
    }

    /// Asks the node to end.
    pub(crate) fn terminate(&self) {
        let asked = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(asked.success());
    }

    /// Waits for the end; how it ended and what it logged.
    pub(crate) fn wait(mut self) -> (ExitStatus, Vec<String>) {
        let status = self.child.wait().unwrap();
        self.reader.take().unwrap().join().unwrap();
        let lines = std::mem::take(&mut self.log.lines.lock().unwrap().0);
        (status, lines)
    }

    /// Ends the node as `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Memory the node has at the moment, in KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// Threads the node has at the moment.
    pub(crate) fn threads(&self) -> u64 {
        self.status("Threads:")
    }

    fn status(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches("kB").trim().parse().unwrap()
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        let _ended = self.child.kill().and_then(|()| self.child.wait());
    }
}

/// Writes a configuration into `folder`.
pub(crate) fn configure(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("node.toml");
    std::fs::write(&path, text).unwrap();
    path
}
