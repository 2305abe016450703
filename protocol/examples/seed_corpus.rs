//! Writes the corpus that fuzzing starts from: `cargo run -p evenhand-protocol --example seed_corpus`.

#[path = "../tests/wire/samples.rs"]
mod samples;

use std::fs;
use std::io;
use std::path::Path;

use evenhand_protocol::chunk::{PAYLOAD_BYTES_MIN, Transfer};
use evenhand_protocol::envelope;

fn main() -> io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    for target in ["decoder", "assembler"] {
        fs::create_dir_all(corpus.join(target))?;
    }
    for (name, message) in samples::messages() {
        let encoded = envelope::encode(&message);
        fs::write(corpus.join("decoder").join(name), &encoded)?;
        let transfer = Transfer::new(encoded, PAYLOAD_BYTES_MIN).map_err(io::Error::other)?;
        fs::write(corpus.join("assembler").join(name), packets(&transfer))?;
    }
    Ok(())
}

/// The chunks as `fuzz/checks.rs` reads them: sender, length, packet. The last comes first, and once more.
fn packets(transfer: &Transfer) -> Vec<u8> {
    let last = transfer.chunk(transfer.count() - 1);
    let all = last.into_iter().chain(transfer.chunks());
    all.flat_map(|packet| {
        let length = (packet.len() as u16).to_le_bytes();
        [0, length[0], length[1]].into_iter().chain(packet)
    })
    .collect()
}
