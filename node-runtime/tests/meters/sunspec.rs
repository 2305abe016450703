//! SunSpec models over Modbus TCP, served by another implementation.

use std::future;

use evenhand_node::source::Source;
use evenhand_node::source::sunspec::{Sunspec, SunspecConfig, SunspecValue};
use tokio_modbus::server::Service;
use tokio_modbus::server::tcp::{Server, accept_tcp_connection};
use tokio_modbus::{ExceptionCode, Request, Response, SlaveRequest};

use crate::line::wait_for;

/// Unit 3: the mark at 40000, then the models common (1), inverter (103), meter (203) and the end.
struct ModelMap(Vec<u16>);

const BASE: u16 = 40_000;

impl ModelMap {
    fn new() -> Self {
        let mut registers = vec![0x5375, 0x6e53, 1, 66];
        registers.resize(4 + 66, 0x2020);
        let mut add = |number: u16, length: usize, values: &[(usize, u16)]| {
            let begin = registers.len();
            registers.extend([number, length as u16]);
            registers.resize(begin + 2 + length, 0x8000);
            values.iter().for_each(|(at, value)| registers[begin + at] = *value);
        };
        add(103, 50, &[(14, 8021), (15, u16::MAX), (24, 0x0012), (25, 0xd687), (26, 0)]);
        add(
            203,
            105,
            &[
                (18, 420u16.wrapping_neg()),
                (22, 1),
                (38, 0),
                (39, 5000),
                (46, 0),
                (47, 7000),
                (54, 2u16.wrapping_neg()),
            ],
        );
        registers.extend([0xffff, 0]);
        Self(registers)
    }
}

impl Service for ModelMap {
    type Request = SlaveRequest<'static>;
    type Response = Response;
    type Exception = ExceptionCode;
    type Future = future::Ready<Result<Response, ExceptionCode>>;

    fn call(&self, request: Self::Request) -> Self::Future {
        let (3, Request::ReadHoldingRegisters(first, count)) = (request.slave, request.request) else {
            return future::ready(Err(ExceptionCode::IllegalFunction));
        };
        let begin = first.checked_sub(BASE).map(usize::from);
        let registers = begin.and_then(|begin| self.0.get(begin..begin + usize::from(count)));
        let answer = registers.map(|registers| Response::ReadHoldingRegisters(registers.to_vec()));
        future::ready(answer.ok_or(ExceptionCode::IllegalDataAddress))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn models_are_found_and_read() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let connect = |stream, address| async move {
            accept_tcp_connection(stream, address, |_| Ok(Some(ModelMap::new())))
        };
        Server::new(listener).serve(&connect, |error| panic!("{error}")).await
    });
    let read = tokio::task::spawn_blocking(move || {
        let settings =
            SunspecConfig { address: address.clone(), unit: 3, interval_s: 0.01, ..Default::default() };
        for (model, value, expected) in [
            (0, SunspecValue::Power, 0.8021),
            (103, SunspecValue::Energy, 1234.567),
            (203, SunspecValue::Power, -4.2),
            (0, SunspecValue::EnergyExported, 0.05),
            (203, SunspecValue::Energy, 0.07),
        ] {
            let mut source = Sunspec::open(SunspecConfig { model, value, ..settings.clone() }).unwrap();
            let seen = wait_for(&mut source, 2);
            assert!(seen.iter().all(|reading| reading.value == expected), "{model} {value:?}: {seen:?}");
            assert!(source.intake().unwrap().first()[0].text.starts_with("model "));
        }
        let error = Sunspec::open(SunspecConfig { model: 113, ..settings.clone() }).unwrap_err().to_string();
        assert!(error.contains("its models are 1, 103, 203") && error.contains(&address), "{error}");
        let error = Sunspec::open(SunspecConfig { unit: 9, ..settings }).unwrap_err().to_string();
        assert!(error.contains("does not know this function"), "{error}");
    });
    read.await.unwrap();
}
