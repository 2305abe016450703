//! What a program's own certificate says: for whom it is, and until when.

use std::path::Path;

use crate::TlsError;
use crate::tls::certificates;

const DAY_MS: i64 = 86_400_000;

/// Days before the end of a certificate in which programs warn of it.
pub const EXPIRY_WARNING_DAYS: i64 = 30;

/// Name and validity of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFacts {
    /// The common name of its subject, which brokers take for the user name.
    pub common_name: Option<String>,
    /// The end of its validity, in milliseconds since 1970.
    pub expires_ms: i64,
    /// The day of that, such as 2027-01-31.
    pub expires_on: String,
}

impl CertificateFacts {
    /// Of the first certificate in a PEM file; none if it cannot be understood.
    pub fn read(path: &Path) -> Result<Option<Self>, TlsError> {
        Ok(certificates(path)?.first().and_then(|der| Self::of_der(der)))
    }

    /// Of a certificate in DER; none if it cannot be understood.
    pub fn of_der(der: &[u8]) -> Option<Self> {
        let mut to_be_signed = Der(Der(Der(der).value(SEQUENCE)?).value(SEQUENCE)?);
        to_be_signed.skip_if(VERSION);
        to_be_signed.value(INTEGER)?; // serial number
        to_be_signed.value(SEQUENCE)?; // algorithm of the signature
        to_be_signed.value(SEQUENCE)?; // issuer
        let mut validity = Der(to_be_signed.value(SEQUENCE)?);
        validity.next()?;
        let (tag, time) = validity.next()?;
        let (expires_ms, expires_on) = parsed_time(tag, time)?;
        let subject = to_be_signed.value(SEQUENCE)?;
        Some(Self { common_name: common_name(subject), expires_ms, expires_on })
    }

    /// The sentence about a certificate that has ended or is about to.
    pub fn expiry(&self, key: &str, now_ms: i64) -> Option<String> {
        let days = self.expires_ms.saturating_sub(now_ms).div_euclid(DAY_MS);
        let (on, remedy) = (&self.expires_on, "renew it, and start this program again");
        match days {
            ..0 => Some(format!("{key}: the certificate has expired on {on}; {remedy}")),
            0..EXPIRY_WARNING_DAYS => {
                Some(format!("{key}: the certificate expires in {days} days, on {on}; {remedy}"))
            }
            _ => None,
        }
    }
}

const INTEGER: u8 = 0x02;
const OBJECT: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];

/// Elements of DER that are left to be read.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// Tag and value of the next element.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            // Certificates are shorter than 16 MiB.
            0x81..=0x83 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
                (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (value, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, value))
    }

    /// The value of the next element, which must have this tag.
    fn value(&mut self, expected: u8) -> Option<&'a [u8]> {
        self.next().filter(|(tag, _)| *tag == expected).map(|(_, value)| value)
    }

    fn skip_if(&mut self, tag: u8) {
        if self.0.first() == Some(&tag) {
            self.next();
        }
    }
}

fn common_name(subject: &[u8]) -> Option<String> {
    let mut names = Der(subject);
    while let Some(set) = names.value(SET) {
        let mut pair = Der(Der(set).value(SEQUENCE)?);
        if pair.value(OBJECT)? == COMMON_NAME {
            let (_, text) = pair.next()?;
            return std::str::from_utf8(text).ok().map(str::to_owned);
        }
    }
    None
}

/// Milliseconds since 1970, and the day, of YYMMDDHHMMSSZ or YYYYMMDDHHMMSSZ.
fn parsed_time(tag: u8, text: &[u8]) -> Option<(i64, String)> {
    let year_digits = match tag {
        UTC_TIME => 2,
        GENERALIZED_TIME => 4,
        _ => return None,
    };
    let digits = text.strip_suffix(b"Z")?;
    if digits.len() != year_digits + 10 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = |from: usize, to: usize| {
        digits[from..to].iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'))
    };
    let year = match (tag, number(0, year_digits)) {
        (UTC_TIME, year @ 50..) => 1900 + year,
        (UTC_TIME, year) => 2000 + year,
        (_, year) => year,
    };
    let at = |index: usize| number(year_digits + 2 * index, year_digits + 2 * index + 2);
    let [month, day, hour, minute, second] = std::array::from_fn(at);
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    Some((seconds * 1000, format!("{year:04}-{month:02}-{day:02}")))
}

/// Of the Gregorian calendar. Years begin in March, so that the leap day is a year's last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;
    use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};

    use super::*;

    fn der(name: &str, end: (i32, u8, u8)) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["host.example".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::OrganizationName, "an organisation");
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_after = date_time_ymd(end.0, end.1, end.2);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn name_and_end_are_those_that_were_written() {
        for (end, expected_s) in [
            ((2027, 1, 31), 1_801_353_600),
            ((2024, 2, 29), 1_709_164_800),
            ((2000, 3, 1), 951_868_800),
            ((2061, 12, 31), 2_903_212_800),
        ] {
            let facts = CertificateFacts::of_der(&der("meter-1", end)).unwrap();
            assert_eq!(facts.common_name.as_deref(), Some("meter-1"));
            assert_eq!(facts.expires_ms, expected_s * 1000, "{end:?}");
            assert_eq!(facts.expires_on, format!("{:04}-{:02}-{:02}", end.0, end.1, end.2));
        }
    }

    #[test]
    fn an_end_that_is_near_is_said_with_the_remedy() {
        let facts = CertificateFacts::of_der(&der("m1", (2027, 1, 31))).unwrap();
        let at = |days: i64| facts.expiry("broker.certificate_file", facts.expires_ms - days * DAY_MS);
        assert_eq!((at(30), at(400)), (None, None));
        let near = at(29).unwrap();
        assert!(near.contains("in 29 days, on 2027-01-31") && near.contains("renew"), "{near}");
        let over = at(-1).unwrap();
        assert!(over.starts_with("broker.certificate_file: ") && over.contains("has expired"), "{over}");
    }

    proptest! {
        #[test]
        fn damaged_certificates_never_panic(at in 0usize..400, byte: u8, length in 0usize..400) {
            let mut bytes = der("m1", (2027, 1, 31));
            let at = at % bytes.len();
            bytes[at] = byte;
            let _any = CertificateFacts::of_der(&bytes);
            bytes.truncate(length);
            let _any = CertificateFacts::of_der(&bytes);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _any = CertificateFacts::of_der(&bytes);
        }
    }
}
