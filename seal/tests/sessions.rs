//! Sessions between nodes and a coordinator: who is believed, and who is not.
#![allow(clippy::unwrap_used)]

use evenhand_protocol::envelope;
use evenhand_protocol::identity::{FederationId, NodeId};
use evenhand_protocol::limits::MessageLimits;
use evenhand_protocol::message::{Life, Message, Status};
use evenhand_protocol::topic::{self, Channel};
use evenhand_seal::{
    Admission, CoordinatorReceived, CoordinatorSeal, Entropy, Introduction, KeyPair, NodeIdentity,
    NodeReceived, NodeSeal, OpenDoor, PublicKey, Rejection, SealError, SealedMessage,
};

fn federation(name: &str) -> FederationId {
    FederationId::new(name).unwrap()
}

fn id(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

fn keys(seed: u8) -> KeyPair {
    KeyPair::generate(&mut Entropy::from_seed([seed; 32]))
}

fn coordinator(seed: u8) -> CoordinatorSeal {
    CoordinatorSeal::new(federation("town"), keys(100), Entropy::from_seed([seed; 32]))
}

/// A node `m1` in its start of this number, by keys of its own.
fn node(session: u64) -> NodeSeal {
    let identity = NodeIdentity::new(federation("town"), id("m1"), keys(1)).knowing(keys(100).public());
    NodeSeal::new(identity, session, Entropy::from_seed([session as u8 + 50; 32]))
}

fn topic(channel: Channel) -> String {
    topic::node(&federation("town"), &id("m1"), channel)
}

fn to(coordinator: &mut CoordinatorSeal, message: &SealedMessage) -> CoordinatorReceived {
    coordinator.receive(&message.topic, &message.bytes, 0, &mut OpenDoor)
}

fn welcome(received: CoordinatorReceived) -> SealedMessage {
    match received {
        CoordinatorReceived::Reply(welcome) => welcome,
        other => panic!("{other:?}"),
    }
}

fn secure(node: &mut NodeSeal, coordinator: &mut CoordinatorSeal) -> SealedMessage {
    let hello = node.connected(0).remove(0);
    let welcome = welcome(to(coordinator, &hello));
    assert_eq!(node.receive(&welcome.topic, &welcome.bytes, 0), NodeReceived::Secured { learnt: None });
    hello
}

fn accepted(received: CoordinatorReceived) -> Vec<u8> {
    match received {
        CoordinatorReceived::Message { message, .. } => message,
        other => panic!("{other:?}"),
    }
}

fn refused(received: CoordinatorReceived) -> SealError {
    match received {
        CoordinatorReceived::Refused(error) => error,
        other => panic!("{other:?}"),
    }
}

/// Secures the node and lets it say something.
fn speaking(session: u64, coordinator: &mut CoordinatorSeal) -> (NodeSeal, SealedMessage) {
    let mut node = node(session);
    secure(&mut node, coordinator);
    let birth = node.seal(&topic(Channel::Status), b"born").unwrap();
    assert_eq!(accepted(to(coordinator, &birth)), b"born");
    (node, birth)
}

#[test]
fn what_was_recorded_is_refused_by_the_same_run_and_by_later_ones() {
    let mut first = coordinator(1);
    let mut meter = node(1);
    let hello = secure(&mut meter, &mut first);
    let update = meter.seal(&topic(Channel::Update), b"update").unwrap();
    assert_eq!(accepted(to(&mut first, &update)), b"update");
    let order = first.seal(&topic(Channel::Task), b"order", false).remove(0);
    assert_eq!(meter.receive(&order.topic, &order.bytes, 0), NodeReceived::Message(b"order".to_vec()));

    assert_eq!(refused(to(&mut first, &hello)), SealError::Outdated);
    assert_eq!(refused(to(&mut first, &update)), SealError::Replayed);
    assert_eq!(meter.receive(&order.topic, &order.bytes, 0), NodeReceived::Refused(SealError::Replayed));
    // The coordinator starts again with the same keys: it answers an old hello, which helps nobody.
    let mut second = coordinator(2);
    let useless = welcome(to(&mut second, &hello));
    assert_eq!(meter.receive(&useless.topic, &useless.bytes, 0), NodeReceived::Refused(SealError::NoSession));
    assert_eq!(refused(to(&mut second, &update)), SealError::NoSession);
    let (mut again, _) = speaking(2, &mut second);
    for recorded in [&hello, &update] {
        assert!(matches!(to(&mut second, recorded), CoordinatorReceived::Refused(_)));
    }
    for recorded in [&order, &useless] {
        assert!(matches!(again.receive(&recorded.topic, &recorded.bytes, 0), NodeReceived::Refused(_)));
    }
    let alive = again.seal(&topic(Channel::Update), b"alive").unwrap();
    assert_eq!(accepted(to(&mut second, &alive)), b"alive");
}

#[test]
fn an_old_start_of_a_node_cannot_come_back() {
    let mut coordinator = coordinator(1);
    let mut old = node(1);
    let hello = secure(&mut old, &mut coordinator);
    let birth = old.seal(&topic(Channel::Status), b"old").unwrap();
    accepted(to(&mut coordinator, &birth));
    let (mut new, _) = speaking(2, &mut coordinator);
    assert_eq!(refused(to(&mut coordinator, &hello)), SealError::Outdated);
    assert_eq!(refused(to(&mut coordinator, &birth)), SealError::Replayed);
    let update = new.seal(&topic(Channel::Update), b"new").unwrap();
    assert_eq!(accepted(to(&mut coordinator, &update)), b"new");
}

#[test]
fn messages_belong_to_one_node_one_federation_one_topic_and_one_key() {
    let mut ours = coordinator(1);
    let (mut meter, _) = speaking(1, &mut ours);
    let update = meter.seal(&topic(Channel::Update), b"update").unwrap();
    let other_node = topic::node(&federation("town"), &id("m2"), Channel::Update);
    let other_town = topic::node(&federation("city"), &id("m1"), Channel::Update);
    let misplaced = [(&other_node, SealError::NoSession), (&other_town, SealError::Topic)];
    for (topic, error) in misplaced {
        assert_eq!(refused(ours.receive(topic, &update.bytes, 0, &mut OpenDoor)), error);
    }
    assert_eq!(
        refused(ours.receive(&topic(Channel::Status), &update.bytes, 0, &mut OpenDoor)),
        SealError::Forged
    );
    assert_eq!(
        refused(ours.receive(&topic(Channel::Task), &update.bytes, 0, &mut OpenDoor)),
        SealError::Topic
    );

    // A hello to another federation, under another name, or to another key.
    let mut city = CoordinatorSeal::new(federation("city"), keys(100), Entropy::from_seed([9; 32]));
    let mut stranger = CoordinatorSeal::new(federation("town"), keys(101), Entropy::from_seed([9; 32]));
    let hello = node(3).connected(0).remove(0);
    let elsewhere = topic::node(&federation("city"), &id("m1"), Channel::Status);
    assert_eq!(refused(city.receive(&elsewhere, &hello.bytes, 0, &mut OpenDoor)), SealError::Forged);
    let as_other = topic::node(&federation("town"), &id("m2"), Channel::Status);
    assert_eq!(refused(ours.receive(&as_other, &hello.bytes, 0, &mut OpenDoor)), SealError::Forged);
    assert_eq!(refused(to(&mut stranger, &hello)), SealError::Forged);
    assert_eq!(ours.secured(), 1);
}

#[test]
fn what_is_not_sealed_is_refused() {
    let mut ours = coordinator(1);
    let dead = envelope::encode(&Message::Status(Status { session: 9, life: Life::Dead }));
    assert_eq!(refused(ours.receive(&topic(Channel::Status), &dead, 0, &mut OpenDoor)), SealError::NotSealed);
    let (mut meter, _) = speaking(1, &mut ours);
    assert_eq!(refused(ours.receive(&topic(Channel::Status), &dead, 0, &mut OpenDoor)), SealError::NotSealed);
    let received = meter.receive(&topic(Channel::Task), &dead, 0);
    assert_eq!(received, NodeReceived::Refused(SealError::NotSealed));
    let received = meter.receive(&topic::manifest(&federation("town")), &dead, 0);
    assert_eq!(received, NodeReceived::Refused(SealError::NotSealed));
}

#[test]
fn a_forged_welcome_does_not_end_the_wait_for_the_real_one() {
    let mut ours = coordinator(1);
    let mut meter = node(1);
    let hello = meter.connected(0).remove(0);
    let welcome = welcome(to(&mut ours, &hello));
    for bit in 8..welcome.bytes.len() * 8 {
        let mut forged = welcome.bytes.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(
            meter.receive(&welcome.topic, &forged, 0),
            NodeReceived::Refused(SealError::Forged),
            "{bit}"
        );
    }
    assert_eq!(meter.receive(&welcome.topic, &welcome.bytes, 0), NodeReceived::Secured { learnt: None });
    let born = meter.seal(&topic(Channel::Status), b"born").unwrap();
    assert_eq!(accepted(to(&mut ours, &born)), b"born");
}

#[test]
fn a_will_ends_its_own_connection_once() {
    let mut ours = coordinator(1);
    let mut meter = node(7);
    let first = meter.will();
    secure(&mut meter, &mut ours);
    accepted(to(&mut ours, &meter.seal(&topic(Channel::Status), b"born").unwrap()));
    let forged =
        SealedMessage { bytes: first.bytes[..16].iter().chain(&[0]).copied().collect(), ..first.clone() };
    assert_eq!(refused(to(&mut ours, &forged)), SealError::Forged);
    let dead = Message::Status(Status { session: 7, life: Life::Dead });
    let limits = MessageLimits::default();
    assert_eq!(envelope::decode(&accepted(to(&mut ours, &first)), &limits).unwrap(), dead);
    assert_eq!(refused(to(&mut ours, &first)), SealError::Forged);

    // The will of the connection before may come after the next birth: it ends nothing.
    meter.disconnected();
    let second = meter.will();
    secure(&mut meter, &mut ours);
    accepted(to(&mut ours, &meter.seal(&topic(Channel::Status), b"born").unwrap()));
    assert_eq!(refused(to(&mut ours, &first)), SealError::Forged);
    assert_eq!(envelope::decode(&accepted(to(&mut ours, &second)), &limits).unwrap(), dead);
}

#[test]
fn nodes_greet_a_coordinator_that_started_again_and_no_other() {
    let mut ours = coordinator(1);
    let (mut meter, _) = speaking(1, &mut ours);
    let beacon = ours.beacon();
    assert!(beacon.retain);
    assert_eq!(meter.receive(&beacon.topic, &beacon.bytes, 5_000), NodeReceived::Nothing);
    let mut restarted = coordinator(2);
    let beacon = restarted.beacon();
    let NodeReceived::Reply(hello) = meter.receive(&beacon.topic, &beacon.bytes, 5_000) else {
        panic!("a hello")
    };
    // Until it is welcomed, the session goes on: a forged beacon costs one hello a second at most.
    let order = ours.seal(&topic(Channel::Task), b"order", false).remove(0);
    assert_eq!(meter.receive(&order.topic, &order.bytes, 5_001), NodeReceived::Message(b"order".to_vec()));
    assert_eq!(meter.receive(&beacon.topic, &beacon.bytes, 5_500), NodeReceived::Nothing);
    let welcome = welcome(to(&mut restarted, &hello));
    assert_eq!(meter.receive(&welcome.topic, &welcome.bytes, 5_600), NodeReceived::Secured { learnt: None });
    assert_eq!(meter.due(1_000_000), None);
}

#[test]
fn false_beacons_cost_ever_fewer_hellos_and_no_session() {
    let mut ours = coordinator(1);
    let (mut meter, _) = speaking(1, &mut ours);
    let mut hellos = 0;
    for second in 1..=600u64 {
        let beacon =
            CoordinatorSeal::new(federation("town"), keys(66), Entropy::from_seed([second as u8; 32]))
                .beacon();
        let mut said = match meter.receive(&beacon.topic, &beacon.bytes, second * 1_000) {
            NodeReceived::Reply(hello) => Some(hello),
            _ => None,
        };
        said = said.or_else(|| meter.due(second * 1_000));
        if let Some(hello) = said {
            hellos += 1;
            let welcome = welcome(ours.receive(&hello.topic, &hello.bytes, second * 1_000, &mut OpenDoor));
            let received = meter.receive(&welcome.topic, &welcome.bytes, second * 1_000);
            assert_eq!(received, NodeReceived::Nothing, "the session goes on");
        }
        let update = meter.seal(&topic(Channel::Update), b"update").unwrap();
        assert_eq!(accepted(to(&mut ours, &update)), b"update");
    }
    assert!((5..20).contains(&hellos), "{hellos}");
}

#[test]
fn who_knows_no_coordinator_trusts_the_first_and_keeps_to_it() {
    let mut ours = coordinator(1);
    let identity = NodeIdentity::new(federation("town"), id("m1"), keys(1));
    let mut meter = NodeSeal::new(identity, 1, Entropy::from_seed([5; 32]));
    assert_eq!(meter.connected(0), []);
    let beacon = ours.beacon();
    let NodeReceived::Reply(_lost) = meter.receive(&beacon.topic, &beacon.bytes, 0) else {
        panic!("a hello")
    };
    assert_eq!(meter.due(4_000), None);
    let hello = meter.due(5_000).expect("it greets again");
    let welcome = welcome(to(&mut ours, &hello));
    let learnt = NodeReceived::Secured { learnt: Some(ours.public()) };
    assert_eq!(meter.receive(&welcome.topic, &welcome.bytes, 5_000), learnt);
    // Another key's beacon makes it greet the one it trusts.
    let mut impostor = CoordinatorSeal::new(federation("town"), keys(66), Entropy::from_seed([6; 32]));
    let beacon = impostor.beacon();
    let NodeReceived::Reply(hello) = meter.receive(&beacon.topic, &beacon.bytes, 9_000) else {
        panic!("a hello")
    };
    assert_eq!(refused(to(&mut impostor, &hello)), SealError::Forged);
    assert!(matches!(to(&mut ours, &hello), CoordinatorReceived::Reply(_)));
}

#[test]
fn who_sees_no_beacon_asks_for_it() {
    let mut coordinator = coordinator(1);
    let identity = NodeIdentity::new(federation("town"), id("m1"), keys(1));
    let mut node = NodeSeal::new(identity, 1, Entropy::from_seed([9; 32]));
    assert!(node.connected(0).is_empty() && node.due(999).is_none(), "a retained beacon may be on its way");
    let question = node.due(1_000).unwrap();
    assert!(node.due(1_001).is_none(), "once, and again much later");
    assert!(node.due(60_000).is_some());
    let beacon = welcome(to(&mut coordinator, &question));
    assert_eq!(beacon.topic, topic(Channel::Task));
    let NodeReceived::Reply(hello) = node.receive(&beacon.topic, &beacon.bytes, 60_000) else {
        panic!("a hello");
    };
    let admitted = welcome(to(&mut coordinator, &hello));
    let secured = node.receive(&admitted.topic, &admitted.bytes, 60_000);
    assert_eq!(secured, NodeReceived::Secured { learnt: Some(keys(100).public()) });
    // Questions use up what handshakes may: nobody is made to answer without end.
    let refusals =
        (0..1_000).filter(|_| matches!(to(&mut coordinator, &question), CoordinatorReceived::Refused(_)));
    assert!(refusals.count() > 900);
}

#[test]
fn a_new_key_of_the_coordinator_is_learnt_from_the_old_one() {
    let mut ours = coordinator(1);
    let (mut meter, _) = speaking(1, &mut ours);
    ours.set_keys(keys(200), Some(keys(100)));
    let beacon = ours.beacon();
    let NodeReceived::Reply(hello) = meter.receive(&beacon.topic, &beacon.bytes, 9_000) else {
        panic!("a hello")
    };
    let reply = welcome(to(&mut ours, &hello));
    let learnt = NodeReceived::Secured { learnt: Some(keys(200).public()) };
    assert_eq!(meter.receive(&reply.topic, &reply.bytes, 9_000), learnt);
    // The overlap ends: who learnt the key goes on, who was away is not heard.
    ours.set_keys(keys(200), None);
    let beacon = ours.beacon();
    let NodeReceived::Reply(hello) = meter.receive(&beacon.topic, &beacon.bytes, 19_000) else {
        panic!("a hello")
    };
    assert!(matches!(to(&mut ours, &hello), CoordinatorReceived::Reply(_)));
    assert_eq!(refused(to(&mut ours, &node(2).connected(0).remove(0))), SealError::Forged);
}

#[test]
fn what_is_retained_is_sealed_anew_to_each_session() {
    let mut ours = coordinator(1).repeating_manifest();
    let manifest = topic::manifest(&federation("town"));
    assert_eq!(ours.seal(&manifest, b"manifest", true), []);
    assert_eq!(ours.seal(&topic(Channel::Account), b"lost", true), [], "nobody is there");
    let mut meter = node(1);
    for start in 0..2 {
        secure(&mut meter, &mut ours);
        let born = meter.seal(&topic(Channel::Status), b"born").unwrap();
        let CoordinatorReceived::Message { replies, .. } = to(&mut ours, &born) else { panic!("a message") };
        let read: Vec<NodeReceived> =
            replies.iter().map(|it| meter.receive(&it.topic, &it.bytes, 0)).collect();
        let of = |bytes: &[u8]| NodeReceived::Message(bytes.to_vec());
        match start {
            0 => assert_eq!(read, [of(b"manifest")]),
            _ => assert_eq!(read, [of(b"manifest"), of(b"account")]),
        }
        assert_eq!(ours.seal(&topic(Channel::Account), b"account", true).len(), 1);
    }
    assert!(
        ours.seal(&manifest, b"next", true).iter().all(|it| !it.retain && it.topic == topic(Channel::Task))
    );
    ours.forget(&id("m1"));
    assert_eq!(ours.seal(&topic(Channel::Account), b"account", true), []);
}

/// Admits one key, and says why not to others.
struct OneKey(PublicKey, Rejection);

impl Admission for OneKey {
    fn admit(&mut self, introduction: &Introduction<'_>) -> Result<(), Rejection> {
        if introduction.key == self.0 { Ok(()) } else { Err(self.1) }
    }
}

#[test]
fn who_is_not_admitted_is_told_unless_it_was_revoked() {
    let mut ours = coordinator(1);
    let mut meter = node(1);
    let hello = meter.connected(0).remove(0);
    let received =
        ours.receive(&hello.topic, &hello.bytes, 0, &mut OneKey(keys(2).public(), Rejection::OtherKey));
    let CoordinatorReceived::Told(SealError::Rejected(Rejection::OtherKey), told) = received else {
        panic!()
    };
    assert_eq!(meter.receive(&told.topic, &told.bytes, 0), NodeReceived::Rejected(Rejection::OtherKey));
    let hello = meter.due(5_000).expect("it asks again");
    let mut revoked = OneKey(keys(2).public(), Rejection::Revoked);
    let received = ours.receive(&hello.topic, &hello.bytes, 0, &mut revoked);
    assert_eq!(refused(received), SealError::Rejected(Rejection::Revoked));
    assert_eq!(meter.seal(&topic(Channel::Update), b"update"), None);
}

#[test]
fn handshakes_of_strangers_do_not_use_up_those_of_nodes() {
    let mut ours = coordinator(1);
    let (mut meter, _) = speaking(1, &mut ours);
    let junk = |ours: &mut CoordinatorSeal, name: &str| {
        let topic = topic::node(&federation("town"), &id(name), Channel::Status);
        refused(ours.receive(&topic, &[0xe2; 150], 1_000, &mut OpenDoor))
    };
    let refusals: Vec<SealError> = (0..2_000).map(|n| junk(&mut ours, &format!("ghost-{n}"))).collect();
    let tried = refusals.iter().filter(|error| **error == SealError::Forged).count();
    assert!((500..1_000).contains(&tried), "{tried}");
    assert_eq!(refusals.last(), Some(&SealError::TooMany));
    meter.disconnected();
    let hello = meter.connected(1_000).remove(0);
    assert!(matches!(
        ours.receive(&hello.topic, &hello.bytes, 1_000, &mut OpenDoor),
        CoordinatorReceived::Reply(_)
    ));
}

#[test]
fn a_hundred_thousand_changed_messages_are_refused() {
    let mut ours = coordinator(1);
    let (mut meter, birth) = speaking(1, &mut ours);
    let update = meter.seal(&topic(Channel::Update), &[7; 300]).unwrap();
    let order = ours.seal(&topic(Channel::Task), &[8; 300], false).remove(0);
    let hello = node(9).connected(0).remove(0);
    let beacon = ours.beacon();
    let will = meter.will();
    let originals = [&update, &order, &hello, &beacon, &will, &birth];
    let mut random = Entropy::from_seed([77; 32]);
    let mut refused = [0u32; 2];
    for n in 0..100_000usize {
        let original = originals[n % originals.len()];
        let mut bytes = original.bytes.clone();
        let [kind, at, with, count, ..]: [u8; 8] = random.bytes();
        let place = usize::from(at) * bytes.len() / 256;
        match kind % 4 {
            0 => bytes[place] ^= with.max(1),
            1 => bytes.truncate(place),
            2 => bytes.extend(std::iter::repeat_n(with, usize::from(count) + 1)),
            _ => bytes.iter_mut().skip(place).for_each(|byte| *byte = byte.wrapping_add(with.max(1))),
        }
        let topic = match with % 3 {
            0 => originals[usize::from(count) % originals.len()].topic.clone(),
            _ => original.topic.clone(),
        };
        match ours.receive(&topic, &bytes, n as u64, &mut OpenDoor) {
            CoordinatorReceived::Refused(_) => refused[0] += 1,
            other => panic!("message {n}: {other:?}"),
        }
        match meter.receive(&topic, &bytes, n as u64) {
            NodeReceived::Refused(_) => refused[1] += 1,
            // A changed beacon is as good as any: it may be worth a hello.
            NodeReceived::Nothing | NodeReceived::Reply(_) => {
                assert_eq!(bytes[0], beacon.bytes[0]);
                assert!([&beacon.topic, &order.topic].contains(&&topic), "{topic}");
            }
            other => panic!("message {n}: {other:?}"),
        }
    }
    assert_eq!(refused[0], 100_000);
    assert!(refused[1] > 80_000, "{refused:?}");
    assert_eq!(ours.secured(), 1);
    // And both go on.
    assert_eq!(accepted(to(&mut ours, &update)), [7; 300]);
    assert_eq!(meter.receive(&order.topic, &order.bytes, 0), NodeReceived::Message(vec![8; 300]));
}
