// What must hold for any bytes. The fuzz targets and the ordinary tests run these same functions.

use evenhand_protocol::chunk::Assembler;
use evenhand_protocol::envelope;
use evenhand_protocol::limits::MessageLimits;
use evenhand_protocol::message::{Answer, Message};

pub(crate) const LIMITS: MessageLimits = MessageLimits {
    message_bytes_max: 64 << 10,
    parameters_max: 16 << 10,
    text_bytes_max: 1 << 10,
    chunks_max: 256,
    incomplete_transfers_max: 4,
    incomplete_bytes_max: 64 << 10,
};

/// Bytes are refused, or they are a message that survives being encoded again.
pub(crate) fn decoder(bytes: &[u8]) {
    let Ok(message) = envelope::decode(bytes, &LIMITS) else { return };
    let encoded = envelope::encode(&message);
    let again = envelope::decode(&encoded, &LIMITS).expect("what we encode, we decode");
    assert_eq!(envelope::encode(&again), encoded);
    if let Message::Answer(Answer::Update(update)) = message {
        for dim in [0, 1, update.vector.entries(), 1921] {
            if let Ok(vector) = update.vector.decode(dim) {
                assert_eq!(vector.len(), dim);
            }
        }
    }
}

/// Packets of several senders, each led by its sender and its length, are refused, or kept within the limits,
/// or become messages no longer than allowed.
pub(crate) fn assembler(mut bytes: &[u8]) {
    let mut assembler = Assembler::new(LIMITS, 10);
    let mut now_ms = 0;
    while let [sender, low, high, rest @ ..] = bytes {
        let length = rest.len().min(usize::from(u16::from_le_bytes([*low, *high])));
        let (packet, after) = rest.split_at(length);
        let sender = ["a", "b", "c", "d"][usize::from(sender % 4)];
        if let Ok(Some(message)) = assembler.accept(sender, packet, now_ms) {
            assert!(message.len() <= LIMITS.message_bytes_max);
            decoder(&message);
        }
        for missing in assembler.missing(sender) {
            assert!(!missing.chunks.is_empty() && missing.chunks.len() <= usize::from(LIMITS.chunks_max));
        }
        assembler.overdue(now_ms);
        now_ms += 3;
        bytes = after;
    }
}
