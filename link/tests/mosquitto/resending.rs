//! Requests for lost chunks.

use std::time::Duration;

use evenhand_link::LinkOptions;
use evenhand_link::testing::Mosquitto;
use evenhand_protocol::chunk::{Assembler, Transfer};
use evenhand_protocol::envelope;
use evenhand_protocol::limits::MessageLimits;
use evenhand_protocol::message::{Answer, Message, MissingChunks};
use rumqttc::QoS;

use super::{
    STATUS, TASK, TIMEOUT, UPDATE, linked, long_message, message, next_packet, number, numbered, offline,
    options, plain_client, until_subscribed,
};

#[tokio::test]
async fn lost_chunks_are_requested_and_complete_the_message() {
    let broker = Mosquitto::start();
    let (client, mut plain) = plain_client(&broker);
    client.subscribe(UPDATE, QoS::AtLeastOnce).await.unwrap();
    until_subscribed(&mut plain).await;
    let eager = LinkOptions { resend_after: Duration::from_millis(20), ..options(&broker, "node", &[TASK]) };
    let (_node, mut tasks) = linked(eager).await;

    let sent = long_message(5000);
    let transfer = Transfer::new(envelope::encode(&sent), 1000).unwrap();
    for index in [0, 1, 3, 5] {
        client.publish(TASK, QoS::AtLeastOnce, false, transfer.chunk(index).unwrap()).await.unwrap();
    }
    let request = next_packet(&mut plain).await;
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
    let polling = tokio::spawn(async move { while plain.poll().await.is_ok() {} });
    assert_eq!(message(&mut tasks).await.1, sent);
    polling.abort();
}

#[tokio::test]
async fn chunks_are_sent_again_only_on_the_topic_they_were_sent_on() {
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

    let (other, mut other_tasks) = linked(options(&broker, "other", &[OTHER_TASK])).await;
    let (node, mut tasks) = linked(options(&broker, "node", &[TASK])).await;
    let request = Message::Answer(Answer::Resend(MissingChunks {
        transfer: transfer.id(),
        chunks: (0..transfer.count()).collect(),
    }));
    // Nothing was sent on the topic of the other node: its request is ignored, that of the first node is answered.
    other.publish(OTHER_UPDATE, &request, false).await.unwrap();
    node.publish(UPDATE, &request, false).await.unwrap();
    assert_eq!(message(&mut tasks).await.1, model);

    // Requests are answered in order, so the other node would have received its chunks before this.
    other.publish(OTHER_UPDATE, &numbered(1), false).await.unwrap();
    assert_eq!(number(&message(&mut events).await.1), 1, "requests for chunks never reach the program");
    coordinator.publish(OTHER_TASK, &numbered(2), false).await.unwrap();
    assert_eq!(message(&mut other_tasks).await, (OTHER_TASK.to_owned(), numbered(2)));
    assert!(other.traffic().bytes_down < 100, "{:?}", other.traffic());
}

#[tokio::test]
async fn a_message_is_not_resent_again_without_end() {
    let broker = Mosquitto::start();
    let small = LinkOptions { payload_bytes_max: 1000, ..options(&broker, "coordinator", &[UPDATE]) };
    let (coordinator, mut events) = linked(small).await;
    let model = long_message(5000);
    coordinator.publish(TASK, &model, false).await.unwrap();
    let before = coordinator.traffic().bytes_up;
    let transfer = Transfer::new(envelope::encode(&model), 1000).unwrap();
    let (node, _tasks) = linked(options(&broker, "node", &[])).await;
    let request = MissingChunks { transfer: transfer.id(), chunks: (0..transfer.count()).collect() };
    for round in 0..20 {
        node.publish(UPDATE, &Message::Answer(Answer::Resend(request.clone())), false).await.unwrap();
        node.publish(UPDATE, &numbered(round), false).await.unwrap();
        assert_eq!(number(&message(&mut events).await.1), round);
        // Answers to earlier requests are queued before this.
        coordinator.publish(STATUS, &offline(1), false).await.unwrap();
    }
    coordinator.close(TIMEOUT).await.unwrap();
    let resent = coordinator.traffic().bytes_up - before;
    assert!(resent < 5 * 5200 + 20 * 40, "{resent}");
}
