//! A connection to a meter that answers requests for registers.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::{ModbusError, RegisterRequest, rtu_frame, tcp_frame};
use crate::source::meter_line::{LineConfig, MeterLine};
use crate::source::serial::SerialFormat;
use crate::source::{SourceError, tcp};

/// Time for a meter's answer over TCP, which may pass a gateway.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for a meter's answer on a serial line.
const SERIAL_ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// A read of a serial line waits so long; longer than the pauses within an answer.
const SERIAL_WAIT: Duration = Duration::from_millis(100);

/// Modbus TCP or, on a serial line, Modbus RTU.
#[derive(Debug)]
pub(in crate::source) struct ModbusClient {
    name: String,
    channel: ModbusChannel,
}

#[derive(Debug)]
enum ModbusChannel {
    Tcp { stream: TcpStream, transaction: u16 },
    Rtu(MeterLine),
}

impl ModbusClient {
    /// Connects to the address, or opens the device.
    pub(in crate::source) fn open(line: LineConfig<'_>, format: SerialFormat) -> Result<Self, SourceError> {
        if line.address.is_empty() {
            let name = line.device.display().to_string();
            let channel = ModbusChannel::Rtu(line.open(format, SERIAL_WAIT)?);
            return Ok(Self { name, channel });
        }
        let name = line.address.to_owned();
        match tcp::connect(line.address, ANSWER_TIMEOUT) {
            Ok(stream) => Ok(Self { name, channel: ModbusChannel::Tcp { stream, transaction: 0 } }),
            Err(error) => Err(SourceError::Peer { peer: name, cause: Box::new(ModbusError::Io(error)) }),
        }
    }

    /// The bytes of the registers.
    pub(in crate::source) fn read(&mut self, request: &RegisterRequest) -> Result<Vec<u8>, SourceError> {
        let read = match &mut self.channel {
            ModbusChannel::Tcp { stream, transaction } => {
                *transaction = transaction.wrapping_add(1);
                over_tcp(stream, *transaction, request)
            }
            ModbusChannel::Rtu(line) => {
                let answer = over_serial(line, request)?;
                rtu_frame::registers(&answer, request).map(<[u8]>::to_vec)
            }
        };
        read.map_err(|error| self.failed(error))
    }

    /// An error of this meter.
    pub(in crate::source) fn failed(
        &self,
        cause: impl std::error::Error + Send + Sync + 'static,
    ) -> SourceError {
        SourceError::Peer { peer: self.name.clone(), cause: Box::new(cause) }
    }
}

fn over_tcp(
    stream: &mut TcpStream,
    transaction: u16,
    request: &RegisterRequest,
) -> Result<Vec<u8>, ModbusError> {
    stream.write_all(&tcp_frame::frame(transaction, request))?;
    let mut first = [0; tcp_frame::FIRST_BYTES];
    stream.read_exact(&mut first)?;
    let mut registers = vec![0; tcp_frame::bytes_to_follow(first, transaction, request)?];
    stream.read_exact(&mut registers)?;
    Ok(registers)
}

/// The whole answer, which is not checked.
fn over_serial(line: &mut MeterLine, request: &RegisterRequest) -> Result<Vec<u8>, SourceError> {
    line.discard_input()?;
    line.write(&rtu_frame::frame(request))?;
    let until = Instant::now() + SERIAL_ANSWER_TIMEOUT;
    let (mut answer, mut block) = (Vec::new(), [0; 256]);
    loop {
        answer.extend_from_slice(line.read(&mut block)?);
        if let Some(head) = answer.first_chunk()
            && answer.len() >= rtu_frame::length(*head, request)
        {
            return Ok(answer);
        }
        if Instant::now() > until {
            let sentence = if answer.is_empty() {
                "the meter does not answer; check unit, speed, parity, and the wires A and B"
            } else {
                "the meter's answer broke off; check the speed and the wires"
            };
            return Err(line.failed(io::Error::new(io::ErrorKind::TimedOut, sentence)));
        }
    }
}
