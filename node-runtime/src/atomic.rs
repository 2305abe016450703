//! Files that are either old or new, never half.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Replaces the file at `path`, so that a crash or a full disk leaves the old one; makes its folder if need be.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let fresh = path.with_file_name(name);
    let written = File::create(&fresh).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    if let Err(error) = written.and_then(|()| fs::rename(&fresh, path)) {
        let _ = fs::remove_file(&fresh);
        return Err(error);
    }
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn replaces_or_leaves_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/state");
        write(&path, b"old").unwrap();
        write(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        fs::create_dir(path.with_file_name("state.new")).unwrap();
        write(&path, b"newest").unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }
}
