#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use evenhand_protocol::tick::Tick;
use proptest::prelude::*;

use super::*;
use crate::config::NodeConfig;
use crate::core::{NodeEffect, NodeInput};
use crate::reading::{InputBatch, Reading};
use crate::shell::disk::Folder;

fn settings() -> NodeSettings {
    let text = "[node]\nid = \"m1\"\nfederation = \"town\"\n[source]\nkind = \"household\"\n";
    NodeConfig::parse(text).unwrap().settings().unwrap()
}

/// Files in memory, on a disk that can be full or fail in the middle of a write.
#[derive(Debug, Default)]
struct Fragile(Mutex<Files>);

#[derive(Debug, Default)]
struct Files {
    files: BTreeMap<String, Vec<u8>>,
    writes: usize,
    /// From this write on nothing reaches the disk but `torn` bytes of that very write.
    crash_at: Option<usize>,
    torn: usize,
    full: bool,
}

impl Files {
    /// Bytes of a write of `length` bytes that arrive, and its result.
    fn fate(&mut self, length: usize) -> (usize, io::Result<()>) {
        self.writes += 1;
        let gone = |arrives| (arrives, Err(io::Error::other("the program was killed")));
        match self.crash_at {
            Some(crash_at) if self.writes > crash_at => gone(0),
            Some(crash_at) if self.writes == crash_at => gone(self.torn.min(length)),
            _ if self.full => (length / 2, Err(ErrorKind::StorageFull.into())),
            _ => (length, Ok(())),
        }
    }
}

impl Fragile {
    fn files(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap()
    }

    fn crashed(&self) -> bool {
        let files = self.files();
        files.crash_at.is_some_and(|crash_at| files.writes >= crash_at)
    }
}

impl Disk for Fragile {
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.files().files.get(name).cloned())
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut files = self.files();
        let (arrives, said) = files.fate(bytes.len());
        if arrives == bytes.len() {
            files.files.insert(name.into(), bytes.to_vec());
        }
        said
    }

    fn append(&self, name: &str, bytes: &[u8], _sync: bool) -> io::Result<()> {
        let mut files = self.files();
        let (arrives, said) = files.fate(bytes.len());
        files.files.entry(name.into()).or_default().extend(&bytes[..arrives]);
        said
    }

    fn truncate(&self, name: &str, length: u64) -> io::Result<()> {
        let mut files = self.files();
        if files.full {
            // There is always room for less.
            files.files.entry(name.into()).or_default().truncate(length as usize);
            return Ok(());
        }
        let (arrives, said) = files.fate(1);
        if arrives == 1 {
            files.files.entry(name.into()).or_default().truncate(length as usize);
        }
        said
    }

    fn set_aside(&self, name: &str) -> io::Result<()> {
        let mut files = self.files();
        files.files.remove(name);
        Ok(())
    }
}

async fn open(disk: &Arc<Fragile>) -> (StateStore, Node) {
    let disk: Arc<dyn Disk> = Arc::clone(disk) as _;
    StateStore::open(Some(disk), settings(), 0).await.unwrap()
}

async fn open_folder(folder: &Path) -> (StateStore, Node) {
    StateStore::open(Some(Arc::new(Folder(folder.into()))), settings(), 0).await.unwrap()
}

/// Takes in the reading of one step, as the event loop does.
async fn take(state: &mut StateStore, node: &mut Node, step: i64) {
    let batch = InputBatch::Readings(vec![Reading { time_ms: step * 900_000, value: step as f64 }]);
    for effect in node.step(Tick::default(), NodeInput::Data(batch)) {
        if let NodeEffect::Journal(entry) = effect
            && state.append(&entry).await
        {
            state.save(node).await;
        }
    }
}

/// Reads on from where the node is, as a file can be, and saves now and then, until the end or a crash.
async fn run(disk: &Arc<Fragile>, steps: i64) -> Option<Node> {
    let opened = StateStore::open(Some(Arc::clone(disk) as _), settings(), 0).await;
    let (mut state, mut node) = opened.ok()?;
    let first = node.window().newest_ms().map_or(1, |newest_ms| newest_ms / 900_000 + 1);
    for step in first..=steps {
        if disk.crashed() {
            break;
        }
        take(&mut state, &mut node, step).await;
        if step % 4 == 0 {
            state.save(&node).await;
        }
    }
    Some(node)
}

