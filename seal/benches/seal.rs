//! Time of a handshake, and of sealing and opening messages.

use divan::{Bencher, black_box};
use evenhand_protocol::identity::{FederationId, NodeId};
use evenhand_protocol::topic::{self, Channel};
use evenhand_seal::{
    CoordinatorReceived, CoordinatorSeal, Entropy, KeyPair, NodeIdentity, NodeReceived, NodeSeal, OpenDoor,
};

fn main() {
    divan::main();
}

fn names() -> (FederationId, NodeId) {
    (FederationId::new("town").expect("a name"), NodeId::new("meter-7").expect("a name"))
}

fn strangers() -> (NodeSeal, CoordinatorSeal) {
    let (federation, node) = names();
    let mut entropy = Entropy::from_seed([1; 32]);
    let keys = KeyPair::generate(&mut entropy);
    let identity = NodeIdentity::new(federation.clone(), node, KeyPair::generate(&mut entropy));
    let identity = identity.knowing(keys.public());
    (
        NodeSeal::new(identity, 1, Entropy::from_seed([2; 32])),
        CoordinatorSeal::new(federation, keys, Entropy::from_seed([3; 32])),
    )
}

fn greet(node: &mut NodeSeal, coordinator: &mut CoordinatorSeal) {
    let hello = node.connected(0).remove(0);
    match coordinator.receive(&hello.topic, &hello.bytes, 0, &mut OpenDoor) {
        CoordinatorReceived::Reply(welcome) => {
            let secured = node.receive(&welcome.topic, &welcome.bytes, 0);
            assert!(matches!(secured, NodeReceived::Secured { .. }));
        }
        other => panic!("{other:?}"),
    }
}

#[divan::bench]
fn handshake_of_both_sides(bencher: Bencher<'_, '_>) {
    bencher
        .with_inputs(strangers)
        .bench_values(|(mut node, mut coordinator)| greet(&mut node, &mut coordinator));
}

/// Bytes of a measurement, of the update of a small model, and of one of MNIST.
const BYTES: [usize; 3] = [600, 7_600, 417_000];

#[divan::bench(args = BYTES)]
fn seal(bencher: Bencher<'_, '_>, bytes: usize) {
    let (mut node, mut coordinator) = strangers();
    greet(&mut node, &mut coordinator);
    let (federation, id) = names();
    let topic = topic::node(&federation, &id, Channel::Update);
    let message = vec![7; bytes];
    bencher.bench_local(|| black_box(node.seal(&topic, &message)));
}

#[divan::bench(args = BYTES)]
fn open(bencher: Bencher<'_, '_>, bytes: usize) {
    let (mut node, mut coordinator) = strangers();
    greet(&mut node, &mut coordinator);
    let (federation, id) = names();
    let topic = topic::node(&federation, &id, Channel::Update);
    let message = vec![7; bytes];
    bencher
        .with_inputs(|| node.seal(&topic, &message).expect("there is a session").bytes)
        .bench_local_values(|sealed| black_box(coordinator.receive(&topic, &sealed, 0, &mut OpenDoor)));
}
