//! The cause of a lost or refused connection, in a sentence with address and remedy.

use std::error::Error;

use rumqttc::mqttbytes;
use rumqttc::{ConnectReturnCode, ConnectionError, MqttOptions, StateError, Transport};
use rustls::{AlertDescription, CertificateError};

/// Connections that the broker closed soon after they were made, in a row, after which it is no accident.
const SHORT_LIVED_MIN: u32 = 3;

/// Who connects to whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BrokerPeer {
    address: String,
    encrypted: bool,
    client_id: String,
}

/// How far a connection had come when it was lost.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Attempt {
    /// The broker had accepted it.
    pub(crate) established: bool,
    /// Connections in a row, this one included, that broke soon after they were made.
    pub(crate) short_lived: u32,
}

impl BrokerPeer {
    pub(crate) fn of(options: &MqttOptions) -> Self {
        let (host, port) = options.broker_address();
        Self {
            address: format!("{host}:{port}"),
            encrypted: matches!(options.transport(), Transport::Tls(_)),
            client_id: options.client_id(),
        }
    }

    /// The sentence for a cause that is known in words.
    pub(crate) fn sentence(&self, cause: &str) -> String {
        format!("{}: {cause}", self.address)
    }

    /// The sentence for an error of a connection.
    pub(crate) fn describe(&self, error: &ConnectionError, attempt: Attempt) -> String {
        let text = match tls_error(error) {
            Some(error) => self.tls(error),
            None => self.plain(error, attempt),
        };
        let another = match attempt.short_lived < SHORT_LIVED_MIN {
            true => String::new(),
            false => format!(
                ", again and again soon after it was made; if another program is connected as {:?}, or under the same user \
                 name, stop it: a name is for one",
                self.client_id
            ),
        };
        self.sentence(&format!("{text}{another}"))
    }

    fn plain(&self, error: &ConnectionError, attempt: Attempt) -> String {
        match error {
            ConnectionError::Io(error) => self.io(error, attempt),
            ConnectionError::NetworkTimeout | ConnectionError::FlushTimeout => "no answer in time".to_owned(),
            ConnectionError::MqttState(StateError::ConnectionAborted) => {
                self.closed("the broker closed the connection", attempt)
            }
            ConnectionError::MqttState(
                StateError::Io(error) | StateError::Deserialization(mqttbytes::Error::Io(error)),
            ) => self.io(error, attempt),
            ConnectionError::MqttState(StateError::AwaitPingResp) => {
                "the broker does not answer pings".to_owned()
            }
            ConnectionError::ConnectionRefused(ConnectReturnCode::BadUserNamePassword) => {
                "the broker refuses the user name or password".to_owned()
            }
            ConnectionError::ConnectionRefused(ConnectReturnCode::NotAuthorized) => {
                "the broker does not authorise this client; are its name and its federation those that the broker's operator \
                 has given it?"
                    .to_owned()
            }
            other => other.to_string(),
        }
    }

    fn io(&self, error: &std::io::Error, attempt: Attempt) -> String {
        use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
        match error.kind() {
            ConnectionReset | ConnectionAborted | BrokenPipe | UnexpectedEof => {
                self.closed(&error.to_string(), attempt)
            }
            _ => error.to_string(),
        }
    }

    /// A listener for TLS closes connections without, and the other way round.
    fn closed(&self, text: &str, attempt: Attempt) -> String {
        match (attempt.established, self.encrypted) {
            (true, _) => text.to_owned(),
            (false, false) => format!("{text} (if it expects TLS, write mqtts:// in broker.url)"),
            (false, true) => format!(
                "{text} (if this port does not speak TLS, write its TLS port, or mqtt://, in broker.url)"
            ),
        }
    }

    fn tls(&self, error: &rustls::Error) -> String {
        use AlertDescription as Alert;
        let remedy = match error {
            rustls::Error::InvalidCertificate(error) => match error {
                CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                    "renew the broker's certificate, or set this device's clock"
                }
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                    "set this device's clock"
                }
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                    "write a name in broker.url that the broker's certificate is for"
                }
                CertificateError::Revoked => "the broker needs a new certificate",
                _ => "name the authority that signed the broker's certificate in broker.ca_file",
            },
            rustls::Error::AlertReceived(Alert::CertificateRequired) => {
                "the broker asks for a certificate: set broker.certificate_file and broker.key_file"
            }
            rustls::Error::AlertReceived(Alert::CertificateExpired) => {
                "this program's certificate has expired: renew broker.certificate_file"
            }
            rustls::Error::AlertReceived(Alert::CertificateRevoked) => {
                "this program's certificate was revoked: ask the broker's operator for a new one"
            }
            rustls::Error::AlertReceived(
                Alert::UnknownCA
                | Alert::BadCertificate
                | Alert::CertificateUnknown
                | Alert::UnsupportedCertificate
                | Alert::AccessDenied
                | Alert::DecryptError,
            ) => {
                "the broker refuses this program's certificate: set one in broker.certificate_file that its authority signed"
            }
            rustls::Error::InvalidMessage(_) => {
                "this port does not speak TLS: write its TLS port, or mqtt:// in broker.url"
            }
            _ => return format!("TLS failed: {error}"),
        };
        format!("TLS failed: {error}; {remedy}")
    }
}

