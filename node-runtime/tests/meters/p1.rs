//! P1 telegrams.

use std::io::Write;

use evenhand_node::source::p1::{P1, P1Config};
use evenhand_node::source::{Source, SourceError};

use crate::line::{self, failure_of, wait_for};

/// CRC-16/ARC, written otherwise than in the source: by the reflected table-free recurrence on whole bytes.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0u16, |crc, byte| {
        let mut low = (crc ^ u16::from(*byte)) & 0xff;
        for _ in 0..8 {
            low = if low & 1 == 1 { (low >> 1) ^ 0xa001 } else { low >> 1 };
        }
        (crc >> 8) ^ low
    })
}

fn telegram(second: u32, kilowatts: &str) -> Vec<u8> {
    let body = format!(
        "/KFM5KAIFA-METER\r\n\r\n1-3:0.2.8(42)\r\n0-0:1.0.0(2406011200{second:02}S)\r\n1-0:1.7.0({kilowatts}*kW)\r\n!"
    );
    format!("{body}{:04X}\r\n", crc16(body.as_bytes())).into_bytes()
}

/// 2024-06-01 12:00:00 in Dutch summer time.
const NOON_MS: i64 = 1_717_236_000_000;

fn speak(mut line: impl Write) {
    let mut damaged = telegram(1, "00.500");
    damaged[40] ^= 1;
    let whole = telegram(2, "01.750");
    line.write_all(b"half a telegram*kW)\r\n!0000\r\n").unwrap();
    line.write_all(&telegram(0, "00.250")).unwrap();
    line.write_all(&damaged).unwrap();
    line.write_all(&whole[..50]).unwrap();
    line.flush().unwrap();
    line.write_all(&whole[50..]).unwrap();
    line.write_all(&telegram(3, "02.000")).unwrap();
}

fn received(source: &mut P1) {
    let seen: Vec<_> =
        wait_for(source, 3).iter().map(|reading| (reading.time_ms - NOON_MS, reading.value)).collect();
    assert_eq!(seen, [(0, 0.25), (2000, 1.75), (3000, 2.0)]);
    assert_eq!(source.malformed(), 1, "the damaged one");
}

#[test]
fn telegrams_on_a_serial_line() {
    let (line, device) = line::serial();
    let mut source = P1::open(P1Config { device, ..Default::default() }).unwrap();
    let speaker = std::thread::spawn(move || {
        speak(&line);
        line
    });
    received(&mut source);
    drop(speaker.join().unwrap());
}

#[test]
fn telegrams_from_a_gateway() {
    let (listener, address) = line::gateway();
    let mut source = P1::open(P1Config { address, ..Default::default() }).unwrap();
    let (stream, _) = listener.accept().unwrap();
    let speaker = std::thread::spawn(move || speak(stream));
    received(&mut source);
    speaker.join().unwrap();
    assert!(matches!(failure_of(&mut source), SourceError::File { .. }));
    let missing = P1Config { device: "/dev/no-such-line".into(), ..Default::default() };
    assert!(P1::open(missing).is_err());
}
