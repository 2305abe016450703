#![allow(clippy::unwrap_used)]

use std::os::unix::fs::{FileTypeExt, symlink};
use std::thread;

use super::*;

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn files_and_folders_are_created_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/state");
    AtomicFile::new(&path).write(b"old").unwrap_err();
    replace(&path, b"old").unwrap();
    replace(&path, b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    AtomicFile::new(&path).without_sync().write(b"newest").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"newest");
    assert_eq!(names(path.parent().unwrap()), ["state"]);
}

#[test]
fn a_replacement_that_fails_or_is_dropped_leaves_the_old_content() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    replace(&path, b"old").unwrap();
    drop(AtomicFile::new(&path).prepare().unwrap());
    let pending = AtomicFile::new(&path).prepare().unwrap();
    fs::rename(&path, folder.path().join("aside")).unwrap();
    fs::create_dir(&path).unwrap();
    pending.commit(b"new").unwrap_err();
    assert_eq!(names(folder.path()), ["aside", "state"]);
    assert_eq!(fs::read(folder.path().join("aside")).unwrap(), b"old");
}

#[test]
fn files_are_readable_as_the_user_wants_or_by_the_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let [usual, replaced, private] = ["usual", "replaced", "private"].map(|name| folder.path().join(name));
    fs::write(&usual, "").unwrap();
    replace(&replaced, b"").unwrap();
    assert_eq!(mode(&replaced), mode(&usual));
    AtomicFile::new(&private).owner_only().write(b"").unwrap();
    assert_eq!(mode(&private), 0o600);
    let deep = folder.path().join("state/models/graph");
    replace_private(&deep, b"").unwrap();
    assert_eq!((mode(&deep), mode(deep.parent().unwrap())), (0o600, 0o700));
    assert_eq!(mode(&folder.path().join("state")), 0o700);
    // A looser file is replaced by a private one.
    fs::set_permissions(&deep, Permissions::from_mode(0o644)).unwrap();
    replace_private(&deep, b"new").unwrap();
    assert_eq!(mode(&deep), 0o600);
}

#[test]
fn devices_are_written_to_and_never_replaced() {
    AtomicFile::new("/dev/null").write(b"page").unwrap();
    assert!(fs::symlink_metadata("/dev/null").unwrap().file_type().is_char_device());
}

#[test]
fn links_are_followed_and_stay_links() {
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("file"), folder.path().join("link"));
    fs::write(&file, "old").unwrap();
    symlink(&file, &link).unwrap();
    AtomicFile::new(&link).write(b"new").unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"new");
    assert!(link.is_symlink());
}

#[test]
fn paths_that_cannot_be_written_are_refused_before_the_content_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let (dangling, long) = (folder.path().join("link"), folder.path().join("x".repeat(300)));
    symlink(folder.path().join("gone"), &dangling).unwrap();
    for path in [folder.path(), &dangling, &long] {
        assert!(AtomicFile::new(path).prepare().is_err(), "{}", path.display());
    }
    assert_eq!(names(folder.path()), ["link"]);
}

#[test]
fn a_new_file_never_replaces_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    for (content, created) in [("first", true), ("second", false)] {
        let temporary = AtomicFile::new(&path).owner_only().temporary().unwrap();
        fs::write(temporary.path(), content).unwrap();
        assert_eq!(temporary.persist_new().unwrap(), created);
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "first");
    assert_eq!((mode(&path), names(folder.path())), (0o600, vec!["store".to_owned()]));
}

#[test]
fn concurrent_writers_leave_the_content_of_one_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    thread::scope(|scope| {
        for writer in 0..4_u8 {
            let path = &path;
            scope.spawn(move || {
                for _ in 0..25 {
                    AtomicFile::new(path).without_sync().write(&[writer; 4096]).unwrap();
                }
            });
        }
    });
    let content = fs::read(&path).unwrap();
    assert_eq!(content.len(), 4096);
    assert!(content.iter().all(|byte| *byte == content[0]));
    assert_eq!(names(folder.path()), ["state"]);
}

#[test]
fn leftovers_of_killed_processes_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    replace(&path, b"content").unwrap();
    let leftover = AtomicFile::new(&path).temporary().unwrap();
    leftover.file.keep().unwrap();
    assert_eq!(names(folder.path()).len(), 2);
    remove_leftovers(folder.path()).unwrap();
    assert_eq!(names(folder.path()), ["state"]);
    remove_leftovers(&folder.path().join("missing")).unwrap();
}
