//! SML telegrams.

use std::io::Write;

use evenhand_node::source::sml::{Sml, SmlConfig};
use evenhand_node::source::{Source, SourceError};

use crate::line::{self, failure_of, wait_for};

/// A telegram in the form of a meter of 2017: the maker's sign, the number of the meter (made up), 1.8.0 with a status, 2.8.0,
/// and a power of 552 W. Its checksums were computed by another program.
const TAKING: &str = "\
    1b1b1b1b01010101760500000071620062007263010176010105000000700b0a0149534b00000000017262016500000e1001\
    63901800760500000072620062007263070177010b0a0149534b0000000001070100620affff7262016500000e1075770701\
    0060320101010101010449534b0177070100600100ff010101010b0a0149534b00000000010177070100010800ff65001c01\
    0401621e52ff6900000000075bcd150177070100020800ff0101621e52ff6900000000000000000177070100100700ff0101\
    621b5200550000022801010163e92900760500000073620062007263020171016362b8001b1b1b1b1a0014bf";
/// A second later, the power is −1200 W.
const FEEDING: &str = "\
    1b1b1b1b01010101760500000081620062007263010176010105000000800b0a0149534b00000000017262016500000e1101\
    63d75e00760500000082620062007263070177010b0a0149534b0000000001070100620affff7262016500000e1175770701\
    0060320101010101010449534b0177070100600100ff010101010b0a0149534b00000000010177070100010800ff65001c01\
    0401621e52ff6900000000075bcd160177070100020800ff0101621e52ff6900000000000000000177070100100700ff0101\
    621b520055fffffb50010101631413007605000000836200620072630201710163b374001b1b1b1b1a00e731";

fn bytes(hex: &str) -> Vec<u8> {
    let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digits).collect()
}

/// The second half of a telegram, a whole one, a damaged one and another whole one in two parts.
fn speak(mut line: impl Write) {
    let (taking, feeding) = (bytes(TAKING), bytes(FEEDING));
    let mut damaged = taking.clone();
    damaged[120] ^= 4;
    line.write_all(&taking[100..]).unwrap();
    line.write_all(&taking).unwrap();
    line.write_all(&damaged).unwrap();
    line.write_all(&feeding[..77]).unwrap();
    line.flush().unwrap();
    line.write_all(&feeding[77..]).unwrap();
}

fn received(source: &mut Sml) {
    let seen = wait_for(source, 2);
    assert_eq!([seen[0].value, seen[1].value], [0.552, -1.2]);
    assert!(seen[0].time_ms > 1_700_000_000_000, "the time of arrival");
    let intake = source.intake().unwrap();
    assert_eq!((intake.malformed(), intake.first().len()), (1, 2), "the damaged one");
    assert!(
        intake.first()[0].text.contains("1-0:1.8.0 12345.6789 kWh, 1-0:2.8.0 0 kWh, 1-0:16.7.0 0.552 kW")
    );
    assert!(intake.example().unwrap().contains("align the optical head"));
}

#[test]
fn telegrams_on_a_serial_line() {
    let (line, device) = line::serial();
    let mut source = Sml::open(SmlConfig { device, ..Default::default() }).unwrap();
    let speaker = std::thread::spawn(move || {
        speak(&line);
        line
    });
    received(&mut source);
    drop(speaker.join().unwrap());
}

#[test]
fn telegrams_from_a_gateway_that_closes() {
    let (listener, address) = line::gateway();
    let settings = SmlConfig { address: address.clone(), ..Default::default() };
    let mut source = Sml::open(settings.clone()).unwrap();
    speak(listener.accept().unwrap().0);
    received(&mut source);
    let error = failure_of(&mut source);
    assert!(matches!(error, SourceError::File { .. }) && error.to_string().contains(&address), "{error}");
    let mut again = Sml::open(settings).unwrap();
    speak(listener.accept().unwrap().0);
    received(&mut again);
}

#[test]
fn a_value_that_the_meter_does_not_send_is_said_with_those_that_it_sends() {
    let (listener, address) = line::gateway();
    let mut source =
        Sml::open(SmlConfig { address, obis: "1-0:36.7.0".into(), ..Default::default() }).unwrap();
    let mut line = listener.accept().unwrap().0;
    line.write_all(&bytes(TAKING)).unwrap();
    while source.malformed() == 0 {
        assert!(source.read(1).unwrap().is_empty());
    }
    let example = source.intake().unwrap().example().unwrap();
    assert!(example.contains("1-0:16.7.0 0.552 kW") && example.contains("set source.obis"), "{example}");
}
