//! Sources of readings: one trait, one file and one cargo feature for each kind.
//!
//! A file declares the `[source]` section of its kind, checks it and opens the source ([`SourceKind`]); it is registered
//! by its module and one line of the list below.

mod background_reader;
mod crc16;
mod duplicate_filter;
mod error;
mod intake;
mod lines;
mod local_training;
mod meter_line;
mod number;
mod obis;
mod paced;
mod poll_schedule;
mod registry;
mod serial;
mod tail;
mod tcp;
mod telegrams;
pub mod time;

pub mod csv;
pub mod d0;
pub mod household;
pub mod http;
pub mod json;
pub mod jsonl;
pub mod modbus;
pub mod mqtt;
pub mod p1;
pub mod sml;
pub mod sunspec;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use error::SourceError;
pub use intake::{Intake, RawInput};
pub use local_training::LocalTraining;
pub use paced::Paced;
pub use registry::{SourceContext, SourceKind};
#[cfg(feature = "serial")]
pub use serial::SerialParity;

use self::number::number;
use crate::reading::InputBatch;

registry::sources! {
    /// A synthetic household.
    "household" => Household(household::HouseholdConfig),
    /// A CSV file.
    "csv" => Csv(csv::CsvConfig),
    /// JSON lines.
    "jsonl" => Jsonl(jsonl::JsonlConfig),
    /// A topic on an MQTT broker.
    "mqtt" => Mqtt(mqtt::MqttConfig),
    /// A meter on Modbus TCP or Modbus RTU.
    "modbus" => Modbus(modbus::ModbusConfig),
    /// The P1 port of a smart meter.
    "p1" => P1(p1::P1Config),
    /// A meter that sends SML.
    "sml" => Sml(sml::SmlConfig),
    /// A meter with the interface D0.
    "d0" => D0(d0::D0Config),
    /// An inverter or meter with SunSpec models.
    "sunspec" => Sunspec(sunspec::SunspecConfig),
    /// An address that answers with JSON.
    "http" => Http(http::HttpConfig),
}

/// Time that a read waits for data before it returns none.
const READ_TIMEOUT: Duration = Duration::from_secs(1);

/// A source of readings or labelled rows, oldest first.
///
/// A source is plain blocking code: a live one runs on a thread, a simulated or recorded one can also be read in line,
/// round by round.
pub trait Source: Send {
    /// The next readings, at most `count`.
    ///
    /// Waits for the first of them for about a second, so that a shutdown need not wait longer; an empty batch means
    /// that there are none yet. After an error the source is opened again.
    fn read(&mut self, count: usize) -> Result<InputBatch, SourceError>;

    /// What it has taken in, and which inputs are malformed; none for a source that has no input.
    fn intake(&self) -> Option<&Intake> {
        None
    }

    /// Number of malformed inputs.
    fn malformed(&self) -> u64 {
        self.intake().map_or(0, Intake::malformed)
    }

    /// Training by acting, where the source is an environment: it takes the place of training on samples.
    fn local_training(&mut self) -> Option<&mut dyn LocalTraining> {
        None
    }

    /// The acknowledgement of all data since the last one, to be sent once they are in the journal; none where the sender
    /// expects none.
    fn acknowledgement(&mut self) -> Option<Acknowledgement> {
        None
    }
}

/// Acknowledges data, so that the sender does not deliver them again. Dropped, it acknowledges nothing.
pub struct Acknowledgement(Box<dyn FnOnce() + Send>);

impl Acknowledgement {
    /// An acknowledgement that runs `send` when it is sent.
    pub fn new(send: impl FnOnce() + Send + 'static) -> Self {
        Self(Box::new(send))
    }

    /// Acknowledges the data.
    pub fn send(self) {
        (self.0)();
    }
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn read(&mut self, count: usize) -> Result<InputBatch, SourceError> {
        (**self).read(count)
    }

    fn intake(&self) -> Option<&Intake> {
        (**self).intake()
    }

    fn local_training(&mut self) -> Option<&mut dyn LocalTraining> {
        (**self).local_training()
    }

    fn acknowledgement(&mut self) -> Option<Acknowledgement> {
        (**self).acknowledgement()
    }
}

/// Milliseconds since 1970, for readings that arrive without a time.
pub(crate) fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
