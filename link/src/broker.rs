//! The address of a broker, with credentials.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use percent_encoding::percent_decode_str;
use url::Url;

/// The address of a broker, or the addresses of a cluster, with the client's credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct Broker {
    /// Never empty.
    addresses: Vec<(String, u16)>,
    encrypted: bool,
    credentials: Option<(String, String)>,
}

/// The reason why a text is no broker address. It never repeats the address, which may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BrokerError {
    /// Not a URL at all.
    #[error("the broker address is no URL ({0}); write mqtt://HOST:PORT or mqtts://HOST:PORT")]
    Url(#[from] url::ParseError),
    /// An unknown scheme.
    #[error("the broker address begins with {0:?}; write mqtt://HOST:PORT or mqtts://HOST:PORT")]
    Scheme(String),
    /// No host.
    #[error("the broker address names no host; write mqtt://HOST:PORT or mqtts://HOST:PORT")]
    Host,
    /// Something after the port.
    #[error(
        "the broker address goes on after the port; write mqtt://HOST:PORT[,HOST:PORT…] and nothing behind it"
    )]
    Path,
    /// A user name or password that is not text.
    #[error("the user name or password in the broker address is not UTF-8; write it percent-encoded")]
    Credentials,
}

impl Broker {
    /// Parses `mqtt://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]…]`, or `mqtts://…` for TLS.
    pub fn parse(text: &str) -> Result<Self, BrokerError> {
        // A URL has one host: each of the list is read as if it were the only one.
        let hosts = text.find("://").map_or(0, |at| at + 3);
        let hosts = text[hosts..].rfind('@').map_or(hosts, |at| hosts + at + 1);
        let (before, list) = text.split_at(hosts);
        let mut endpoints = list.split(',').map(|host| Self::parse_one(&format!("{before}{host}")));
        let mut broker = endpoints.next().unwrap_or(Err(BrokerError::Host))?;
        for endpoint in endpoints {
            broker.addresses.append(&mut endpoint?.addresses);
        }
        Ok(broker)
    }

    fn parse_one(url: &str) -> Result<Self, BrokerError> {
        let url = Url::parse(url)?;
        let (encrypted, default_port) = match url.scheme() {
            "mqtt" => (false, 1883),
            "mqtts" => (true, 8883),
            other => return Err(BrokerError::Scheme(other.to_owned())),
        };
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(BrokerError::Host)?;
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return Err(BrokerError::Path);
        }
        let text = |encoded| match percent_decode_str(encoded).decode_utf8() {
            Ok(text) => Ok(text.into_owned()),
            Err(_) => Err(BrokerError::Credentials),
        };
        let credentials = match url.username() {
            "" => None,
            user => Some((text(user)?, text(url.password().unwrap_or_default())?)),
        };
        let address = (host.to_owned(), url.port().unwrap_or(default_port));
        Ok(Self { addresses: vec![address], encrypted, credentials })
    }

    /// The same broker, with this user name and password.
    pub fn with_credentials(self, user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { credentials: Some((user.into(), password.into())), ..self }
    }

    /// The user name, if any.
    pub fn user(&self) -> Option<&str> {
        self.credentials.as_ref().map(|(user, _)| user.as_str())
    }

    /// The first host; an IPv6 address in brackets.
    pub fn host(&self) -> &str {
        &self.addresses[0].0
    }

    /// The TCP port of the first host.
    pub fn port(&self) -> u16 {
        self.addresses[0].1
    }

    /// Each address of a cluster as a broker of its own.
    pub fn endpoints(&self) -> impl Iterator<Item = Broker> {
        self.addresses.iter().map(|address| Broker { addresses: vec![address.clone()], ..self.clone() })
    }

    /// True if the connection uses TLS.
    pub fn encrypted(&self) -> bool {
        self.encrypted
    }

    /// True if somebody on the way to another machine can read the password.
    pub fn sends_password_in_clear(&self) -> bool {
        let has_password = self.credentials.as_ref().is_some_and(|(_, password)| !password.is_empty());
        has_password && !self.encrypted && !self.is_local()
    }

    /// True if it runs on this machine.
    pub fn is_local(&self) -> bool {
        let local = |host: &str| {
            let bare = host.trim_start_matches('[').trim_end_matches(']');
            host == "localhost"
                || bare.parse().is_ok_and(|address: IpAddr| address.to_canonical().is_loopback())
        };
        self.addresses.iter().all(|(host, _)| local(host))
    }

    pub(crate) fn credentials(&self) -> Option<&(String, String)> {
        self.credentials.as_ref()
    }
}

