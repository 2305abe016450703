//! An answer as it arrives.

use std::io;

use httparse::{EMPTY_HEADER, Response, Status};

/// Longer heads are refused.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Longer answers are no readings.
const BODY_BYTES_MAX: usize = 64 * 1024;
const HEADERS_MAX: usize = 64;

/// Error of a device that is asked.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The connection fails.
    #[error("{0}; check source.url")]
    Io(#[from] io::Error),
    /// The device refuses.
    #[error("the device answers with status {status}: {}", remedy(*status, location))]
    Refused {
        /// Its status.
        status: u16,
        /// Where it sends instead, "" if nowhere.
        location: String,
    },
    /// The answer is malformed.
    #[error("the answer is no HTTP: {0}; check source.url")]
    Malformed(&'static str),
    /// The answer is too long.
    #[error(
        "the answer is longer than {} bytes; choose a source.url that answers with the value",
        BODY_BYTES_MAX
    )]
    TooLong,
}

fn remedy(status: u16, location: &str) -> String {
    match status {
        300..=399 => format!("it sends to {location:?}; set source.url to it"),
        401 | 403 => {
            "set source.username and source.password_file; it must accept basic authentication".into()
        }
        404 => "it has nothing at this path; check source.url".into(),
        500.. => "it failed; if it stays so, restart it".into(),
        _ => "check source.url".into(),
    }
}

/// The bytes of an answer so far.
#[derive(Debug, Default)]
pub struct PolledAnswer {
    bytes: Vec<u8>,
}

/// The length of a body.
enum BodyLength {
    Known(usize),
    Chunked,
    /// It ends with the connection.
    UntilEnd,
}

impl PolledAnswer {
    /// Adds received bytes, none at the end of the connection; the text of the body once it is complete.
    pub fn push(&mut self, block: &[u8]) -> Result<Option<String>, HttpError> {
        self.bytes.extend_from_slice(block);
        let mut headers = [EMPTY_HEADER; HEADERS_MAX];
        let mut response = Response::new(&mut headers);
        let Ok(parsed) = response.parse(&self.bytes) else {
            return Err(HttpError::Malformed("it has no head"));
        };
        let Status::Complete(head) = parsed else {
            return match (block.is_empty(), self.bytes.len() > HEAD_BYTES_MAX) {
                (true, _) => Err(HttpError::Malformed("it ends early")),
                (false, true) => Err(HttpError::TooLong),
                (false, false) => Ok(None),
            };
        };
        let header = |name: &str| {
            let found = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
            std::str::from_utf8(found.value).ok().map(str::trim)
        };
        let status = response.code.unwrap_or(0);
        if status != 200 {
            let location = header("location").unwrap_or_default().chars().take(200).collect();
            return Err(HttpError::Refused { status, location });
        }
        let is_chunked =
            header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"));
        let length = match header("content-length").map(str::parse) {
            _ if is_chunked => BodyLength::Chunked,
            Some(Ok(length)) => BodyLength::Known(length),
            Some(Err(_)) => return Err(HttpError::Malformed("its length is no number")),
            None => BodyLength::UntilEnd,
        };
        let rest = &self.bytes[head..];
        let body = match length {
            BodyLength::Known(length) if length > BODY_BYTES_MAX => return Err(HttpError::TooLong),
            BodyLength::Known(length) => rest.get(..length).map(<[u8]>::to_vec),
            BodyLength::Chunked => unchunked(rest)?,
            BodyLength::UntilEnd => block.is_empty().then(|| rest.to_vec()),
        };
        match body {
            Some(body) => Ok(Some(String::from_utf8_lossy(&body).into_owned())),
            None if rest.len() > 2 * BODY_BYTES_MAX => Err(HttpError::TooLong),
            None if block.is_empty() => Err(HttpError::Malformed("it ends early")),
            None => Ok(None),
        }
    }
}

/// The body in chunks; none if it is not complete.
fn unchunked(mut rest: &[u8]) -> Result<Option<Vec<u8>>, HttpError> {
    let mut body = Vec::new();
    loop {
        let (begin, size) = match httparse::parse_chunk_size(rest) {
            Ok(Status::Complete(chunk)) => chunk,
            Ok(Status::Partial) => return Ok(None),
            Err(_) => return Err(HttpError::Malformed("a chunk has no length")),
        };
        if size == 0 {
            return Ok(Some(body));
        }
        let size = usize::try_from(size)
            .ok()
            .filter(|size| body.len() + size.min(&(2 * BODY_BYTES_MAX)) <= BODY_BYTES_MAX);
        let size = size.ok_or(HttpError::TooLong)?;
        let Some(chunk) = rest.get(begin..begin + size) else { return Ok(None) };
        body.extend_from_slice(chunk);
        rest = match rest.get(begin + size..begin + size + 2) {
            Some(b"\r\n") => &rest[begin + size + 2..],
            Some(_) => return Err(HttpError::Malformed("a chunk is longer than it says")),
            None => return Ok(None),
        };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// The text of an answer that arrives in blocks of this length, and then ends.
    fn read(answer: &[u8], block: usize) -> Result<String, HttpError> {
        let mut so_far = PolledAnswer::default();
        for block in answer.chunks(block) {
            if let Some(text) = so_far.push(block)? {
                return Ok(text);
            }
        }
        so_far.push(b"").map(|text| text.expect("an end is an answer or an error"))
    }

    const KNOWN: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\ncontent-length: 14\r\n\r\n{\"apower\":1.5}rest";
    const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n{\"apowe\r\n7;x=y\r\nr\":1.5}\r\n0\r\n\r\n";
    const UNTIL_END: &[u8] = b"HTTP/1.0 200 OK\r\n\r\n{\"apower\":1.5}";

    #[test]
    fn bodies_of_all_kinds_however_they_arrive() {
        for answer in [KNOWN, CHUNKED, UNTIL_END] {
            for block in 1..answer.len() + 1 {
                assert_eq!(read(answer, block).unwrap(), "{\"apower\":1.5}");
            }
        }
    }

    #[test]
    fn refusals_have_a_remedy() {
        let error = |answer: &str| read(answer.as_bytes(), 1000).unwrap_err().to_string();
        assert!(
            error("HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Digest\r\n\r\n")
                .contains("source.password_file")
        );
        assert!(
            error("HTTP/1.1 302 Found\r\nLocation: https://h/x\r\n\r\n")
                .contains("\"https://h/x\"; set source.url")
        );
        assert!(error("HTTP/1.1 404 Not Found\r\n\r\n").contains("nothing at this path"));
        assert!(error("SSH-2.0-OpenSSH_9.2\r\n").contains("no HTTP"));
        assert!(error("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n1").contains("ends early"));
        assert!(error("HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n").contains("longer than"));
        assert!(
            error("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n")
                .contains("longer than")
        );
        assert!(
            error("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n")
                .contains("than it says")
        );
    }

    #[test]
    fn endless_answers_are_given_up() {
        for begin in [
            "HTTP/1.1 200 OK\r\nA: ",
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n",
        ] {
            let endless = [begin.as_bytes(), &[b'a'; 4 * BODY_BYTES_MAX]].concat();
            assert!(read(&endless, 4096).is_err(), "{begin}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_text_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0..CHUNKED.len(), byte: u8, block in 1usize..80) {
            let _ = read(&bytes, block);
            let mut damaged = CHUNKED.to_vec();
            damaged[at] = byte;
            let _ = read(&damaged, block);
        }
    }
}
