//! Sources on the channels they are made for.
#![allow(clippy::unwrap_used)]

use std::future;

use evenhand_link::testing::Mosquitto;
use evenhand_link::{Broker, rumqttc_options};
use evenhand_node::reading::{InputBatch, Reading, SourcePosition};
use evenhand_node::source::modbus::{
    Modbus, ModbusConfig, ModbusError, RegisterNumber, RegisterTable, WordOrder,
};
use evenhand_node::source::mqtt::{Mqtt, MqttConfig};
use evenhand_node::source::time::TimeFormat;
use evenhand_node::source::{Source, SourceError};
use rumqttc::{Client, Event, Packet, QoS};
use tokio_modbus::server::Service;
use tokio_modbus::server::tcp::{Server, accept_tcp_connection};
use tokio_modbus::{ExceptionCode, Request, Response, SlaveRequest};

/// 2024-06-01 10:00:00 UTC.
const NOON_MS: i64 = 1_717_236_000_000;

fn readings(batch: InputBatch) -> Vec<Reading> {
    match batch {
        InputBatch::Readings(readings) => readings,
        InputBatch::Rows(_) => panic!("rows"),
    }
}

/// Reads until there are `count` readings.
fn wait_for(source: &mut dyn Source, count: usize) -> Vec<Reading> {
    let mut seen = Vec::new();
    while seen.len() < count {
        seen.extend(readings(source.read(count - seen.len()).unwrap()));
    }
    seen
}

/// Unit 7 has 230.25 as a float in the input registers 10 and 11, and −1234 with the low word first in the holding
/// registers 20 and 21.
struct ModbusMeter;

impl Service for ModbusMeter {
    type Request = SlaveRequest<'static>;
    type Response = Response;
    type Exception = ExceptionCode;
    type Future = future::Ready<Result<Response, ExceptionCode>>;

