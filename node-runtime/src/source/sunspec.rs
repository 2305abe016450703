//! An inverter or meter that describes itself by SunSpec models, over Modbus TCP or Modbus RTU.
#![cfg(feature = "sunspec")]

mod models;

use std::path::PathBuf;

pub use self::models::{PointValue, SunspecModel, find_point};
use serde::{Deserialize, Serialize};

use self::models::{MARK, MARK_PLACES};
use super::meter_line::{LineConfig, check_baud};
use super::modbus::{ModbusClient, ModbusError, REGISTERS_MAX, RegisterRequest, RegisterTable};
use super::poll_schedule::{PollSchedule, check_interval};
use super::serial::{SerialFormat, SerialParity};
use super::{Intake, Source, SourceContext, SourceError, SourceKind, now_ms};
use crate::config::section::section;
use crate::reading::{InputBatch, Reading};

/// Models of one device; more are a fault of the device.
const MODELS_MAX: usize = 64;
/// In place of a model's number, after the last model.
const END: u16 = 0xffff;

section! {
    /// An inverter or meter with SunSpec models, and which of its values is the reading.
    pub struct SunspecConfig {
        /// HOST:PORT of the device or gateway; "" if a device is given.
        pub address: String = String::new() => "\"192.168.1.30:502\"",
        /// The serial device, for Modbus RTU; "" if an address is given.
        pub device: PathBuf = PathBuf::new(),
        /// Speed of the serial line.
        pub baud: u32 = 9600,
        /// Parity on the serial line: "none", "even" or "odd".
        pub parity: SerialParity = SerialParity::None,
        /// The unit: usually 1, or 126.
        pub unit: u8 = 1,
        /// The model to read: 101, 102, 103, 111, 112 or 113 of an inverter, 201 to 204 or 211 to 214 of a meter; 0: the first of
        /// these.
        pub model: u16 = 0,
        /// "power" in kW; "energy" in kWh, made by an inverter or taken from the grid; "energy-exported", of a meter. Energies are
        /// for quantity = "counter".
        pub value: SunspecValue = SunspecValue::Power,
        /// Seconds between two readings.
        pub interval_s: f64 = 10.0,
    }
}

/// The value of a model that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SunspecValue {
    /// The power at the moment.
    Power,
    /// The energy that an inverter made, or that a meter saw taken from the grid.
    Energy,
    /// The energy that a meter saw fed into the grid.
    EnergyExported,
}

impl SourceKind for SunspecConfig {
    fn check(&self) -> Result<(), String> {
        self.line().check()?;
        check_baud(self.baud)?;
        check_interval(self.interval_s)?;
        match self.model {
            0 => Ok(()),
            model if SunspecModel::of(model).is_none() => Err(format!(
                "source.model = {model} is not read; choose 101, 102, 103, 111, 112, 113, 201 to 204, 211 to 214, or 0 for the first"
            )),
            model if SunspecModel::of(model).and_then(|model| model.point(self.value)).is_none() => Err(
                format!("source.value: model {model} has no exported energy; choose \"power\" or \"energy\""),
            ),
            _ => Ok(()),
        }
    }

    fn place(&self) -> String {
        self.line().place()
    }

    fn open(&self, _context: &SourceContext<'_>) -> Result<Box<dyn Source>, SourceError> {
        Ok(Box::new(Sunspec::open(self.clone())?))
    }
}

impl SunspecConfig {
    fn line(&self) -> LineConfig<'_> {
        LineConfig { device: &self.device, address: &self.address }
    }
}

/// Error of a device that has no such value.
#[derive(Debug, thiserror::Error)]
pub enum SunspecError {
    /// The mark is nowhere.
    #[error(
        "it has no SunSpec models (no SunS at 40000, 50000 or 0); switch SunSpec on in the device, check source.unit, or read its registers with kind = \"modbus\""
    )]
    NoMark,
    /// None of the models can be read.
    #[error(
        "it has no model {wanted} with this value; its models are {found}: change source.model or source.value"
    )]
    NoModel {
        /// The configured model.
        wanted: String,
        /// The models of the device.
        found: String,
    },
}