/// The error of TLS that caused it, which may be wrapped in errors of input and output.
fn tls_error(error: &ConnectionError) -> Option<&rustls::Error> {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return Some(tls);
        }
        // An error of input and output hides what it wraps: its source is the source of that.
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        cause = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn peer(encrypted: bool) -> BrokerPeer {
        BrokerPeer { address: "broker.example:8883".into(), encrypted, client_id: "evenhand-town-m1".into() }
    }

    fn said(error: rustls::Error) -> String {
        let error = ConnectionError::Io(io::Error::new(io::ErrorKind::InvalidData, error));
        peer(true).describe(&error, Attempt::default())
    }

    #[test]
    fn permanent_faults_of_tls_have_a_remedy() {
        use rustls::Error::{AlertReceived, InvalidCertificate};
        for (error, remedy) in [
            (InvalidCertificate(CertificateError::UnknownIssuer), "broker.ca_file"),
            (InvalidCertificate(CertificateError::BadSignature), "broker.ca_file"),
            (InvalidCertificate(CertificateError::NotValidForName), "broker.url"),
            (InvalidCertificate(CertificateError::NotValidYet), "clock"),
            (InvalidCertificate(CertificateError::Expired), "renew"),
            (
                AlertReceived(AlertDescription::CertificateRequired),
                "broker.certificate_file and broker.key_file",
            ),
            (AlertReceived(AlertDescription::UnknownCA), "broker.certificate_file"),
            (AlertReceived(AlertDescription::CertificateExpired), "expired"),
            (AlertReceived(AlertDescription::CertificateRevoked), "revoked"),
            (rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType), "mqtt://"),
        ] {
            let sentence = said(error);
            assert!(sentence.starts_with("broker.example:8883: TLS failed: "), "{sentence}");
            let (_, after) = sentence.rsplit_once("; ").unwrap_or_default();
            assert!(after.contains(remedy), "{sentence}");
        }
    }

    #[test]
    fn errors_of_tls_are_found_within_others() {
        let inner = || rustls::Error::AlertReceived(AlertDescription::CertificateRequired);
        let wrapped = |error| ConnectionError::MqttState(StateError::Io(error));
        let once = wrapped(io::Error::other(inner()));
        let twice = wrapped(io::Error::other(io::Error::other(inner())));
        assert!(tls_error(&once).is_some() && tls_error(&twice).is_some());
        assert!(tls_error(&wrapped(io::ErrorKind::ConnectionReset.into())).is_none());
    }

    #[test]
    fn a_port_that_expects_tls_is_suspected() {
        let reset = ConnectionError::Io(io::ErrorKind::ConnectionReset.into());
        let new = Attempt::default();
        assert!(peer(false).describe(&reset, new).contains("mqtts://"));
        assert!(!peer(true).describe(&reset, new).contains("mqtts://"));
        let later = Attempt { established: true, ..new };
        assert!(!peer(false).describe(&reset, later).contains("mqtts://"), "it was accepted without");
        let refused = ConnectionError::Io(io::ErrorKind::ConnectionRefused.into());
        assert!(!peer(false).describe(&refused, new).contains("mqtts://"), "nothing listens there");
    }

    #[test]
    fn a_second_client_of_the_same_name_is_suspected() {
        let closed = ConnectionError::MqttState(StateError::ConnectionAborted);
        let lost = |short_lived| peer(true).describe(&closed, Attempt { established: true, short_lived });
        assert!(!lost(2).contains("evenhand-town-m1"));
        let sentence = lost(3);
        assert_eq!(sentence, lost(4), "a sentence that stays the same is logged once");
        assert!(sentence.contains("another program is connected as \"evenhand-town-m1\""), "{sentence}");
    }
}
