//! A broker that wants a certificate and a password, both of the node's own.

use std::fs;
use std::process::Command;

use evenhand_link::{LinkOptions, Tls, TlsFiles};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use super::*;
use crate::support::coordinator::ScriptedCoordinator;

fn certificate(folder: &Path, name: &str, host: &str, issuer: &Issuer<'static, KeyPair>) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    fs::write(folder.join(format!("{name}.pem")), params.signed_by(&key, issuer).unwrap().pem()).unwrap();
    fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
}

/// A mosquitto whose folder holds an authority, certificates and passwords for `server`, `node` and `coordinator`.
fn strict_broker() -> Mosquitto {
    let folder = tempfile::tempdir().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, "authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    fs::write(folder.path().join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
    let issuer = Issuer::new(params, key);
    certificate(folder.path(), "server", "127.0.0.1", &issuer);
    certificate(folder.path(), "node", "node", &issuer);
    certificate(folder.path(), "coordinator", "coordinator", &issuer);
    for (name, flags) in [("m1", &["-c", "-b"][..]), ("coordinator", &["-b"])] {
        let mut command = Command::new("mosquitto_passwd");
        let made = command.args(flags).arg(folder.path().join("passwords")).args([name, "s3cret"]).status();
        assert!(made.unwrap().success());
    }
    let lines = "allow_anonymous false\npassword_file FOLDER/passwords\nrequire_certificate true\n\
                 cafile FOLDER/ca.pem\ncertfile FOLDER/server.pem\nkeyfile FOLDER/server.key\n";
    Mosquitto::start_in(folder, lines, true)
}

#[tokio::test]
async fn a_node_proves_who_it_is_by_certificate_and_password() {
    let (broker, folder) = (strict_broker(), tempfile::tempdir().unwrap());
    let file = |name: &str| broker.folder().join(name);
    let files = TlsFiles {
        ca: Some(file("ca.pem")),
        certificate: Some(file("coordinator.pem")),
        key: Some(file("coordinator.key")),
    };
    let mut coordinator = ScriptedCoordinator::connect_with(LinkOptions {
        tls: Some(Tls::load(&files).unwrap()),
        ..LinkOptions::new(broker.broker().with_credentials("coordinator", "s3cret"), "coordinator")
    });
    let text = configuration(&broker, folder.path(), "", "").replace(
        "[privacy]",
        &format!(
            "username = \"m1\"\npassword_env = \"M1_PASSWORD\"\nca_file = {:?}\ncertificate_file = {:?}\nkey_file = {:?}\n[privacy]",
            file("ca.pem"),
            file("node.pem"),
            file("node.key")
        ),
    );
    let config = configure(folder.path(), &text);
    let refused = NodeProcess::start(PROGRAM, &config, &[("M1_PASSWORD", "wrong")]);
    refused.wait_for_log("no connection to the broker", 1);
    assert_eq!(refused.said("user name or password") + refused.said("authorise"), 1);
    refused.terminate();
    refused.wait();

    let node = NodeProcess::start(PROGRAM, &config, &[("M1_PASSWORD", "s3cret")]);
    coordinator.welcome().await;
    coordinator.train(1, &coordinator.model.initial_weights(), true).await;
    assert_eq!(coordinator.update().await.round, 1);
    node.terminate();
    assert!(node.wait().0.success());
}
