//! Modbus RTU.

use std::fs::File;
use std::io::{Read, Write};
use std::thread;

use evenhand_node::source::modbus::{Modbus, ModbusConfig, ModbusError, RegisterNumber, RegisterTable};
use evenhand_node::source::{Source, SourceError};

use crate::line::{self, failure_of, wait_for};

/// A request that many manuals print, with its answer: holding registers from 107 of unit 17, here two of them.
const REQUEST: [u8; 8] = [0x11, 3, 0, 0x6b, 0, 2, 0xb7, 0x47];
const ANSWER: [u8; 9] = [0x11, 3, 4, 0xae, 0x41, 0x56, 0x52, 0x25, 0x53];
const REFUSAL: [u8; 5] = [0x11, 0x83, 2, 0xc1, 0x34];

fn settings() -> ModbusConfig {
    ModbusConfig {
        unit: 17,
        table: RegisterTable::Holding,
        register: 107,
        number: RegisterNumber::U32,
        interval_s: 0.01,
        ..Default::default()
    }
}

fn expect_request(mut line: &File) {
    let mut request = [0; 8];
    line.read_exact(&mut request).unwrap();
    assert_eq!(request, REQUEST);
}

#[test]
fn registers_on_a_serial_line() {
    let (line, device) = line::serial();
    let mut source = Modbus::open(ModbusConfig { device, ..settings() }).unwrap();
    let meter = thread::spawn(move || {
        let mut writer = &line;
        for parts in [&[9][..], &[1, 8], &[3, 3, 3]] {
            expect_request(&line);
            let mut answer = &ANSWER[..];
            for part in parts {
                let (now, later) = answer.split_at(*part);
                writer.write_all(now).unwrap();
                writer.flush().unwrap();
                answer = later;
            }
        }
        expect_request(&line);
        writer.write_all(&REFUSAL).unwrap();
        line
    });
    let seen = wait_for(&mut source, 3);
    assert!(seen.iter().all(|reading| reading.value == f64::from(0xae41_5652_u32)), "{seen:?}");
    assert_eq!(source.intake().unwrap().first()[0].text, "registers ae41 5652");
    let error = failure_of(&mut source);
    assert!(
        matches!(&error, SourceError::Peer { cause, .. } if matches!(cause.downcast_ref(), Some(ModbusError::Exception { code: 2 }))),
        "{error}"
    );
    drop(meter.join().unwrap());
}

#[test]
fn a_damaged_answer_and_none_are_said_with_the_device() {
    let (line, device) = line::serial();
    let mut source = Modbus::open(ModbusConfig { device: device.clone(), ..settings() }).unwrap();
    let meter = thread::spawn(move || {
        expect_request(&line);
        let mut damaged = ANSWER;
        damaged[4] ^= 1;
        (&line).write_all(&damaged).unwrap();
        line
    });
    let error = failure_of(&mut source).to_string();
    assert!(error.contains("wrong checksum"), "{error}");
    let _silent = meter.join().unwrap();
    let error = failure_of(&mut source).to_string();
    let device = device.display().to_string();
    assert!(error.contains("does not answer; check unit") && error.contains(&device), "{error}");
}
