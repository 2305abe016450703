//! The link against a real broker.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::time::Duration;

use evenhand_link::testing::{Mosquitto, free_port};
use evenhand_link::{Broker, Events, Link, LinkError, LinkEvent, LinkOptions, OutboundMessage, Publisher};
use evenhand_program::exit::Exit;
use evenhand_protocol::chunk::{Assembler, Transfer};
use evenhand_protocol::envelope;
use evenhand_protocol::identity::Digest;
use evenhand_protocol::limits::MessageLimits;
use evenhand_protocol::message::{Answer, Life, Message, MissingChunks, Order, Status};
use rumqttc::{AsyncClient, Event, EventLoop, MqttOptions, Packet, QoS};

const TASK: &str = "evenhand/v1/f/node/n/task";
const UPDATE: &str = "evenhand/v1/f/node/n/update";
const STATUS: &str = "evenhand/v1/f/node/n/status";
const AMPLE: Duration = Duration::from_secs(60);

fn options(broker: &Mosquitto, client_id: &str, subscriptions: &[&str]) -> LinkOptions {
    LinkOptions {
        subscriptions: subscriptions.iter().map(|filter| (*filter).to_owned()).collect(),
        ..LinkOptions::new(broker.broker(), client_id)
    }
}

async fn linked(options: LinkOptions) -> (Publisher, Events) {
    let (publisher, mut events) = Link::connect(options).unwrap();
    events.first_connection(AMPLE).await.unwrap();
    (publisher, events)
}

/// The next message, whatever happens to the connection meanwhile.
async fn message(events: &mut Events) -> (String, Message) {
    loop {
        match events.next().await.unwrap() {
            LinkEvent::Message { topic, message, .. } => return (topic, message),
            LinkEvent::Malformed { topic, error, .. } => panic!("malformed on {topic}: {error}"),
            LinkEvent::Connected { .. } | LinkEvent::Disconnected { .. } => {}
        }
    }
}

/// Why there is no connection, once an attempt has failed.
async fn refusal(events: &mut Events) -> LinkError {
    loop {
        let error = events.first_connection(Duration::from_millis(200)).await.unwrap_err();
        if !error.to_string().contains("no answer within") {
            return error;
        }
    }
}

async fn connected(events: &mut Events) -> bool {
    loop {
        if let LinkEvent::Connected { session_present } = events.next().await.unwrap() {
            return session_present;
        }
    }
}

fn numbered(round: u32) -> Message {
    Message::Answer(Answer::NeedWeights { round })
}

fn number(message: &Message) -> u32 {
    match message {
        Message::Answer(Answer::NeedWeights { round }) => *round,
        other => panic!("not a numbered message: {other:?}"),
    }
}

fn long_message(bytes: usize) -> Message {
    let onnx = (0..bytes).map(|position| (position * position / 7) as u8).collect();
    Message::Order(Order::Graph { graph: Digest::of(b"graph"), onnx })
}

fn dead(session: u64) -> Message {
    Message::Status(Status { session, life: Life::Dead })
}

/// A client that knows nothing of links, to look behind them and to misbehave.
fn stranger(broker: &Mosquitto) -> (AsyncClient, EventLoop) {
    let mut options = MqttOptions::new("stranger", broker.broker().host(), broker.broker().port());
    options.set_max_packet_size(1 << 20, 1 << 20);
    AsyncClient::new(options, 100)
}

async fn next_packet(stranger: &mut EventLoop) -> rumqttc::Publish {
    loop {
        if let Event::Incoming(Packet::Publish(packet)) = stranger.poll().await.unwrap() {
            return packet;
        }
    }
}

async fn until_subscribed(stranger: &mut EventLoop) {
    while !matches!(stranger.poll().await.unwrap(), Event::Incoming(Packet::SubAck(_))) {}
}