#[tokio::test]
async fn a_crash_at_any_write_loses_no_reading_and_counts_none_twice() {
    const STEPS: i64 = 13;
    let expected = run(&Arc::default(), STEPS).await.unwrap();
    assert_eq!(expected.window().counts().accepted, STEPS as u64);
    let mut crashes = 0;
    for torn in [0, 1, 5, 9, 20, usize::MAX] {
        for crash_at in 1.. {
            let disk = Arc::new(Fragile::default());
            (disk.files().crash_at, disk.files().torn) = (Some(crash_at), torn);
            let taken = run(&disk, STEPS).await.map_or(0, |node| node.window().counts().accepted);
            let crashed = disk.crashed();
            disk.files().crash_at = None;
            let known = open(&disk).await.1.window().counts().accepted;
            assert!(known <= taken && taken <= known + 1, "all but the one in flight: {known} of {taken}");
            let again = run(&disk, STEPS).await.unwrap();
            assert_eq!(again.window(), expected.window(), "write {crash_at}, {torn} bytes of it arrived");
            let kept = open(&disk).await.1;
            assert_eq!(kept.window(), expected.window(), "write {crash_at}, {torn} bytes: behind it too");
            if !crashed {
                break;
            }
            crashes += 1;
        }
    }
    assert!(crashes > 6 * STEPS, "{crashes}");
}

#[tokio::test]
async fn a_reading_that_was_noted_is_there_after_a_crash() {
    let disk = Arc::new(Fragile::default());
    let mut sessions = Vec::new();
    for start in 0..10 {
        let (mut state, mut node) = open(&disk).await;
        sessions.push(node.session());
        assert_eq!(node.window().counts().accepted, start * 7);
        for step in 1..=7 {
            take(&mut state, &mut node, start as i64 * 7 + step).await;
            if step == start as i64 {
                state.save(&node).await;
            }
        }
    }
    assert!(sessions.is_sorted_by(|a, b| a < b), "{sessions:?}");
}

#[tokio::test]
async fn a_full_disk_is_made_good_for() {
    let disk = Arc::new(Fragile::default());
    let (mut state, mut node) = open(&disk).await;
    take(&mut state, &mut node, 1).await;
    disk.files().full = true;
    for step in 2..=20 {
        take(&mut state, &mut node, step).await;
        state.save(&node).await;
    }
    let (_, restarted) = open(&disk).await;
    assert_eq!(restarted.window().counts().accepted, 1, "what was written before, and no half of anything");
    disk.files().full = false;
    take(&mut state, &mut node, 21).await;
    take(&mut state, &mut node, 22).await;
    let (_, restarted) = open(&disk).await;
    assert_eq!(restarted.window(), node.window(), "nothing is missing");
}

#[tokio::test]
async fn a_node_starts_on_a_full_disk() {
    let disk = Arc::new(Fragile::default());
    disk.files().full = true;
    let (mut state, mut node) = open(&disk).await;
    take(&mut state, &mut node, 1).await;
    disk.files().full = false;
    take(&mut state, &mut node, 2).await;
    assert_eq!(open(&disk).await.1.window().counts().accepted, 2);
}

#[tokio::test]
async fn half_an_entry_is_cut_off_and_a_damaged_state_put_aside() {
    let folder = tempfile::tempdir().unwrap();
    let (mut state, mut node) = open_folder(folder.path()).await;
    for step in 1..=5 {
        take(&mut state, &mut node, step).await;
    }
    let journal = folder.path().join(JOURNAL);
    let bytes = fs::read(&journal).unwrap();
    fs::write(&journal, &bytes[..bytes.len() - 3]).unwrap();
    let (mut state, mut node) = open_folder(folder.path()).await;
    assert_eq!(node.window().counts().accepted, 4);
    take(&mut state, &mut node, 6).await;
    state.save(&node).await;
    take(&mut state, &mut node, 7).await;
    let path = folder.path().join(STATE);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    let (_, node) = open_folder(folder.path()).await;
    assert_eq!(node.window().counts().accepted, 1, "what the journal holds");
    assert!(folder.path().join("state.unreadable").exists());
}

#[tokio::test]
async fn a_journal_of_another_format_is_put_aside_and_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join(JOURNAL);
    fs::write(&journal, [7; 100]).unwrap();
    let (mut state, mut node) = open_folder(folder.path()).await;
    take(&mut state, &mut node, 1).await;
    assert_eq!(fs::read(folder.path().join("journal.unreadable")).unwrap(), [7; 100]);
    assert_eq!(open_folder(folder.path()).await.1.window().counts().accepted, 1);
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_is_said_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = StateStore::open(Some(Arc::new(Folder(file))), settings(), 0).await.unwrap_err();
    assert!(matches!(error, NodeError::State { .. }), "{error}");
}

proptest! {
    #[test]
    fn any_bytes_are_a_state_or_not(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let sealed = [FORM, &Digest::of(&bytes).0[..], &bytes].concat();
        let _ = (decode(&bytes), decode(&[FORM, &bytes[..]].concat()), decode(&sealed));
    }
}
