//! D0 readouts.

use std::io::{Read, Write};
use std::thread;

use evenhand_node::source::Source;
use evenhand_node::source::d0::{D0, D0Config};

use crate::line::{self, wait_for};

/// The lines of a meter's data block; the values are made up.
const LINES: &str =
    "1-0:1.8.0*255(000004821.7*kWh)\r\n1-0:2.8.0*255(000000012.0*kWh)\r\n0-0:F.F.0*255(00000000)\r\n!\r\n";

/// The data block with its check.
fn block() -> Vec<u8> {
    let mut block = [LINES.as_bytes(), b"\x03"].concat();
    block.push(block.iter().fold(0, |check, byte| check ^ byte));
    block.insert(0, 2);
    block
}

/// With the parity bit of a line of seven bits, as one of eight bits delivers it.
fn with_parity(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| byte | ((byte.count_ones() as u8 & 1) << 7)).collect()
}

/// A meter that is asked twice by mode C; the second data block is damaged, so it is asked a third time.
fn answer(mut line: impl Read + Write, offered: u8, accepted: u8) {
    for attempt in 0..3 {
        let mut request = [0; 5];
        line.read_exact(&mut request).unwrap();
        assert_eq!(&request, b"/?!\r\n");
        // The head hears its own light.
        line.write_all(&request).unwrap();
        line.write_all(&with_parity(&[b"/EMH", &[offered][..], b"\\@D4EM4TIIW001--\r\n"].concat())).unwrap();
        let mut acknowledgement = [0; 6];
        line.read_exact(&mut acknowledgement).unwrap();
        assert_eq!(acknowledgement, [6, b'0', accepted, b'0', b'\r', b'\n']);
        let mut block = block();
        if attempt == 1 {
            block[20] ^= 1;
        }
        line.write_all(&with_parity(&block)).unwrap();
    }
}

fn asked(source: &mut D0) {
    let seen = wait_for(source, 2);
    assert!(seen.iter().all(|reading| (reading.value - 4809.7).abs() < 1e-9), "{seen:?}");
    assert_eq!(source.malformed(), 1);
    assert!(source.intake().unwrap().example().unwrap().contains("block check"));
}

fn on_request() -> D0Config {
    D0Config { request: true, interval_s: 1.0, obis_minus: "2.8.0".into(), ..Default::default() }
}

#[test]
fn a_meter_that_is_asked_on_a_serial_line_offers_its_speed() {
    let (line, device) = line::serial();
    let mut source = D0::open(D0Config { device, ..on_request() }).unwrap();
    let meter = thread::spawn(move || {
        answer(&line, b'5', b'5');
        line
    });
    asked(&mut source);
    drop(meter.join().unwrap());
}

#[test]
fn a_meter_that_is_asked_through_a_gateway_stays_at_its_speed() {
    let (listener, address) = line::gateway();
    let mut source = D0::open(D0Config { address, ..on_request() }).unwrap();
    let stream = listener.accept().unwrap().0;
    let meter = thread::spawn(move || answer(stream, b'5', b'0'));
    asked(&mut source);
    meter.join().unwrap();
}

#[test]
fn a_meter_that_sends_by_itself() {
    let telegram = |watts: &str| {
        format!(
            "/ESY5Q3DA1004 V3.04\r\n\r\n1-0:0.0.0*255(0000000000001)\r\n1-0:1.7.255*255({watts}*W)\r\n!\r\n"
        )
    };
    let (mut line, device) = line::serial();
    let mut source = D0::open(D0Config { device, obis: "1-0:1.7.255".into(), ..Default::default() }).unwrap();
    line.write_all(b"003.5*W)\r\n!\r\n").unwrap();
    for watts in ["000250.00", "rubbish", "000500.00"] {
        line.write_all(&with_parity(telegram(watts).as_bytes())).unwrap();
    }
    let seen: Vec<f64> = wait_for(&mut source, 2).iter().map(|reading| reading.value).collect();
    assert_eq!((seen, source.malformed()), (vec![0.25, 0.5], 1));
}

#[test]
fn silence_after_a_request_is_said_with_the_address() {
    let (listener, address) = line::gateway();
    let mut source = D0::open(D0Config { address: address.clone(), ..on_request() }).unwrap();
    let _silent = listener.accept().unwrap();
    let error = line::failure_of(&mut source).to_string();
    assert!(error.contains(&address) && error.contains("align the optical head"), "{error}");
}