#[tokio::test]
async fn short_and_long_messages_arrive_whole() {
    let broker = Mosquitto::start();
    let (coordinator, _events) = linked(options(&broker, "coordinator", &[])).await;
    let (node, mut tasks) = linked(options(&broker, "node", &[TASK])).await;
    for sent in [long_message(10), long_message(2_000_000), long_message(300_000)] {
        coordinator.publish(TASK, &sent, false).await.unwrap();
        assert_eq!(message(&mut tasks).await, (TASK.to_owned(), sent));
    }
    let (up, down) = (coordinator.traffic().bytes_up, node.traffic().bytes_down);
    assert_eq!(up, down);
    assert!((2_300_010..2_302_000).contains(&up), "{up}");
    coordinator.close(AMPLE).await.unwrap();
    assert!(matches!(coordinator.publish(TASK, &numbered(1), false).await, Err(LinkError::Closed)));
}

#[tokio::test]
async fn no_packet_exceeds_the_payload_limit() {
    let broker = Mosquitto::start();
    let (client, mut stranger) = stranger(&broker);
    client.subscribe("#", QoS::AtLeastOnce).await.unwrap();
    until_subscribed(&mut stranger).await;
    let small = LinkOptions { payload_bytes_max: 1000, ..options(&broker, "coordinator", &[]) };
    let (coordinator, _events) = linked(small).await;
    let sent = long_message(10_000);
    coordinator.publish(TASK, &sent, false).await.unwrap();
    let mut assembler = Assembler::new(MessageLimits::default(), 1);
    loop {
        let packet = next_packet(&mut stranger).await;
        assert!(packet.payload.len() <= 1000);
        if let Some(bytes) = assembler.accept(&packet.topic, &packet.payload, 0).unwrap() {
            assert_eq!(envelope::decode(&bytes, &MessageLimits::default()), Ok(sent));
            break;
        }
    }
}

#[tokio::test]
async fn an_orderly_restart_of_the_broker_loses_nothing() {
    const MESSAGES: u32 = 400;
    let mut broker = Mosquitto::start_persistent();
    let (node, _events) = linked(options(&broker, "node", &[])).await;
    let (_outbox, mut updates) = linked(options(&broker, "coordinator", &[UPDATE])).await;
    let sender = tokio::spawn(async move {
        for round in 0..MESSAGES {
            node.publish(UPDATE, &numbered(round), false).await.unwrap();
        }
        node.close(AMPLE).await.unwrap();
    });
    let mut seen = BTreeSet::new();
    while seen.len() < MESSAGES as usize {
        seen.insert(number(&message(&mut updates).await.1));
        if seen.len() == 100 {
            broker = tokio::task::spawn_blocking(move || {
                broker.stop();
                broker.restart();
                broker
            })
            .await
            .unwrap();
        }
    }
    sender.await.unwrap();
}

#[tokio::test]
async fn what_a_crashed_broker_did_not_acknowledge_is_sent_again() {
    let mut broker = Mosquitto::start();
    let (publisher, mut events) = linked(options(&broker, "node", &[UPDATE])).await;
    assert!(!connected(&mut events).await);
    // These reach a broker that does not acknowledge them any more, those after the crash reach none.
    broker.suspend();
    for round in 0..10 {
        publisher.publish(UPDATE, &numbered(round), false).await.unwrap();
    }
    broker.kill();
    while !matches!(events.next().await.unwrap(), LinkEvent::Disconnected { .. }) {}
    for round in 10..20 {
        publisher.publish(UPDATE, &numbered(round), false).await.unwrap();
    }
    broker.restart();
    assert!(!connected(&mut events).await, "the broker has forgotten the session");
    for round in 0..20 {
        assert_eq!(number(&message(&mut events).await.1), round, "all of them, in order");
    }
    publisher.close(AMPLE).await.unwrap();
}

