//! Chunks become messages whatever the network does to them.
use std::sync::Arc;

use evenhand_protocol::chunk::{Assembler, ChunkError, SentTransfers, Transfer};
use evenhand_protocol::limits::MessageLimits;
use evenhand_protocol::message::MissingChunks;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::seeded;

const RESEND_AFTER_MS: u64 = 100;

fn assembler() -> Assembler {
    Assembler::new(MessageLimits::default(), RESEND_AFTER_MS)
}

fn transfer(seed: u8, bytes: usize) -> Transfer {
    Transfer::new((0..bytes).map(|position| seed.wrapping_add(position as u8)).collect(), 64).unwrap()
}

fn whole(transfer: &Transfer, seed: u8) -> Vec<u8> {
    (0..transfer.message_bytes()).map(|position| seed.wrapping_add(position as u8)).collect()
}

/// Gives the chunks at `order` to `assembler`; the messages that came out.
fn feed(
    assembler: &mut Assembler,
    transfer: &Transfer,
    order: impl IntoIterator<Item = u16>,
) -> Vec<Vec<u8>> {
    order
        .into_iter()
        .filter_map(|index| {
            let packet = transfer.chunk(index).unwrap();
            assembler.accept("node", &packet, 0).unwrap().map(|message| message.into_owned())
        })
        .collect()
}

proptest! {
    #![proptest_config(seeded(256))]

    #[test]
    fn order_and_repetition_do_not_matter(
        message in vec(any::<u8>(), 0..3000),
        payload_bytes_max in 64usize..500,
        disorder in vec(any::<prop::sample::Index>(), 0..100),
    ) {
        let transfer = Transfer::new(message.clone(), payload_bytes_max).unwrap();
        prop_assert!(transfer.chunks().all(|packet| packet.len() <= payload_bytes_max));
        let mut assembler = assembler();
        let count = usize::from(transfer.count());
        let disorder = disorder.iter().map(|index| index.index(count) as u16);
        let mut messages = feed(&mut assembler, &transfer, disorder);
        let rest = assembler.missing("node").pop().map_or((0..transfer.count()).collect(), |missing| missing.chunks);
        if messages.is_empty() {
            messages = feed(&mut assembler, &transfer, rest);
        }
        prop_assert_eq!(messages.first(), Some(&message));
    }
}

#[test]
fn missing_chunks_are_named_and_complete_the_message() {
    let transfer = transfer(1, 300);
    let mut assembler = assembler();
    assert!(feed(&mut assembler, &transfer, [6, 0, 3]).is_empty());
    let missing = MissingChunks { transfer: transfer.id(), chunks: vec![1, 2, 4, 5, 7, 8] };
    assert_eq!(assembler.missing("node"), std::slice::from_ref(&missing));
    assert!(assembler.missing("another").is_empty());
    assert_eq!(feed(&mut assembler, &transfer, missing.chunks), [whole(&transfer, 1)]);
    assert!(assembler.missing("node").is_empty() && !assembler.has_incomplete());
}

#[test]
fn senders_do_not_mix() {
    let transfer = transfer(1, 60);
    let mut assembler = assembler();
    let [first, second] = [0, 1].map(|index| transfer.chunk(index).unwrap());
    assert_eq!(assembler.accept("one", &first, 0), Ok(None));
    assert_eq!(assembler.accept("two", &second, 0), Ok(None));
    assert!(assembler.accept("one", &second, 0).unwrap().is_some());
}

#[test]
fn late_repetitions_of_a_complete_message_are_ignored_and_a_repeated_message_is_not() {
    let transfer = transfer(1, 300);
    let mut assembler = assembler();
    assert_eq!(feed(&mut assembler, &transfer, 0..transfer.count()).len(), 1);
    assert!(feed(&mut assembler, &transfer, 4..transfer.count()).is_empty());
    assert!(!assembler.has_incomplete());
    assert_eq!(feed(&mut assembler, &transfer, 0..transfer.count()).len(), 1);
}

