//! The channels of meters: a serial line and a gateway on TCP.

use std::ffi::OsString;
use std::fs::File;
use std::net::TcpListener;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use evenhand_node::reading::{InputBatch, Reading};
use evenhand_node::source::{Source, SourceError};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// A serial line: the meter's end, and the device of the other one.
pub(crate) fn serial() -> (File, PathBuf) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let device = OsString::from_vec(ptsname(&master, Vec::new()).unwrap().into_bytes());
    (File::from(master), device.into())
}

/// A gateway, and its address.
pub(crate) fn gateway() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

/// Reads until there are `count` readings.
pub(crate) fn wait_for(source: &mut dyn Source, count: usize) -> Vec<Reading> {
    let mut seen = Vec::new();
    while seen.len() < count {
        match source.read(count - seen.len()).unwrap() {
            InputBatch::Readings(readings) => seen.extend(readings),
            InputBatch::Rows(_) => panic!("rows"),
        }
    }
    seen
}

/// Reads until the source fails.
pub(crate) fn failure_of(source: &mut dyn Source) -> SourceError {
    loop {
        match source.read(1) {
            Ok(batch) => assert!(batch.is_empty()),
            Err(error) => return error,
        }
    }
}
