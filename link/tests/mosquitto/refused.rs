//! Packets, messages and connections that are refused.

use std::time::Duration;

use evenhand_link::testing::{Mosquitto, free_port};
use evenhand_link::{Broker, Link, LinkError, LinkEvent, LinkOptions, OutboundMessage};
use evenhand_program::exit::Exit;
use evenhand_protocol::chunk::Transfer;
use evenhand_protocol::envelope;
use evenhand_protocol::limits::MessageLimits;
use rumqttc::{AsyncClient, Event, Packet, QoS};

use super::{
    STATUS, TASK, TIMEOUT, UPDATE, connected, connection_error, linked, long_message, message, numbered,
    offline, options, plain_client,
};

#[tokio::test]
async fn malformed_packets_are_reported_and_change_nothing() {
    let broker = Mosquitto::start();
    let (client, mut plain) = plain_client(&broker);
    let polling = tokio::spawn(async move { while plain.poll().await.is_ok() {} });
    let (_node, mut tasks) = linked(options(&broker, "node", &[TASK])).await;
    assert!(!connected(&mut tasks).await);
    let newer = Transfer::new(vec![envelope::VERSION as u8 + 1, 0], 1000).unwrap();
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
    let (theirs, ours) =
        (format!("version {}", envelope::VERSION + 1), format!("speaks {}", envelope::VERSION));
    assert!(errors[1].contains(&theirs) && errors[1].contains(&ours), "{errors:?}");
    polling.abort();
}

#[tokio::test]
async fn a_packet_that_is_too_long_is_refused_and_the_connection_stays() {
    let broker = Mosquitto::start();
    let (client, mut plain) = plain_client(&broker);
    let publish = async |client: &AsyncClient, retain: bool| {
        client.publish(STATUS, QoS::AtLeastOnce, retain, vec![7; 300_000]).await.unwrap();
    };
    publish(&client, true).await;
    while !matches!(plain.poll().await.unwrap(), Event::Incoming(Packet::PubAck(_))) {}
    let polling = tokio::spawn(async move { while plain.poll().await.is_ok() {} });
    let limits = MessageLimits { message_bytes_max: 1000, ..MessageLimits::default() };
    let strict = LinkOptions { limits, ..options(&broker, "coordinator", &[STATUS]) };
    let (coordinator, mut statuses) = linked(strict.clone()).await;
    let mut next = async || match statuses.next().await.unwrap() {
        LinkEvent::Connected { .. } => "connected".to_owned(),
        LinkEvent::Malformed { retained, error, .. } => {
            assert!(error.is_too_long(), "{error}");
            format!("{} {error}", if retained { "retained:" } else { "live:" })
        }
        LinkEvent::Message { .. } => "message".to_owned(),
        LinkEvent::Disconnected { cause } => cause,
        other => panic!("{other:?}"),
    };
    let too_long = "a message of 300000 bytes exceeds the limit of 1000";
    assert_eq!(next().await, "connected");
    assert_eq!(next().await, format!("retained: {too_long}"));
    publish(&client, false).await;
    assert_eq!(next().await, format!("live: {too_long}"));
    // Cleared, it is not delivered again.
    coordinator.clear_retained_once(STATUS);
    coordinator.publish(STATUS, &offline(1), false).await.unwrap();
    assert_eq!(next().await, "message");
    let (_later, mut statuses) = linked(LinkOptions { client_id: "later".into(), ..strict }).await;
    coordinator.publish(STATUS, &offline(2), false).await.unwrap();
    assert_eq!(message(&mut statuses).await.1, offline(2), "nothing before it");
    polling.abort();
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
async fn an_unreachable_broker_is_named_with_cause_and_remedy() {
    let address = format!("mqtt://127.0.0.1:{}", free_port());
    let (publisher, mut events) =
        Link::connect(LinkOptions::new(Broker::parse(&address).unwrap(), "node")).unwrap();
    let error = connection_error(&mut events).await;
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
async fn a_wrong_password_is_named_as_the_cause() {
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
    let (_publisher, mut events) = as_user("wrong");
    let error = connection_error(&mut events).await.to_string();
    assert!(error.contains("user name or password") || error.contains("authorise"), "{error}");
    as_user("right").1.first_connection(TIMEOUT).await.unwrap();
}

/// Two nodes with one name, or two coordinators of one federation: the broker ends the older connection for the newer.
#[tokio::test]
async fn a_second_client_of_the_same_name_is_named_as_the_cause() {
    let broker = Mosquitto::start();
    let (_first, mut events) = Link::connect(options(&broker, "evenhand-coordinator-town", &[])).unwrap();
    let (_second, mut others) = Link::connect(options(&broker, "evenhand-coordinator-town", &[])).unwrap();
    let polling = tokio::spawn(async move { while others.next().await.is_some() {} });
    let address = broker.broker().to_string();
    loop {
        if let LinkEvent::Disconnected { cause } = events.next().await.unwrap() {
            assert!(cause.starts_with(&format!("{address}: ")), "{cause}");
            if cause.contains("another program is connected as \"evenhand-coordinator-town\"") {
                break;
            }
        }
    }
    polling.abort();
}