#[tokio::test]
async fn a_known_client_gets_what_was_said_while_it_was_away() {
    let broker = Mosquitto::start();
    let (_coordinator, events) = linked(options(&broker, "coordinator", &[UPDATE])).await;
    drop(events);
    let (node, _events) = linked(options(&broker, "node", &[])).await;
    node.publish(UPDATE, &numbered(7), false).await.unwrap();
    node.close(AMPLE).await.unwrap();
    let (_coordinator, mut events) = linked(options(&broker, "coordinator", &[UPDATE])).await;
    assert!(connected(&mut events).await);
    assert_eq!(number(&message(&mut events).await.1), 7);
}

#[tokio::test]
async fn the_will_is_spoken_for_a_lost_node_and_not_for_one_that_left() {
    let broker = Mosquitto::start();
    let (_outbox, mut statuses) = linked(options(&broker, "coordinator", &[STATUS])).await;
    let with_will = |session| LinkOptions {
        will: Some(OutboundMessage { topic: STATUS.to_owned(), message: dead(session), retain: true }),
        ..options(&broker, "node", &[])
    };
    let (leaving, _events) = linked(with_will(1)).await;
    leaving.close(AMPLE).await.unwrap();
    let (_outbox, lost) = linked(with_will(2)).await;
    drop(lost);
    assert_eq!(message(&mut statuses).await, (STATUS.to_owned(), dead(2)));
}

#[tokio::test]
async fn lost_chunks_are_asked_for_and_the_message_completed() {
    let broker = Mosquitto::start();
    let (client, mut stranger) = stranger(&broker);
    client.subscribe(UPDATE, QoS::AtLeastOnce).await.unwrap();
    until_subscribed(&mut stranger).await;
    let eager = LinkOptions { resend_after: Duration::from_millis(20), ..options(&broker, "node", &[TASK]) };
    let (_node, mut tasks) = linked(eager).await;

    let sent = long_message(5000);
    let transfer = Transfer::new(envelope::encode(&sent), 1000).unwrap();
    for index in [0, 1, 3, 5] {
        client.publish(TASK, QoS::AtLeastOnce, false, transfer.chunk(index).unwrap()).await.unwrap();
    }
    let request = next_packet(&mut stranger).await;
    let bytes = Assembler::new(MessageLimits::default(), 1)
        .accept(UPDATE, &request.payload, 0)
        .unwrap()
        .unwrap()
        .into_owned();
    let missing = match envelope::decode(&bytes, &MessageLimits::default()).unwrap() {
        Message::Answer(Answer::Resend(missing)) => missing,
        other => panic!("{other:?}"),
    };
    assert_eq!(missing, MissingChunks { transfer: transfer.id(), chunks: vec![2, 4] });
    for index in missing.chunks {
        client.publish(TASK, QoS::AtLeastOnce, false, transfer.chunk(index).unwrap()).await.unwrap();
    }
    let polling = tokio::spawn(async move { while stranger.poll().await.is_ok() {} });
    assert_eq!(message(&mut tasks).await.1, sent);
    polling.abort();
}

#[tokio::test]
async fn chunks_are_sent_again_to_those_who_were_sent_them_and_to_nobody_else() {
    const OTHER_TASK: &str = "evenhand/v1/f/node/other/task";
    const OTHER_UPDATE: &str = "evenhand/v1/f/node/other/update";
    let broker = Mosquitto::start();
    let small = LinkOptions {
        payload_bytes_max: 1000,
        ..options(&broker, "coordinator", &["evenhand/v1/f/node/+/update"])
    };
    let (coordinator, mut events) = linked(small).await;
    let model = long_message(5000);
    coordinator.publish(TASK, &model, false).await.unwrap();
    let transfer = Transfer::new(envelope::encode(&model), 1000).unwrap();

    let (other, mut stolen) = linked(options(&broker, "other", &[OTHER_TASK])).await;
    let (node, mut tasks) = linked(options(&broker, "node", &[TASK])).await;
    let wish = Message::Answer(Answer::Resend(MissingChunks {
        transfer: transfer.id(),
        chunks: (0..transfer.count()).collect(),
    }));
    // Nobody was sent anything on the other's topic; the request of the node that was is served.
    other.publish(OTHER_UPDATE, &wish, false).await.unwrap();
    node.publish(UPDATE, &wish, false).await.unwrap();
    assert_eq!(message(&mut tasks).await.1, model);

    // Requests are served in order, so by now the other would have got its chunks before this.
    other.publish(OTHER_UPDATE, &numbered(1), false).await.unwrap();
    assert_eq!(number(&message(&mut events).await.1), 1, "requests for chunks never reach the program");
    coordinator.publish(OTHER_TASK, &numbered(2), false).await.unwrap();
    assert_eq!(message(&mut stolen).await, (OTHER_TASK.to_owned(), numbered(2)));
    assert!(other.traffic().bytes_down < 100, "{:?}", other.traffic());
}

