//! Connections to meters and gateways.
#![allow(dead_code, reason = "a program may be built without the sources that need it")]

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Time to connect and to write.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Connects to the first of the addresses of `HOST:PORT` that answers; a read waits for `timeout`.
pub(super) fn connect(address: &str, timeout: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => {
                stream.set_read_timeout(Some(timeout))?;
                stream.set_write_timeout(Some(CONNECT_TIMEOUT))?;
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}