impl FromStr for Broker {
    type Err = BrokerError;

    fn from_str(url: &str) -> Result<Self, BrokerError> {
        Self::parse(url)
    }
}

/// `HOST:PORT`, or several with commas between them, without the password.
impl fmt::Display for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (host, port)) in self.addresses.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{host}:{port}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Broker({self})")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn all_parts_of_an_address_are_parsed() {
        let broker = Broker::parse("mqtts://meter%2D7:p%40ss@broker.example:8884").unwrap();
        assert_eq!((broker.host(), broker.port(), broker.encrypted()), ("broker.example", 8884, true));
        assert_eq!(broker.credentials(), Some(&("meter-7".to_owned(), "p@ss".to_owned())));
    }

    #[test]
    fn missing_ports_are_those_of_mqtt() {
        assert_eq!(Broker::parse("mqtt://127.0.0.1").unwrap().port(), 1883);
        assert_eq!(Broker::parse("mqtts://[::1]/").unwrap().to_string(), "[::1]:8883");
    }

    #[test]
    fn the_addresses_of_a_cluster_are_parsed() {
        let broker = Broker::parse("mqtt://user:p%2Cw@one:1884,two,[::1]:1885").unwrap();
        assert_eq!(broker.to_string(), "one:1884,two:1883,[::1]:1885");
        assert_eq!(broker.credentials(), Some(&("user".to_owned(), "p,w".to_owned())));
        let endpoints: Vec<String> = broker.endpoints().map(|endpoint| endpoint.to_string()).collect();
        assert_eq!(endpoints, ["one:1884", "two:1883", "[::1]:1885"]);
        assert!(broker.endpoints().all(|endpoint| endpoint.credentials() == broker.credentials()));
        assert_eq!(Broker::parse("mqtts://one,two").unwrap().to_string(), "one:8883,two:8883");
    }

    #[test]
    fn errors_are_one_sentence_with_the_remedy() {
        for address in [
            "",
            "127.0.0.1:1883",
            "localhost:1883",
            "http://localhost",
            "mqtt://",
            "mqtt://:1883",
            "mqtt:///x",
            "mqtt://host/path",
            "mqtt://host?client_id=7",
            "mqtt://host:99999",
            "mqtt://%ff@host",
            "mqtt://one,",
            "mqtt://,two",
            "mqtt://one,two/path,three",
            "mqtt://one,http://two",
        ] {
            let error = Broker::parse(address).unwrap_err().to_string();
            assert!(error.contains("; write "), "{address}: {error}");
        }
    }

    #[test]
    fn a_password_is_in_clear_on_the_way_to_another_machine_without_tls() {
        for (address, clear) in [
            ("mqtt://u:p@broker.example", true),
            ("mqtt://u:p@192.168.1.2", true),
            ("mqtt://u:p@localhost,broker.example", true),
            ("mqtt://u:p@localhost,[::1],127.0.0.1:1884", false),
            ("mqtt://u@broker.example", false),
            ("mqtt://broker.example", false),
            ("mqtts://u:p@broker.example", false),
        ] {
            assert_eq!(Broker::parse(address).unwrap().sends_password_in_clear(), clear, "{address}");
        }
    }

    #[test]
    fn passwords_are_never_shown() {
        let broker = Broker::parse("mqtt://user:secret@host").unwrap();
        assert!(!format!("{broker} {broker:?}").contains("secret"));
        for address in ["mqtt://user:secret@host/path", "http://user:secret@host", "mqtt://user:secret@"] {
            assert!(!Broker::parse(address).unwrap_err().to_string().contains("secret"));
        }
    }
}
