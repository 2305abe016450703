//! Dates that owners write.

use jiff::civil::{Date, date};
use serde::{Deserialize, Serialize};

/// A holiday by its date, such as "2026-12-25".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HolidayDate(Date);

impl HolidayDate {
    /// Days since 1970-01-01.
    pub fn local_day(self) -> i64 {
        (self.0 - date(1970, 1, 1)).get_days().into()
    }
}

impl TryFrom<String> for HolidayDate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map(Self).map_err(|_| format!("{text:?} is no date; write it as \"2026-12-25\""))
    }
}

impl From<HolidayDate> for String {
    fn from(HolidayDate(date): HolidayDate) -> Self {
        date.to_string()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_date_is_its_day() {
        let day = |text: &str| HolidayDate::try_from(text.to_owned()).map(HolidayDate::local_day);
        assert_eq!(day("1970-01-01"), Ok(0));
        assert_eq!(day("2026-12-25"), Ok(20_812));
        assert_eq!(day("1969-12-31"), Ok(-1));
        assert!(day("25.12.2026").unwrap_err().contains("write it as"));
    }
}
