//! Permissions of files and folders that only their owner may read.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Access of the group and of all others.
const OTHERS: u32 = 0o077;

/// A folder that many users share, such as /tmp.
const STICKY: u32 = 0o1000;

/// Creates a folder, and those above it, for their owner alone.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Removes the access of others from a folder and from the named files in it; returns those that were changed.
pub fn restrict(folder: &Path, names: &[&str]) -> io::Result<Vec<PathBuf>> {
    let files = names.iter().map(|name| folder.join(name));
    let mut restricted = Vec::new();
    for path in std::iter::once(folder.to_owned()).chain(files) {
        let metadata = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            metadata => metadata?,
        };
        let mode = metadata.permissions().mode();
        let own = metadata.is_file() || metadata.is_dir() && mode & STICKY == 0;
        if own && mode & OTHERS != 0 {
            fs::set_permissions(&path, Permissions::from_mode(mode & 0o7777 & !OTHERS))?;
            restricted.push(path);
        }
    }
    Ok(restricted)
}

/// A sentence for the operator, if others had access to the folder or the named files in it, which is removed now.
pub fn restrict_and_say(folder: &Path, names: &[&str]) -> Option<String> {
    match restrict(folder, names) {
        Ok(restricted) if restricted.is_empty() => None,
        Ok(restricted) => {
            let paths: Vec<String> = restricted.iter().map(|path| path.display().to_string()).collect();
            Some(format!("other users had access to {}; now only the owner has", paths.join(", ")))
        }
        Err(error) => {
            Some(format!("cannot remove the access of other users to {}: {error}", folder.display()))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn with_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn loose_files_and_folders_are_restricted_and_named_once() {
        let around = tempfile::tempdir().unwrap();
        let folder = around.path().join("deep/state");
        create_folder(&folder).unwrap();
        assert_eq!((mode(&folder), mode(folder.parent().unwrap())), (0o700, 0o700));
        for (name, loose) in [("state", 0o644), ("journal", 0o600), ("other", 0o666)] {
            fs::write(folder.join(name), "").unwrap();
            with_mode(&folder.join(name), loose);
        }
        with_mode(&folder, 0o755);
        let names = ["state", "journal", "absent"];
        let said = restrict_and_say(&folder, &names).unwrap();
        assert!(said.contains("/state/state") && !said.contains("journal"), "{said}");
        assert_eq!((mode(&folder), mode(&folder.join("state"))), (0o700, 0o600));
        assert_eq!(mode(&folder.join("other")), 0o666, "not ours");
        assert_eq!(restrict_and_say(&folder, &names), None, "said once");
    }

    #[test]
    fn a_folder_that_users_share_and_links_stay_as_they_are() {
        let around = tempfile::tempdir().unwrap();
        let (shared, elsewhere) = (around.path().join("shared"), around.path().join("elsewhere"));
        fs::create_dir(&shared).unwrap();
        fs::write(&elsewhere, "").unwrap();
        std::os::unix::fs::symlink(&elsewhere, shared.join("state")).unwrap();
        with_mode(&shared, 0o1777);
        with_mode(&elsewhere, 0o644);
        assert_eq!(restrict(&shared, &["state"]).unwrap(), Vec::<PathBuf>::new());
        assert_eq!((mode(&shared), mode(&elsewhere)), (0o1777, 0o644));
    }
}
