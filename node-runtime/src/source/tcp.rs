//! Connections to meters and gateways.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long a connection may take to be made, and a write to be taken.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Connects to the first of the addresses of `HOST:PORT` that answers; a read waits for `patience`.
pub(super) fn connect(address: &str, patience: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(stream) => {
                stream.set_read_timeout(Some(patience))?;
                stream.set_write_timeout(Some(TIMEOUT))?;
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}
