//! TLS with an authority of our own, and certificates on both sides.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::time::Duration;

use evenhand_link::testing::Mosquitto;
use evenhand_link::{Events, Link, LinkOptions, Tls, TlsError, TlsFiles};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

const TIMEOUT: Duration = Duration::from_secs(60);

fn authority(folder: &Path, name: &str) -> Issuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    fs::write(folder.join(format!("{name}.pem")), params.self_signed(&key).unwrap().pem()).unwrap();
    Issuer::new(params, key)
}

fn certificate(folder: &Path, name: &str, host: &str, issuer: &Issuer<'static, KeyPair>) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    let certificate = params.signed_by(&key, issuer).unwrap();
    fs::write(folder.join(format!("{name}.pem")), certificate.pem()).unwrap();
    fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
}

fn broker() -> Mosquitto {
    let folder = tempfile::TempDir::new().unwrap();
    let issuer = authority(folder.path(), "ca");
    authority(folder.path(), "stranger");
    certificate(folder.path(), "server", "127.0.0.1", &issuer);
    certificate(folder.path(), "client", "node", &issuer);
    let configuration = "allow_anonymous true\nrequire_certificate true\ncafile FOLDER/ca.pem\n\
                         certfile FOLDER/server.pem\nkeyfile FOLDER/server.key\n";
    Mosquitto::start_in(folder, configuration, true)
}

fn options(broker: &Mosquitto, ca: &str, certificate: Option<&str>) -> LinkOptions {
    let file = |name: String| broker.folder().join(name);
    let files = TlsFiles {
        ca: Some(file(format!("{ca}.pem"))),
        certificate: certificate.map(|name| file(format!("{name}.pem"))),
        key: certificate.map(|name| file(format!("{name}.key"))),
    };
    LinkOptions { tls: Some(Tls::load(&files).unwrap()), ..LinkOptions::new(broker.broker(), "node") }
}

/// The error of the first connection, once an attempt has failed.
async fn connection_error(events: &mut Events) -> String {
    loop {
        let error = events.first_connection(Duration::from_millis(200)).await.unwrap_err().to_string();
        if !error.contains("no answer within") {
            return error;
        }
    }
}

#[tokio::test]
async fn certificates_on_both_sides_are_accepted() {
    let broker = broker();
    let (publisher, mut events) = Link::connect(options(&broker, "ca", Some("client"))).unwrap();
    events.first_connection(TIMEOUT).await.unwrap();
    publisher.close(TIMEOUT).await.unwrap();
}

#[tokio::test]
async fn a_broker_of_another_authority_is_not_trusted() {
    let broker = broker();
    let (_publisher, mut events) = Link::connect(options(&broker, "stranger", Some("client"))).unwrap();
    let error = connection_error(&mut events).await;
    assert!(error.contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_broker_that_requires_a_certificate_refuses_clients_without() {
    let broker = broker();
    let (_publisher, mut events) = Link::connect(options(&broker, "ca", None)).unwrap();
    let error = connection_error(&mut events).await;
    assert!(error.contains("certificate") || error.contains("alert"), "{error}");
}

#[test]
fn unusable_files_are_named() {
    let folder = tempfile::TempDir::new().unwrap();
    let issuer = authority(folder.path(), "ca");
    certificate(folder.path(), "client", "node", &issuer);
    let file = |name: &str| Some(folder.path().join(name));
    let absent = Tls::load(&TlsFiles { ca: file("absent.pem"), ..TlsFiles::default() }).unwrap_err();
    assert!(absent.to_string().contains("absent.pem"), "{absent}");
    let no_certificate = Tls::load(&TlsFiles { ca: file("client.key"), ..TlsFiles::default() }).unwrap_err();
    assert!(matches!(no_certificate, TlsError::NoCertificate(_)), "{no_certificate}");
    let unpaired = TlsFiles { ca: file("ca.pem"), certificate: file("client.pem"), key: None };
    assert!(matches!(Tls::load(&unpaired), Err(TlsError::Unpaired)));
    let wrong_key = TlsFiles { ca: file("ca.pem"), certificate: file("client.pem"), key: file("client.pem") };
    assert!(matches!(Tls::load(&wrong_key), Err(TlsError::File { .. })));
}
