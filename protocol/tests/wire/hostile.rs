//! Foreign bytes never panic, and never make us allocate more than they are worth.
// Only an allocator can count allocations.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs;
use std::path::Path;

use crate::checks::{self, LIMITS};
use crate::{samples, seeded};
use evenhand_protocol::chunk::{Assembler, Transfer};
use evenhand_protocol::envelope;
use evenhand_protocol::message::{Answer, Message};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Counts what each thread holds, so that tests do not count each other.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(change: isize) {
    let held = HELD.get() + change;
    HELD.set(held);
    PEAK.set(PEAK.get().max(held));
}

// SAFETY: every call is handed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as promised by our caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as promised by our caller.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most that `work` held at any moment.
fn peak_bytes<T>(work: impl FnOnce() -> T) -> usize {
    let before = HELD.get();
    PEAK.set(before);
    drop(work());
    (PEAK.get() - before) as usize
}

/// Messages with bytes changed, inserted and cut off; lengths that claim the world.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let encoded: Vec<_> = samples::messages().iter().map(|(_, message)| envelope::encode(message)).collect();
    let mutated = (select(encoded), vec((any::<Index>(), any::<u8>()), 0..8), any::<Index>(), any::<Index>());
    let claims =
        select(vec![vec![], vec![0xff, 0xff, 0xff, 0xff, 0x0f], vec![0xff, 0xff, 0x7f], vec![0xff; 10]]);
    prop_oneof![
        vec(any::<u8>(), 0..200),
        (mutated, claims).prop_map(|((mut bytes, changes, place, end), claim)| {
            for (position, value) in changes {
                *position.get_mut(&mut bytes) = value;
            }
            let place = place.index(bytes.len());
            bytes.splice(place..place, claim);
            bytes.truncate(end.index(bytes.len()) + 1);
            bytes
        }),
    ]
}

proptest! {
    #![proptest_config(seeded(4096))]

    #[test]
    fn decoding_allocates_a_small_multiple_of_what_arrived(bytes in hostile()) {
        checks::decoder(&bytes);
        let held = peak_bytes(|| envelope::decode(&bytes, &LIMITS));
        prop_assert!(held <= 2 * bytes.len() + 128, "{} bytes made us hold {}", bytes.len(), held);
        if let Ok(Message::Answer(Answer::Update(update))) = envelope::decode(&bytes, &LIMITS) {
            let held = peak_bytes(|| update.vector.decode(samples::DIM));
            prop_assert!(held <= 4 * samples::DIM, "{} held for an update", held);
        }
    }

    #[test]
    fn assembling_stays_within_the_limits(
        packets in vec((any::<u8>(), hostile(), any::<(u16, u16, u32)>(), any::<bool>()), 0..20),
    ) {
        let mut stream = Vec::new();
        for (sender, body, (index, count, total), chunk) in packets {
            let mut packet = Vec::new();
            if chunk {
                // Headers that fit the body, of transfers that never end.
                let (count, length) = (count % 300, body.len() as u32);
                let total = if total % 2 == 0 { total } else { length.saturating_mul(u32::from(count)) };
                packet = postcard::to_allocvec(&([sender; 16], index % count.max(1), count, total)).unwrap();
            }
            packet.extend(body);
            stream.push(sender);
            stream.extend((packet.len() as u16).to_le_bytes());
            stream.extend(packet);
        }
        checks::assembler(&stream);
    }
}

#[test]
fn a_limit_is_a_limit_however_long_the_bytes() {
    let long = envelope::encode(&samples::update(samples::CODECS[0], LIMITS.message_bytes_max));
    assert_eq!(peak_bytes(|| envelope::decode(&long, &LIMITS)), 0, "refused by its length alone");
}

#[test]
fn senders_that_never_finish_cannot_fill_the_memory() {
    let mut assembler = Assembler::new(LIMITS, 10);
    let held = peak_bytes(|| {
        for round in 0..200u32 {
            for sender in 0..50 {
                let message = [round.to_le_bytes(), [sender; 4]].concat().repeat(500);
                let transfer = Transfer::new(message, 500).unwrap();
                let packet = transfer.chunk(round as u16 % (transfer.count() - 1)).unwrap();
                assembler.accept(&format!("sender {sender}"), &packet, u64::from(round)).unwrap();
            }
        }
    });
    assert!(held <= 2 * LIMITS.incomplete_bytes_max, "{held} bytes held");
}

#[test]
fn the_corpus_does_no_harm() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    for (target, check) in [("decoder", checks::decoder as fn(&[u8])), ("assembler", checks::assembler)] {
        let files: Vec<_> =
            fs::read_dir(corpus.join(target)).unwrap().map(|file| file.unwrap().path()).collect();
        assert!(files.len() >= samples::messages().len(), "{target}: run the example seed_corpus");
        for file in files {
            check(&fs::read(file).unwrap());
        }
    }
}