#[test]
fn interleaved_messages_of_one_sender_both_arrive() {
    let (one, two) = (transfer(1, 300), transfer(2, 300));
    let mut assembler = assembler();
    for index in 0..one.count() - 1 {
        feed(&mut assembler, &one, [index]);
        feed(&mut assembler, &two, [index]);
    }
    assert_eq!(feed(&mut assembler, &two, [two.count() - 1]), [whole(&two, 2)]);
    assert_eq!(feed(&mut assembler, &one, [one.count() - 1]), [whole(&one, 1)]);
}

#[test]
fn new_messages_supersede_the_oldest_unfinished_one() {
    let limits = MessageLimits { incomplete_transfers_max: 2, ..MessageLimits::default() };
    let mut assembler = Assembler::new(limits, RESEND_AFTER_MS);
    let transfers = [1, 2, 3].map(|seed| transfer(seed, 300));
    for transfer in &transfers {
        feed(&mut assembler, transfer, [0]);
    }
    let open: Vec<_> = assembler.missing("node").iter().map(|missing| missing.transfer).collect();
    assert_eq!(open, [transfers[1].id(), transfers[2].id()]);
}

#[test]
fn a_message_that_is_cut_anew_starts_anew() {
    let message = whole(&transfer(1, 300), 1);
    let (coarse, fine) =
        (Transfer::new(message.clone(), 100).unwrap(), Transfer::new(message.clone(), 64).unwrap());
    let mut assembler = assembler();
    feed(&mut assembler, &coarse, [0, 1]);
    assert_eq!(feed(&mut assembler, &fine, 0..fine.count()), [message]);
}

#[test]
fn silence_is_answered_by_requests_and_then_by_giving_up() {
    let transfer = transfer(1, 300);
    let mut assembler = assembler();
    feed(&mut assembler, &transfer, 1..transfer.count());
    assert!(assembler.overdue(RESEND_AFTER_MS - 1).is_empty());
    let wanted = ("node".to_owned(), MissingChunks { transfer: transfer.id(), chunks: vec![0] });
    let mut asked_at = Vec::new();
    for now_ms in (0..10_000).step_by(10) {
        if let Some(request) = assembler.overdue(now_ms).pop() {
            assert_eq!(request, wanted);
            asked_at.push(now_ms);
        }
    }
    assert_eq!(asked_at, [100, 300, 700, 1500], "each wait is twice the last");
    assert!(!assembler.has_incomplete());
}

#[test]
fn who_holds_most_cannot_push_others_out() {
    let limits = MessageLimits { incomplete_bytes_max: 4000, ..MessageLimits::default() };
    let mut assembler = Assembler::new(limits, RESEND_AFTER_MS);
    let honest = transfer(1, 300);
    assembler.accept("honest", &honest.chunk(0).unwrap(), 0).unwrap();
    for (now_ms, number) in (1..).zip(2..40) {
        let greedy = transfer(number, 3000);
        for index in 0..greedy.count() - 1 {
            assembler.accept("greedy", &greedy.chunk(index).unwrap(), now_ms).unwrap();
        }
    }
    let whole: usize = (1..honest.count())
        .filter(|index| assembler.accept("honest", &honest.chunk(*index).unwrap(), 99).unwrap().is_some())
        .count();
    assert_eq!(whole, 1);
}

#[test]
fn memory_is_taken_from_the_sender_that_was_silent_longest() {
    let limits = MessageLimits { incomplete_bytes_max: 2000, ..MessageLimits::default() };
    let mut assembler = Assembler::new(limits, RESEND_AFTER_MS);
    for (now_ms, sender) in
        (0..).step_by(RESEND_AFTER_MS as usize).zip(["a", "b", "c", "d", "e", "f", "g", "h"])
    {
        let packet = transfer(1, 300).chunk(0).unwrap();
        assembler.accept(sender, &packet, now_ms).unwrap();
    }
    assert!(assembler.missing("a").is_empty());
    assert!(!assembler.missing("h").is_empty());
}

