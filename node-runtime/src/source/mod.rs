//! Where readings come from: one trait, one file and one cargo feature for each kind.

#[cfg(not(any(
    feature = "csv",
    feature = "household",
    feature = "jsonl",
    feature = "modbus",
    feature = "mqtt",
    feature = "p1"
)))]
compile_error!("a node needs a source: build with --features csv, household, jsonl, modbus, mqtt or p1");

#[cfg(feature = "household")]
mod clocked;
#[cfg(feature = "csv")]
pub mod csv;
#[cfg(feature = "household")]
pub mod household;
#[cfg(any(feature = "jsonl", feature = "mqtt"))]
pub mod json;
#[cfg(feature = "jsonl")]
pub mod jsonl;
#[cfg(any(feature = "csv", feature = "jsonl"))]
mod lines;
#[cfg(feature = "modbus")]
pub mod modbus;
#[cfg(feature = "mqtt")]
pub mod mqtt;
#[cfg(feature = "p1")]
pub mod p1;
#[cfg(any(feature = "jsonl", feature = "mqtt"))]
mod pump;
#[cfg(feature = "p1")]
mod serial;
#[cfg(any(feature = "csv", feature = "jsonl", feature = "mqtt"))]
mod sieve;
#[cfg(any(feature = "csv", feature = "jsonl"))]
mod tail;
#[cfg(any(feature = "modbus", feature = "p1"))]
mod tcp;
pub mod time;

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[cfg(feature = "household")]
pub use clocked::Clocked;

use crate::reading::Intake;

/// How long a source waits for its next reading before it says that there is none yet.
const PATIENCE: Duration = Duration::from_secs(1);

/// Something that hands readings over, oldest first.
///
/// A source is plain blocking code: a live one runs on a thread of its own, a simulated or recorded one can also be read
/// in line, round by round.
pub trait Source: Send {
    /// The next readings, at most `count`.
    ///
    /// Waits for the first of them for about a second, so that a node that ends need not wait longer; an empty answer
    /// means that there are none yet. After an error the source is opened anew.
    fn read(&mut self, count: usize) -> Result<Intake, SourceError>;

    /// How much came that was no reading.
    fn malformed(&self) -> u64 {
        0
    }

    /// What to sign once all that was read since the last receipt is kept; none where nobody waits for it.
    fn receipt(&mut self) -> Option<Receipt> {
        None
    }
}

/// Tells the other side that it need not say again what was read. Dropped, it tells nothing.
pub struct Receipt(Box<dyn FnOnce() + Send>);

impl Receipt {
    /// A receipt that does this when it is signed.
    pub fn new(sign: impl FnOnce() + Send + 'static) -> Self {
        Self(Box::new(sign))
    }

    /// What was read is kept.
    pub fn sign(self) {
        (self.0)();
    }
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn read(&mut self, count: usize) -> Result<Intake, SourceError> {
        (**self).read(count)
    }

    fn malformed(&self) -> u64 {
        (**self).malformed()
    }

    fn receipt(&mut self) -> Option<Receipt> {
        (**self).receipt()
    }
}

/// Why a source has nothing more to say.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A recorded source is used up; this is no failure.
    #[error("the source is at its end")]
    Ended,
    /// A file or device does not open or read.
    #[error("{path}: {cause}")]
    File {
        /// Which one.
        path: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
    /// The system gives the source no thread.
    #[error("cannot start a thread for the source: {0}")]
    Thread(std::io::Error),
    /// A meter on Modbus does not answer as it should.
    #[cfg(feature = "modbus")]
    #[error("{address}: {cause}")]
    Modbus {
        /// Which one.
        address: String,
        /// What is wrong.
        cause: modbus::ModbusError,
    },
    /// The broker that a source listens to is away, or refuses us.
    #[error("broker {broker}: {cause}")]
    Mqtt {
        /// Which one.
        broker: String,
        /// What is wrong.
        cause: Box<rumqttc::ConnectionError>,
    },
    /// The broker that a source listens to cannot be used.
    #[error(transparent)]
    Link(#[from] evenhand_link::LinkError),
    /// What the configuration names cannot be read.
    #[error(transparent)]
    Config(#[from] Box<crate::config::ConfigError>),
    /// A column that the configuration names does not exist.
    #[error("{path} has no column {column:?}; its columns are {columns}")]
    Column {
        /// Which file.
        path: PathBuf,
        /// The column that was wanted.
        column: String,
        /// Those that are there.
        columns: String,
    },
}

/// A number with a decimal point or comma; spaces around it do not matter.
#[cfg(any(feature = "csv", feature = "jsonl", feature = "mqtt", feature = "p1"))]
fn number(text: &str, decimal_comma: bool) -> Option<f64> {
    let text = text.trim();
    let value: f64 = if decimal_comma { text.replacen(',', ".", 1).parse() } else { text.parse() }.ok()?;
    value.is_finite().then_some(value)
}

/// Milliseconds since 1970, for readings that come without a time.
pub(crate) fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
