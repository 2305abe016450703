//! JSON over HTTP, with answers as devices give them.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use evenhand_node::reading::{Reading, SourcePosition};
use evenhand_node::source::http::{Http, HttpConfig};
use evenhand_node::source::time::TimeFormat;
use evenhand_node::source::{Source, SourceError};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::line::{self, failure_of, wait_for};

/// The answers of a device, each on a connection of its own; the heads of the requests.
fn serve(
    listener: TcpListener,
    answers: Vec<String>,
    tls: Option<Arc<ServerConfig>>,
) -> JoinHandle<Vec<String>> {
    thread::spawn(move || {
        let mut requests = Vec::new();
        for answer in answers {
            let stream = listener.accept().unwrap().0;
            match &tls {
                None => requests.push(exchange(stream, &answer)),
                Some(tls) => {
                    let connection = ServerConnection::new(Arc::clone(tls)).unwrap();
                    requests.push(exchange(StreamOwned::new(connection, stream), &answer));
                }
            }
        }
        requests
    })
}

fn exchange(mut stream: impl std::io::Read + Write, answer: &str) -> String {
    let mut head = String::new();
    let mut reader = BufReader::new(&mut stream);
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0);
    }
    stream.write_all(answer.as_bytes()).unwrap();
    stream.flush().unwrap();
    head
}

fn ok(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn open(settings: HttpConfig) -> Http {
    Http::open(HttpConfig { interval_s: 0.01, ..settings }, SourcePosition::default()).unwrap()
}

#[test]
fn a_shelly_and_a_tasmota() {
    let (listener, address) = line::gateway();
    let shelly = r#"{"id":0,"source":"init","output":true,"apower":132.5,"voltage":231.1,"aenergy":{"total":11.6,"minute_ts":1717236000}}"#;
    let device = serve(listener, vec![ok(shelly), ok(&shelly.replace("132.5", "133"))], None);
    let url = format!("http://{address}/rpc/Switch.GetStatus?id=0");
    let mut source = open(HttpConfig { url, value: "apower".into(), ..Default::default() });
    let seen: Vec<f64> = wait_for(&mut source, 2).iter().map(|reading| reading.value).collect();
    assert_eq!(seen, [132.5, 133.0]);
    let requests = device.join().unwrap();
    assert!(
        requests[1].starts_with("GET /rpc/Switch.GetStatus?id=0 HTTP/1.1\r\nHost: 127.0.0.1:"),
        "{requests:?}"
    );

    let (listener, address) = line::gateway();
    let tasmota = |watts: u32, second: u32| {
        let body = format!(
            r#"{{"StatusSNS":{{"Time":"2024-06-01T10:00:{second:02}","ENERGY":{{"Total":31.2,"Power":{watts}}}}}}}"#
        );
        let (first, rest) = body.split_at(20);
        let chunks = format!("{:x}\r\n{first}\r\n{:x}\r\n{rest}\r\n0\r\n\r\n", first.len(), rest.len());
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n{chunks}")
    };
    let device = serve(listener, vec![tasmota(84, 0), tasmota(84, 0), tasmota(90, 10)], None);
    let mut source = open(HttpConfig {
        url: format!("http://{address}/cm?cmnd=Status%208"),
        value: "StatusSNS.ENERGY.Power".into(),
        time: "StatusSNS.Time".into(),
        ..Default::default()
    });
    let noon_ms = 1_717_236_000_000;
    let expected = [(0, 84.0), (10_000, 90.0)].map(|(ms, value)| Reading { time_ms: noon_ms + ms, value });
    assert_eq!(wait_for(&mut source, 2), expected, "what is said again is no new reading");
    device.join().unwrap();
}

#[test]
fn credentials_and_what_devices_refuse() {
    let (listener, address) = line::gateway();
    let refused =
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n";
    let device = serve(listener, vec![ok("230.5"), refused.to_owned()], None);
    let folder = tempfile::tempdir().unwrap();
    let password_file = folder.path().join("password");
    std::fs::write(&password_file, "open sesame\n").unwrap();
    let mut source = open(HttpConfig {
        url: format!("http://{address}/"),
        username: "Aladdin".into(),
        password_file: Some(password_file),
        ..Default::default()
    });
    assert_eq!(wait_for(&mut source, 1)[0].value, 230.5);
    let error = failure_of(&mut source).to_string();
    assert!(error.contains(&address) && error.contains("source.password_file"), "{error}");
    assert!(device.join().unwrap()[0].contains("Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"));
    let closed = failure_of(&mut source);
    assert!(matches!(&closed, SourceError::Peer { .. }) && closed.to_string().contains(&address), "{closed}");
}

#[test]
fn an_answer_without_the_value_names_those_it_has() {
    let (listener, address) = line::gateway();
    let device = serve(listener, vec![ok(r#"{"ts":5,"emeters":[{"power":84.5}]}"#)], None);
    let mut source =
        open(HttpConfig { url: format!("http://{address}/"), value: "apower".into(), ..Default::default() });
    assert!(source.read(1).unwrap().is_empty());
    let example = source.intake().unwrap().example().unwrap().to_owned();
    assert!(example.contains("emeters.0.power") && example.contains("set source.value"), "{example}");
    device.join().unwrap();
}

#[test]
fn an_encrypted_answer_of_a_device_with_its_own_authority() {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let ca_file = folder.path().join("ca.pem");
    std::fs::write(&ca_file, certified.cert.pem()).unwrap();
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let server = ServerConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    let (listener, address) = line::gateway();
    let port = address.rsplit(':').next().unwrap().to_owned();
    let device = serve(listener, vec![ok(r#"{"t":1717236000,"p":7}"#)], Some(Arc::new(server)));
    let mut source = open(HttpConfig {
        url: format!("https://localhost:{port}/"),
        value: "p".into(),
        time: "t".into(),
        time_format: TimeFormat::UnixS,
        ca_file: Some(ca_file),
        ..Default::default()
    });
    assert_eq!(wait_for(&mut source, 1), [Reading { time_ms: 1_717_236_000_000, value: 7.0 }]);
    device.join().unwrap();
}