/// More senders at once than there is memory for, each with as much to say: some must get through.
#[test]
fn where_all_want_the_same_some_finish() {
    let limits = MessageLimits { incomplete_bytes_max: 20_000, ..MessageLimits::default() };
    let mut assembler = Assembler::new(limits, RESEND_AFTER_MS);
    let transfers: Vec<_> = (1..=12).map(|number| transfer(number, 3000)).collect();
    let mut finished = std::collections::BTreeSet::new();
    let mut now_ms = 0;
    for _pass in 0..6 {
        for index in 0..transfers[0].count() {
            for (sender, transfer) in transfers.iter().enumerate() {
                if finished.contains(&sender) {
                    continue;
                }
                now_ms += 1;
                let packet = transfer.chunk(index).unwrap();
                if assembler.accept(&format!("node-{sender}"), &packet, now_ms).unwrap().is_some() {
                    finished.insert(sender);
                }
            }
        }
    }
    println!("{} of {} finished", finished.len(), transfers.len());
    assert!(finished.len() >= transfers.len() / 2, "nobody gets in anybody's way without end");
}

#[test]
fn damage_is_found_out() {
    let transfer = transfer(1, 100);
    let mut assembler = assembler();
    let mut last = transfer.chunk(transfer.count() - 1).unwrap();
    *last.last_mut().unwrap() ^= 1;
    feed(&mut assembler, &transfer, 0..transfer.count() - 1);
    assert_eq!(assembler.accept("node", &last, 0), Err(ChunkError::Digest));

    let mut single = Transfer::new(vec![1, 2, 3], 64).unwrap().chunk(0).unwrap();
    *single.last_mut().unwrap() ^= 1;
    assert_eq!(assembler.accept("node", &single, 0), Err(ChunkError::Digest));
}

#[test]
fn lies_about_lengths_are_refused() {
    let mut assembler = Assembler::new(
        MessageLimits { message_bytes_max: 1000, chunks_max: 10, ..MessageLimits::default() },
        1,
    );
    let mut refused = |index: u16, count: u16, total: u32, part: usize| {
        let mut packet = postcard::to_allocvec(&([0u8; 16], index, count, total)).unwrap();
        packet.extend(vec![0; part]);
        assembler.accept("node", &packet, 0).unwrap_err()
    };
    assert_eq!(refused(0, 0, 0, 0), ChunkError::Inconsistent, "no chunks");
    assert_eq!(refused(2, 2, 10, 5), ChunkError::Inconsistent, "index beyond count");
    assert_eq!(refused(0, 2, 10, 4), ChunkError::Inconsistent, "too short");
    assert_eq!(refused(1, 2, 10, 6), ChunkError::Inconsistent, "too long");
    assert_eq!(refused(0, 9, 3, 1), ChunkError::Inconsistent, "more chunks than bytes");
    assert_eq!(refused(0, 1, 1001, 1001), ChunkError::TooLong { bytes: 1001, bytes_max: 1000 });
    assert_eq!(refused(0, 11, 110, 10), ChunkError::TooMany { chunks: 11, chunks_max: 10 });
    assert_eq!(assembler.accept("node", &[1, 2, 3], 0), Err(ChunkError::Malformed));
}

#[test]
fn chunks_are_served_again_where_they_were_sent_and_only_there() {
    let transfer = Arc::new(transfer(1, 300));
    let everything = MissingChunks { transfer: transfer.id(), chunks: (0..transfer.count()).collect() };
    let mut sent = SentTransfers::new(1000);
    sent.insert("a/task", &transfer);
    sent.insert("b/task", &transfer);
    assert!(sent.find("a/task", &everything).is_some() && sent.find("b/task", &everything).is_some());
    assert!(sent.find("c/task", &everything).is_none(), "a model is no business of others");
}

#[test]
fn the_oldest_messages_are_forgotten_first() {
    let [one, two, three] = [1, 2, 3].map(|seed| Arc::new(transfer(seed, 400)));
    let missing = |transfer: &Transfer| MissingChunks { transfer: transfer.id(), chunks: vec![0] };
    let mut sent = SentTransfers::new(1000);
    for transfer in [&one, &two, &one, &three] {
        sent.insert("task", transfer);
    }
    assert!(sent.find("task", &missing(&one)).is_some(), "sent again, so it is not the oldest");
    assert!(sent.find("task", &missing(&two)).is_none());
    assert!(sent.find("task", &missing(&three)).is_some());
}