#[tokio::test]
async fn a_slow_reader_holds_the_broker_back_and_can_still_send() {
    const MESSAGES: u32 = 200;
    const BYTES: usize = 10_000;
    let broker = Mosquitto::start();
    let slow = LinkOptions { inbound_bytes_max: 10 * BYTES, ..options(&broker, "slow", &[TASK]) };
    let (slow, mut tasks) = linked(slow).await;
    let (quick, mut updates) = linked(options(&broker, "quick", &[UPDATE])).await;
    for _ in 0..MESSAGES {
        quick.publish(TASK, &long_message(BYTES), false).await.unwrap();
    }
    // Far more than a window of packets goes out although nobody reads what comes in.
    for round in 0..MESSAGES {
        slow.publish(UPDATE, &numbered(round), false).await.unwrap();
    }
    for round in 0..MESSAGES {
        assert_eq!(number(&message(&mut updates).await.1), round);
    }
    let waiting = slow.traffic().bytes_down;
    assert!(waiting < u64::from(MESSAGES) * BYTES as u64 / 2, "{waiting} bytes were taken in unread");
    for _ in 0..MESSAGES {
        assert_eq!(message(&mut tasks).await.1, long_message(BYTES));
    }
}

#[tokio::test]
async fn foreign_bytes_are_reported_and_do_no_harm() {
    let broker = Mosquitto::start();
    let (client, mut stranger) = stranger(&broker);
    let polling = tokio::spawn(async move { while stranger.poll().await.is_ok() {} });
    let (_node, mut tasks) = linked(options(&broker, "node", &[TASK])).await;
    assert!(!connected(&mut tasks).await);
    let newer = Transfer::new(vec![2, 0], 1000).unwrap();
    let good = Transfer::new(envelope::encode(&numbered(1)), 1000).unwrap();
    let packets = [b"hello".to_vec(), Vec::new(), newer.chunk(0).unwrap(), good.chunk(0).unwrap()];
    for packet in packets {
        client.publish(TASK, QoS::AtLeastOnce, false, packet).await.unwrap();
    }
    let mut errors = Vec::new();
    loop {
        match tasks.next().await.unwrap() {
            LinkEvent::Malformed { error, .. } => errors.push(error.to_string()),
            LinkEvent::Message { message, .. } => break assert_eq!(message, numbered(1)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors[1].contains("version 2") && errors[1].contains("speaks 1"), "{errors:?}");
    polling.abort();
}

#[tokio::test]
async fn a_packet_that_is_too_long_is_refused_and_ends_nothing() {
    let broker = Mosquitto::start();
    let (client, mut stranger) = stranger(&broker);
    let publish = async |client: &AsyncClient, retain: bool| {
        client.publish(STATUS, QoS::AtLeastOnce, retain, vec![7; 300_000]).await.unwrap();
    };
    publish(&client, true).await;
    while !matches!(stranger.poll().await.unwrap(), Event::Incoming(Packet::PubAck(_))) {}
    let polling = tokio::spawn(async move { while stranger.poll().await.is_ok() {} });
    let limits = MessageLimits { message_bytes_max: 1000, ..MessageLimits::default() };
    let strict = LinkOptions { limits, ..options(&broker, "coordinator", &[STATUS]) };
    let (coordinator, mut statuses) = linked(strict.clone()).await;
    let mut next = async || match statuses.next().await.unwrap() {
        LinkEvent::Connected { .. } => "connected".to_owned(),
        LinkEvent::Malformed { retained, error, .. } => {
            assert!(error.is_too_long(), "{error}");
            format!("{} {error}", if retained { "kept:" } else { "now:" })
        }
        LinkEvent::Message { .. } => "message".to_owned(),
        LinkEvent::Disconnected { cause } => cause,
    };
    let too_long = "a message of 300000 bytes exceeds the limit of 1000";
    assert_eq!(next().await, "connected");
    assert_eq!(next().await, format!("kept: {too_long}"));
    publish(&client, false).await;
    assert_eq!(next().await, format!("now: {too_long}"));
    // The link can have it removed, so that it does not come again.
    coordinator.clear_retained_once(STATUS);
    coordinator.publish(STATUS, &dead(1), false).await.unwrap();
    assert_eq!(next().await, "message");
    let (_later, mut statuses) = linked(LinkOptions { client_id: "later".into(), ..strict }).await;
    coordinator.publish(STATUS, &dead(2), false).await.unwrap();
    assert_eq!(message(&mut statuses).await.1, dead(2), "nothing before it");
    polling.abort();
}

#[tokio::test]
async fn a_message_is_not_fetched_again_without_end() {
    let broker = Mosquitto::start();
    let small = LinkOptions { payload_bytes_max: 1000, ..options(&broker, "coordinator", &[UPDATE]) };
    let (coordinator, mut events) = linked(small).await;
    let model = long_message(5000);
    coordinator.publish(TASK, &model, false).await.unwrap();
    let before = coordinator.traffic().bytes_up;
    let transfer = Transfer::new(envelope::encode(&model), 1000).unwrap();
    let (node, _tasks) = linked(options(&broker, "node", &[])).await;
    let wish = MissingChunks { transfer: transfer.id(), chunks: (0..transfer.count()).collect() };
    for round in 0..20 {
        node.publish(UPDATE, &Message::Answer(Answer::Resend(wish.clone())), false).await.unwrap();
        node.publish(UPDATE, &numbered(round), false).await.unwrap();
        assert_eq!(number(&message(&mut events).await.1), round);
        // Whatever was asked for before is queued when this is.
        coordinator.publish(STATUS, &dead(1), false).await.unwrap();
    }
    coordinator.close(AMPLE).await.unwrap();
    let fetched = coordinator.traffic().bytes_up - before;
    assert!(fetched < 5 * 5200 + 20 * 40, "{fetched}");
}

#[tokio::test]
async fn a_retained_message_must_fit_one_packet() {
    let broker = Mosquitto::start();
    let small = LinkOptions { payload_bytes_max: 1000, ..options(&broker, "node", &[]) };
    let (publisher, _events) = linked(small.clone()).await;
    let refused = publisher.publish(STATUS, &long_message(5000), true).await;
    assert!(matches!(refused, Err(LinkError::RetainedTooLong { chunks: 6, .. })), "{refused:?}");
    let will = Some(OutboundMessage { topic: STATUS.to_owned(), message: long_message(5000), retain: false });
    assert!(matches!(Link::connect(LinkOptions { will, ..small }), Err(LinkError::RetainedTooLong { .. })));
    assert!(matches!(publisher.publish("a/+/b", &numbered(1), false).await, Err(LinkError::InvalidTopic(_))));
}

#[tokio::test]
async fn a_broker_that_is_not_there_is_named_with_cause_and_remedy() {
    let address = format!("mqtt://127.0.0.1:{}", free_port());
    let (publisher, mut events) =
        Link::connect(LinkOptions::new(Broker::parse(&address).unwrap(), "node")).unwrap();
    let error = refusal(&mut events).await;
    assert_eq!(error.exit(), Exit::Broker);
    let text = error.to_string();
    assert!(text.starts_with(&format!("cannot reach broker {}: ", &address[7..])), "{text}");
    assert!(text.contains("refused") && text.ends_with("start a broker there"), "{text}");
    publisher.publish(UPDATE, &numbered(1), false).await.unwrap();
    let unflushed = publisher.close(Duration::from_millis(10)).await;
    assert!(matches!(unflushed, Err(LinkError::Unacknowledged(1))), "{unflushed:?}");
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn a_wrong_password_is_named() {
    let folder = tempfile::TempDir::new().unwrap();
    let passwords = folder.path().join("passwords");
    let made = std::process::Command::new("mosquitto_passwd")
        .args(["-b", "-c"])
        .arg(&passwords)
        .args(["meter", "right"])
        .status();
    assert!(made.unwrap().success());
    let broker =
        Mosquitto::start_in(folder, "allow_anonymous false\npassword_file FOLDER/passwords\n", false);
    let as_user = |password: &str| {
        let broker = broker.broker().with_credentials("meter", password);
        Link::connect(LinkOptions::new(broker, "node")).unwrap()
    };
    let (_outbox, mut events) = as_user("wrong");
    let error = refusal(&mut events).await.to_string();
    assert!(error.contains("user name or password") || error.contains("authorise"), "{error}");
    as_user("right").1.first_connection(AMPLE).await.unwrap();
}

#[tokio::test]
async fn two_hundred_links_live_on_one_thread() {
    const NODES: u32 = 200;
    let broker = Mosquitto::start();
    let (coordinator, mut updates) =
        linked(options(&broker, "coordinator", &["evenhand/v1/f/node/+/update"])).await;
    let nodes = (0..NODES).map(|node| {
        let task = format!("evenhand/v1/f/node/{node}/task");
        let link = linked(options(&broker, &format!("node-{node}"), &[&task]));
        tokio::spawn(async move {
            let (publisher, mut tasks) = link.await;
            publisher
                .publish(&format!("evenhand/v1/f/node/{node}/update"), &numbered(node), false)
                .await
                .unwrap();
            assert_eq!(message(&mut tasks).await.1, numbered(node));
            publisher.close(AMPLE).await.unwrap();
        })
    });
    let nodes: Vec<_> = nodes.collect();
    for _ in 0..NODES {
        let node = number(&message(&mut updates).await.1);
        coordinator
            .publish(&format!("evenhand/v1/f/node/{node}/task"), &numbered(node), false)
            .await
            .unwrap();
    }
    for node in nodes {
        node.await.unwrap();
    }
}

#[tokio::test]
async fn another_member_of_the_cluster_is_tried_when_one_is_away() {
    let (mut one, two) = (Mosquitto::start(), Mosquitto::start());
    let dead = free_port();
    let list = format!("mqtt://{},{},127.0.0.1:{dead}", one.broker(), two.broker());
    // Whichever member a client begins with, it finds one that is there.
    for client in ["a", "b", "c", "d", "e"] {
        let options = LinkOptions::new(Broker::parse(&list).unwrap(), client);
        let (publisher, _events) = linked(options).await;
        publisher.close(AMPLE).await.unwrap();
    }
    let subscriptions = vec![TASK.to_owned()];
    let options = LinkOptions { subscriptions, ..LinkOptions::new(Broker::parse(&list).unwrap(), "node") };
    let (publisher, mut events) = linked(options).await;
    one.kill();
    // Only the second is left: what is said there is heard, now or after moving over.
    let (coordinator, _events) = linked(LinkOptions::new(two.broker(), "coordinator")).await;
    coordinator.publish(TASK, &numbered(7), true).await.unwrap();
    assert_eq!(number(&message(&mut events).await.1), 7);
    publisher.close(AMPLE).await.unwrap();
}
