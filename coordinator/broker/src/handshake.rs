//! CONNECT and CONNACK.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use evenhand_protocol::identity::NodeId;
use rumqttc::{ConnAck, Connect, ConnectReturnCode, Packet, Protocol};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use crate::client::{Client, ClientContext, CloseReason};
use crate::message::ApplicationMessage;
use crate::packet::PacketReader;
use crate::server::lock;
use crate::topic_match::is_topic;

/// The time in which a CONNECT must arrive.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The largest CONNECT, with its will; larger packets are for clients that were accepted.
pub(crate) const CONNECT_BYTES_MAX: usize = 256 << 10;

/// Reads the CONNECT and answers it.
pub(crate) async fn accept_client(
    input: &mut PacketReader<impl AsyncRead + Unpin>,
    output: &mut (impl AsyncWrite + Unpin),
    context: &ClientContext,
    peer: SocketAddr,
) -> Result<Client, CloseReason> {
    let connect = match timeout(CONNECT_TIMEOUT, input.next()).await {
        Ok(Ok(Packet::Connect(connect))) => connect,
        Ok(Ok(_)) => return Err(CloseReason::ProtocolViolation("the first packet is not a CONNECT")),
        Ok(Err(reason)) => return Err(reason),
        Err(_) => return Err(CloseReason::Timeout),
    };
    let user = connect.login.as_ref().map_or(&connect.client_id, |login| &login.username).clone();
    let accepted = authorize(connect, context);
    let answer = match &accepted {
        Ok((_, session_present)) => ConnAck::new(ConnectReturnCode::Success, *session_present),
        Err(code) => ConnAck::new(*code, false),
    };
    match &accepted {
        Err(ConnectReturnCode::BadUserNamePassword) => refuse_login(context, peer, &user).await,
        Err(ConnectReturnCode::NotAuthorized) => log_foreign_topic(context, peer, &user),
        _ => {}
    }
    let mut bytes = BytesMut::new();
    answer.write(&mut bytes)?;
    output.write_all(&bytes).await?;
    accepted.map(|(client, _)| client).map_err(CloseReason::Refused)
}

/// Logs a client whose will is for a topic that it may not use: one of another federation, or under another name.
fn log_foreign_topic(context: &ClientContext, peer: SocketAddr, user: &str) {
    if let Some(left_out) = lock(&context.refused).permit(Instant::now()) {
        let user = NodeId::new(user).map_or_else(|_| "no name".to_owned(), |name| name.to_string());
        tracing::warn!(
            %peer, user, left_out,
            "embedded broker: client refused, it uses topics of another federation or name; are node.federation and node.id right?"
        );
    }
}

/// Counts and logs a login that is refused, and lets a guess take its time.
async fn refuse_login(context: &ClientContext, peer: SocketAddr, user: &str) {
    lock(&context.state).count_refused_login();
    if let Some(left_out) = lock(&context.refused).permit(Instant::now()) {
        // Only what can be a name: the user name is a stranger's text.
        let user = NodeId::new(user).map_or_else(|_| "no name".to_owned(), |name| name.to_string());
        tracing::warn!(%peer, user, left_out, "embedded broker: login refused, wrong user name or password");
    }
    sleep(context.options.refusal_delay).await;
}

/// The client, connected to its session, and whether that session was present.
fn authorize(connect: Connect, context: &ClientContext) -> Result<(Client, bool), ConnectReturnCode> {
    let ClientContext { state, options, coordinator_only, .. } = context;
    let Connect { protocol, keep_alive, client_id, clean_session, last_will, login } = connect;
    if protocol != Protocol::V4 {
        return Err(ConnectReturnCode::RefusedProtocolVersion);
    }
    let client_id = match client_id.as_str() {
        "" if clean_session => lock(state).generated_client_id(),
        "" => return Err(ConnectReturnCode::BadClientId),
        given => given.to_owned(),
    };
    let login = login.as_ref().map(|login| (login.username.as_str(), login.password.as_str()));
    let permissions =
        options.access.permissions(&client_id, login).ok_or(ConnectReturnCode::BadUserNamePassword)?;
    if *coordinator_only && permissions.is_node() {
        return Err(ConnectReturnCode::NotAuthorized);
    }
    let will = last_will.map(ApplicationMessage::from);
    if will.as_ref().is_some_and(|will| !is_topic(&will.topic) || !permissions.may_publish(&will.topic)) {
        return Err(ConnectReturnCode::NotAuthorized);
    }
    let connected = lock(state).connect(&client_id, clean_session, will, permissions.clone(), Instant::now());
    let (connection, session_present) = connected.ok_or(ConnectReturnCode::ServiceUnavailable)?;
    // A client may be silent for one and a half times its keep-alive; 0 means without limit.
    let idle_timeout = (keep_alive > 0).then(|| Duration::from_secs(keep_alive.into()) * 3 / 2);
    Ok((Client::new(Arc::clone(state), connection, permissions, idle_timeout), session_present))
}