/// A connection to a device whose models are known.
#[derive(Debug)]
pub struct Sunspec {
    settings: SunspecConfig,
    client: ModbusClient,
    model: SunspecModel,
    /// Registers from the model's number to the end of its values.
    request: RegisterRequest,
    schedule: PollSchedule,
    intake: Intake,
}

impl Sunspec {
    /// Connects, or opens the device, and looks for the model.
    pub fn open(settings: SunspecConfig) -> Result<Self, SourceError> {
        let format = SerialFormat { parity: settings.parity, ..SerialFormat::eight_bits(settings.baud) };
        let mut client = ModbusClient::open(settings.line(), format)?;
        let (model, request) = find_model(&mut client, &settings)?;
        let schedule = PollSchedule::every(settings.interval_s);
        Ok(Self { settings, client, model, request, schedule, intake: Intake::default() })
    }
}

impl Source for Sunspec {
    fn read(&mut self, _count: usize) -> Result<InputBatch, SourceError> {
        if !self.schedule.wait() {
            return Ok(InputBatch::Readings(Vec::new()));
        }
        let registers = self.client.read(&self.request)?;
        self.schedule.done();
        let value = find_point(&registers, self.model, self.settings.value);
        let text = || match value {
            Ok(PointValue { raw, exponent, .. }) => {
                format!("model {}: {raw} × 10^{exponent}", self.model.number())
            }
            Err(_) => format!("model {}", self.model.number()),
        };
        let value = value.as_ref().map_err(|reason| (*reason).to_owned());
        let result = value.map(|value| Reading { time_ms: now_ms(), value: value.value });
        let reading = self.intake.record(text, result);
        Ok(InputBatch::Readings(reading.into_iter().collect()))
    }

    fn intake(&self) -> Option<&Intake> {
        Some(&self.intake)
    }
}

/// The configured model, or the first that can be read, and the request for its registers.
fn find_model(
    client: &mut ModbusClient,
    settings: &SunspecConfig,
) -> Result<(SunspecModel, RegisterRequest), SourceError> {
    let holding = |first: u16, count: u16| RegisterRequest {
        unit: settings.unit,
        table: RegisterTable::Holding,
        first,
        count,
    };
    let mut base = None;
    for place in MARK_PLACES {
        match client.read(&holding(place, 2)) {
            Ok(registers) if registers == MARK => {
                base = Some(place + 2);
                break;
            }
            Ok(_) => {}
            // No such register: the mark may be at another place.
            Err(SourceError::Peer { cause, .. })
                if matches!(cause.downcast_ref(), Some(ModbusError::Exception { code: 2 | 3 })) => {}
            Err(error) => return Err(error),
        }
    }
    let mut at = base.ok_or_else(|| client.failed(SunspecError::NoMark))?;
    let mut found: Vec<String> = Vec::new();
    while found.len() < MODELS_MAX {
        let head = client.read(&holding(at, 2))?;
        let (Some(number), Some(length)) = (models::word(&head, 0), models::word(&head, 1)) else { break };
        if number == END {
            break;
        }
        let wanted = settings.model == 0 || settings.model == number;
        if let Some(model) = SunspecModel::of(number).filter(|_| wanted)
            && model.point(settings.value).is_some()
        {
            let count = length.saturating_add(2).min(REGISTERS_MAX);
            return Ok((model, holding(at, count)));
        }
        found.push(number.to_string());
        let Some(next) = length.checked_add(2).and_then(|length| at.checked_add(length)) else { break };
        at = next;
    }
    let wanted = match settings.model {
        0 => "of an inverter or meter".to_owned(),
        number => number.to_string(),
    };
    let found = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
    Err(client.failed(SunspecError::NoModel { wanted, found }))
}