    fn call(&self, request: Self::Request) -> Self::Future {
        let float = 230.25f32.to_bits();
        let integer = (-1234i32).cast_unsigned();
        future::ready(match (request.slave, request.request) {
            (7, Request::ReadInputRegisters(10, 2)) => {
                Ok(Response::ReadInputRegisters(vec![(float >> 16) as u16, float as u16]))
            }
            (7, Request::ReadHoldingRegisters(20, 2)) => {
                Ok(Response::ReadHoldingRegisters(vec![integer as u16, (integer >> 16) as u16]))
            }
            _ => Err(ExceptionCode::IllegalDataAddress),
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_meter_on_modbus_tcp() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let connect = |stream, address| async move {
            accept_tcp_connection(stream, address, |_| Ok(Some(ModbusMeter)))
        };
        Server::new(listener).serve(&connect, |error| panic!("{error}")).await
    });
    let settings = ModbusConfig {
        address,
        unit: 7,
        register: 10,
        scale: 0.001,
        offset: 1.0,
        interval_s: 0.01,
        ..Default::default()
    };
    let read = tokio::task::spawn_blocking(move || {
        let mut float = Modbus::open(settings.clone()).unwrap();
        let seen = wait_for(&mut float, 3);
        assert!(seen.iter().all(|reading| (reading.value - 1.23025).abs() < 1e-9), "{seen:?}");
        assert!(seen.is_sorted_by_key(|reading| reading.time_ms));

        let settings = ModbusConfig { scale: 1.0, offset: 0.0, ..settings };
        let mut integer = Modbus::open(ModbusConfig {
            table: RegisterTable::Holding,
            register: 20,
            number: RegisterNumber::I32,
            word_order: WordOrder::LowFirst,
            ..settings.clone()
        })
        .unwrap();
        assert_eq!(wait_for(&mut integer, 1)[0].value, -1234.0);

        let mut nothing = Modbus::open(ModbusConfig { register: 99, ..settings }).unwrap();
        let error = nothing.read(1).unwrap_err();
        assert!(
            matches!(&error, SourceError::Peer { cause, .. } if matches!(cause.downcast_ref(), Some(ModbusError::Exception { code: 2 }))),
            "{error}"
        );
    });
    read.await.unwrap();
}

/// A device that publishes; its connection is served by a thread.
fn device(broker: &Broker) -> Client {
    let (client, mut connection) = Client::new(rumqttc_options(broker, None, "plug").unwrap(), 16);
    std::thread::spawn(move || while let Ok(Ok(_)) = connection.recv() {});
    client
}

/// Leaves a retained message on the broker: it is there when this returns.
fn keep(broker: &Broker, topic: &str, payload: &str) {
    let (client, mut connection) = Client::new(rumqttc_options(broker, None, "keeper").unwrap(), 16);
    client.publish(topic, QoS::AtLeastOnce, true, payload).unwrap();
    while !matches!(connection.recv(), Ok(Ok(Event::Incoming(Packet::PubAck(_))))) {}
}

#[test]
fn what_a_plug_publishes_on_mosquitto() {
    let mut mosquitto = Mosquitto::start();
    let broker = mosquitto.broker();
    let plug = device(&broker);
    let message = |second: u32, watts: &str| {
        format!(r#"{{"Time":"2024-06-01T10:00:{second:02}Z","ENERGY":{{"Total":1.5,"Power":{watts}}}}}"#)
    };
    // Kept by the broker: known however late the node comes.
    plug.publish("tele/plug/SENSOR", QoS::AtLeastOnce, true, message(0, "84")).unwrap();
    let settings = MqttConfig {
        topic: "tele/plug/SENSOR".into(),
        value: "ENERGY.Power".into(),
        time: "Time".into(),
        ..Default::default()
    };
    let mut source = Mqtt::open(&settings, &broker, None, "m1-source", SourcePosition::default()).unwrap();
    assert_eq!(wait_for(&mut source, 1), [Reading { time_ms: NOON_MS, value: 84.0 }]);
    for (second, watts) in [(1, "85.5"), (2, "null"), (3, "\"86\"")] {
        plug.publish("tele/plug/SENSOR", QoS::AtLeastOnce, false, message(second, watts)).unwrap();
    }
    let seen: Vec<_> =
        wait_for(&mut source, 2).iter().map(|reading| (reading.time_ms - NOON_MS, reading.value)).collect();
    assert_eq!(seen, [(1000, 85.5), (3000, 86.0)]);
    assert_eq!(source.malformed(), 1);

    let known = SourcePosition { newest_ms: Some(NOON_MS + 3000), rows: 0 };
    let mut again = Mqtt::open(&settings, &broker, None, "m1-again", known).unwrap();
    assert!(readings(again.read(9).unwrap()).is_empty(), "what the broker kept is known");
    plug.publish("tele/plug/SENSOR", QoS::AtLeastOnce, false, message(2, "7")).unwrap();
    assert_eq!(wait_for(&mut again, 1)[0].value, 7.0, "a clock that was set back is for the window to judge");
    wait_for(&mut source, 1);

    mosquitto.kill();
    let lost = loop {
        match source.read(1) {
            Ok(batch) => assert!(batch.is_empty()),
            Err(error) => break error,
        }
    };
    assert!(matches!(lost, SourceError::Peer { .. }), "{lost}");
}

/// Of a plug that says its power and the second.
fn plug_settings() -> MqttConfig {
    MqttConfig {
        topic: "home/power".into(),
        value: "p".into(),
        time: "t".into(),
        time_format: TimeFormat::UnixS,
        ..Default::default()
    }
}

#[test]
fn a_message_that_is_too_long_is_no_reading_and_ends_nothing() {
    let mosquitto = Mosquitto::start();
    let broker = mosquitto.broker();
    let long = format!(r#"{{"p":1,"t":0,"why":"{}"}}"#, "x".repeat(100_000));
    keep(&broker, "home/power", &long);
    let settings = plug_settings();
    let mut source = Mqtt::open(&settings, &broker, None, "m1-source", SourcePosition::default()).unwrap();
    while source.malformed() == 0 {
        assert!(readings(source.read(9).unwrap()).is_empty());
    }
    let plug = device(&broker);
    plug.publish("home/power", QoS::AtLeastOnce, false, long).unwrap();
    plug.publish("home/power", QoS::AtLeastOnce, false, r#"{"p":2,"t":900}"#).unwrap();
    assert_eq!(wait_for(&mut source, 1), [Reading { time_ms: 900_000, value: 2.0 }]);
    assert_eq!(source.malformed(), 2, "over the first connection");
}

#[test]
fn what_was_not_signed_for_is_said_again() {
    let mosquitto = Mosquitto::start();
    let broker = mosquitto.broker();
    let settings = plug_settings();
    let open = || Mqtt::open(&settings, &broker, None, "m1-source", SourcePosition::default()).unwrap();
    let plug = device(&broker);
    let say = |second: u32| {
        plug.publish("home/power", QoS::AtLeastOnce, false, format!(r#"{{"p":1,"t":{second}}}"#)).unwrap();
    };
    let mut source = open();
    // It may not have subscribed yet.
    let mut second = 0;
    while readings(source.read(9).unwrap()).is_empty() {
        second += 1;
        say(second);
    }
    source.acknowledgement().unwrap().send();
    let (first, last) = (second + 1, second + 2);
    say(first);
    say(last);
    let times = |seen: Vec<Reading>| seen.iter().map(|reading| reading.time_ms / 1000).collect::<Vec<_>>();
    let fresh = |source: &mut Mqtt| {
        let mut seen = times(wait_for(source, 1));
        while seen.last() != Some(&i64::from(last)) {
            seen.extend(times(wait_for(source, 1)));
        }
        seen.retain(|time| *time >= i64::from(first));
        seen
    };
    assert_eq!(fresh(&mut source), [i64::from(first), i64::from(last)]);
    drop(source);
    let mut again = open();
    assert_eq!(fresh(&mut again), [i64::from(first), i64::from(last)], "nobody had kept them");
}

#[test]
fn plain_numbers_count_when_they_arrive_and_not_when_they_were_kept() {
    let mosquitto = Mosquitto::start();
    let broker = mosquitto.broker();
    keep(&broker, "home/power", "1");
    let plug = device(&broker);
    let settings = MqttConfig { topic: "home/power".into(), ..Default::default() };
    let mut source = Mqtt::open(&settings, &broker, None, "m1-source", SourcePosition::default()).unwrap();
    let seen = loop {
        plug.publish("home/power", QoS::AtLeastOnce, false, "230.5").unwrap();
        let seen = readings(source.read(9).unwrap());
        if !seen.is_empty() {
            break seen;
        }
    };
    assert!(seen.iter().all(|reading| reading.value == 230.5), "{seen:?}");
}
