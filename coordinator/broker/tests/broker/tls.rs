//! TLS on the listener.

use std::path::Path;
use std::sync::Arc;

use evenhand_broker::{BrokerOptions, EmbeddedBroker, ListenerTls};
use rumqttc::ConnectReturnCode;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::raw_client::RawClient;
use super::{coordinator, named, per_node, text};

/// A certificate for `localhost`, signed by itself, and its key, in a folder.
fn certificate(folder: &Path) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    std::fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    made.cert.der().clone()
}

async fn connected(broker: &EmbeddedBroker, root: CertificateDer<'static>) -> std::io::Result<RawClient> {
    let mut roots = RootCertStore::empty();
    roots.add(root).unwrap();
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(broker.address()).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    Ok(RawClient::over(TlsConnector::from(Arc::new(config)).connect(name, stream).await?))
}

#[tokio::test]
async fn nodes_connect_by_tls_and_the_coordinator_from_within() {
    let folder = tempfile::tempdir().unwrap();
    let root = certificate(folder.path());
    let tls = ListenerTls::load(&folder.path().join("cert.pem"), &folder.path().join("key.pem")).unwrap();
    let options = BrokerOptions { tls: Some(tls), ..BrokerOptions::local(per_node()) };
    let broker = EmbeddedBroker::start(options).await.unwrap();
    let inner = broker.url().strip_prefix("mqtt://").unwrap().to_owned();
    assert_ne!(inner, broker.address().to_string());
    let inside = || async { RawClient::over(TcpStream::connect(&inner).await.unwrap()) };
    let (mut coordinator, ack) = inside().await.log_in(coordinator()).await;
    assert_eq!(ack.code, ConnectReturnCode::Success);
    coordinator.subscribe(&["evenhand/v1/home/node/+/update"]).await;
    let node = connected(&broker, root.clone()).await.unwrap();
    let (mut node, ack) = node.log_in(named("m1")).await;
    assert_eq!(ack.code, ConnectReturnCode::Success);
    node.publish("evenhand/v1/home/node/m1/update", vec![b'x'; 100_000], false).await;
    assert_eq!(text(&coordinator.delivery().await).1.len(), 100_000);
    // The inner address is for the coordinator alone, and the outer one speaks nothing but TLS.
    let (_client, ack) = inside().await.log_in(named("m1")).await;
    assert_eq!(ack.code, ConnectReturnCode::NotAuthorized);
    let mut plain = TcpStream::connect(broker.address()).await.unwrap();
    let mut connect = bytes::BytesMut::new();
    named("m2").write(&mut connect).unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut plain, &connect).await.unwrap();
    let mut answer = Vec::new();
    let _reset = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(&[0x20, 2]), "no CONNACK in clear");
    // A client that trusts another authority does not log in.
    let other = tempfile::tempdir().unwrap();
    assert!(connected(&broker, certificate(other.path())).await.is_err());
}

#[test]
fn files_that_do_not_fit_are_refused_in_a_sentence() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    certificate(one.path());
    certificate(other.path());
    let said = |certificate: &Path, key: &Path| ListenerTls::load(certificate, key).unwrap_err().to_string();
    let (cert, key) = (one.path().join("cert.pem"), one.path().join("key.pem"));
    assert!(said(&cert, &other.path().join("key.pem")).contains("make both anew"));
    assert!(said(&key, &key).contains("holds no certificate"));
    assert!(said(&cert, &one.path().join("gone")).contains("name a PEM file"));
}
