//! HTTP/1.1 on a plain socket, so that tests see what the server really sends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

/// What a server answered.
#[derive(Debug)]
pub struct HttpAnswer {
    /// The status code.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, put together.
    pub body: Vec<u8>,
}

impl HttpAnswer {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}

/// Asks for a path.
pub fn get(address: SocketAddr, path: &str) -> HttpAnswer {
    request(address, "GET", path, &[], "")
}

/// Asks for anything.
pub fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> HttpAnswer {
    let mut text =
        format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        text += &format!("Host: {address}\r\n");
    }
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    text += &format!("\r\n{body}");
    let bytes = raw(address, text.as_bytes());
    parse(&bytes).unwrap_or_else(|| panic!("not an answer: {}", String::from_utf8_lossy(&bytes)))
}

/// Sends bytes as they are, and reads until the server closes.
pub fn raw(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    // A server that has received enough may close before it has read everything.
    let _closed = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _reset = stream.read_to_end(&mut answer);
    answer
}

fn parse(bytes: &[u8]) -> Option<HttpAnswer> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let body = &bytes[end + 4..];
    let body = if chunked { joined(body)? } else { body.to_vec() };
    Some(HttpAnswer { status, headers, body })
}

fn joined(mut chunks: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = chunks.windows(2).position(|two| two == b"\r\n")?;
        let size = usize::from_str_radix(std::str::from_utf8(&chunks[..line]).ok()?, 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.extend(chunks.get(line + 2..line + 2 + size)?);
        chunks = chunks.get(line + 4 + size..)?;
    }
}

/// A listener to server-sent events.
#[derive(Debug)]
pub struct Listener {
    lines: BufReader<TcpStream>,
    /// Of the answer.
    pub status: u16,
}

impl Listener {
    /// Begins to listen.
    pub fn open(address: SocketAddr, path: &str) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\r\n")
            .unwrap();
        let mut lines = BufReader::new(stream);
        let mut first = String::new();
        lines.read_line(&mut first).unwrap();
        let status = first.split(' ').nth(1).unwrap().parse().unwrap();
        Self { lines, status }
    }
}

/// The data of each event, until the server ends the stream.
impl Iterator for Listener {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return Some(serde_json::from_str(data).unwrap());
            }
        }
    }
}
