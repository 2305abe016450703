//! A JSON value that a device serves over HTTP, as Shelly, Tasmota and others do.
#![cfg(feature = "http")]
// Explanations are printed as they stand: names of sections in brackets are no links.
#![allow(rustdoc::broken_intra_doc_links)]

mod answer;
mod request;

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use evenhand_link::{Tls, TlsFiles};

pub use self::answer::{HttpError, PolledAnswer};
use self::request::HttpRequest;
use super::json::JsonFields;
use super::poll_schedule::{PollSchedule, check_interval};
use super::time::{TimeFormat, TimeReader};
use super::{Intake, Source, SourceContext, SourceError, SourceKind};
use crate::config::secret;
use crate::config::section::section;
use crate::reading::{InputBatch, SourcePosition};
use crate::time_zone::LocalTimeZone;

/// Time for a whole answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

section! {
    /// An address that answers with JSON, and the fields of the answer.
    pub struct HttpConfig {
        /// The address, http:// or https://.
        pub url: String = String::new() => "\"http://192.168.1.40/rpc/Switch.GetStatus?id=0\"",
        /// Path of the value within the answer; "" for an answer that is a number.
        pub value: String = String::new() => "\"apower\"",
        /// Path of the time within the answer; "" for the time of arrival.
        pub time: String = String::new(),
        /// Format of times: "iso", "unix-s", "unix-ms" or "day-first" (31.12.2024 23:45).
        pub time_format: TimeFormat = TimeFormat::Iso,
        /// Time zone of times without an offset, if it is not the window's.
        pub time_zone: Option<LocalTimeZone> = None => "\"Europe/London\"",
        /// Seconds between two requests.
        pub interval_s: f64 = 10.0,
        /// User name for basic authentication; "" for none.
        pub username: String = String::new() => "\"admin\"",
        /// A file that contains the password.
        pub password_file: Option<PathBuf> = None => "\"/etc/evenhand/device-password\"",
        /// An environment variable that contains the password, instead of the file.
        pub password_env: Option<String> = None => "\"DEVICE_PASSWORD\"",
        /// TLS: certificates of the trusted authorities (default: the system's).
        pub ca_file: Option<PathBuf> = None => "\"/etc/evenhand/device-ca.pem\"",
    }
}

impl SourceKind for HttpConfig {
    fn check(&self) -> Result<(), String> {
        HttpRequest::new(&self.url, None)?;
        check_interval(self.interval_s)?;
        let has_password = self.password_file.is_some() || self.password_env.is_some();
        if has_password && self.username.is_empty() {
            return Err("source.username is missing; a password needs one, often \"admin\"".into());
        }
        Ok(())
    }

    fn place(&self) -> String {
        self.url.clone()
    }

    fn open(&self, context: &SourceContext<'_>) -> Result<Box<dyn Source>, SourceError> {
        let settings =
            HttpConfig { time_zone: Some(context.time_zone(self.time_zone.as_ref())), ..self.clone() };
        Ok(Box::new(Http::open(settings, context.position)?))
    }
}

/// A device that is asked at an interval, with a connection for each request.
#[derive(Debug)]
pub struct Http {
    url: String,
    request: HttpRequest,
    tls: Option<Tls>,
    fields: JsonFields,
    /// The time of the last reading: a device that has no newer one answers with it again.
    last_ms: Option<i64>,
    schedule: PollSchedule,
    intake: Intake,
}

impl Http {
    /// Reads the password and certificates; connects with the first read, and continues after `position`.
    pub fn open(settings: HttpConfig, position: SourcePosition) -> Result<Self, SourceError> {
        let password = secret::read(settings.password_file.as_deref(), settings.password_env.as_deref())
            .map_err(Box::new)?
            .unwrap_or_default();
        let credentials = (settings.username.as_str(), password.as_str());
        let credentials = Some(credentials).filter(|(username, _)| !username.is_empty());
        let failed =
            |sentence: String| SourceError::Peer { peer: settings.url.clone(), cause: sentence.into() };
        let request = HttpRequest::new(&settings.url, credentials).map_err(failed)?;
        let files = TlsFiles { ca: settings.ca_file.clone(), ..TlsFiles::default() };
        let tls = request.is_encrypted().then(|| Tls::load(&files)).transpose();
        let times = TimeReader::new(settings.time_format, settings.time_zone.unwrap_or_default());
        Ok(Self {
            tls: tls.map_err(|error| failed(error.to_string()))?,
            request,
            fields: JsonFields::new(&settings.value, &settings.time, times.resumed(position)),
            last_ms: position.newest_ms,
            schedule: PollSchedule::every(settings.interval_s),
            intake: Intake::default(),
            url: settings.url,
        })
    }

    /// The text of one answer.
    fn ask(&self) -> Result<String, HttpError> {
        let until = Instant::now() + ANSWER_TIMEOUT;
        let mut stream = self.request.connect(self.tls.as_ref())?;
        stream.write_all(self.request.bytes())?;
        let (mut answer, mut block) = (PolledAnswer::default(), [0; 4096]);
        loop {
            let count = match stream.read(&mut block) {
                Ok(count) => count,
                // A peer that ends without the farewell of TLS.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => 0,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            if let Some(text) = answer.push(&block[..count])? {
                return Ok(text);
            }
            if Instant::now() > until {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the answer takes too long").into());
            }
        }
    }
}

impl Source for Http {
    fn read(&mut self, _count: usize) -> Result<InputBatch, SourceError> {
        if !self.schedule.wait() {
            return Ok(InputBatch::Readings(Vec::new()));
        }
        let text = self
            .ask()
            .map_err(|error| SourceError::Peer { peer: self.url.clone(), cause: Box::new(error) })?;
        self.schedule.done();
        let reading = self.fields.reading(&text);
        let reading = self.intake.record(|| text, reading);
        let newer = reading.filter(|reading| self.last_ms != Some(reading.time_ms));
        self.last_ms = newer.map(|reading| reading.time_ms).or(self.last_ms);
        Ok(InputBatch::Readings(newer.into_iter().collect()))
    }

    fn intake(&self) -> Option<&Intake> {
        Some(&self.intake)
    }
}
