//! Progress of trainings, with an estimate of the time left.

use std::io::Write;
use std::time::Instant;

use crate::experiment::progress::duration;
use crate::sim::progress::ProgressStyle;

/// Seconds between two lines of a log.
const QUIET_SECONDS: f64 = 15.0;

/// The progress of the trainings of all seeds.
#[derive(Debug)]
pub struct TrainingProgress<W> {
    out: W,
    style: ProgressStyle,
    begun: Instant,
    last_line: f64,
    wanted: usize,
    done: usize,
    /// Of those done, the ones that were stored already.
    stored: usize,
}

impl<W: Write> TrainingProgress<W> {
    /// Progress on `out` of about `wanted` trainings in all; write errors are ignored.
    pub fn new(out: W, style: ProgressStyle, wanted: usize) -> Self {
        Self { out, style, begun: Instant::now(), last_line: 0.0, wanted, done: 0, stored: 0 }
    }

    /// Counts trainings that are stored already.
    pub fn stored(&mut self, count: usize) {
        self.done += count;
        self.stored += count;
    }

    /// Counts a training and shows how far all are.
    pub fn trained(&mut self, what: &str) {
        self.done += 1;
        let seconds = self.begun.elapsed().as_secs_f64();
        let text = text(what, (self.done, self.wanted), self.stored, seconds);
        match self.style {
            ProgressStyle::Silent => {}
            ProgressStyle::Live { .. } => {
                let _ = write!(self.out, "\r\x1b[?7l{text}\x1b[K\x1b[?7h");
                let _ = self.out.flush();
            }
            ProgressStyle::Plain if seconds - self.last_line >= QUIET_SECONDS => {
                self.last_line = seconds;
                let _ = writeln!(self.out, "{text}");
            }
            ProgressStyle::Plain => {}
        }
    }

    /// Clears the line, so that what follows starts on an empty one.
    pub fn finish(&mut self) {
        if let ProgressStyle::Live { .. } = self.style {
            let _ = write!(self.out, "\r\x1b[K");
            let _ = self.out.flush();
        }
    }
}

/// The line, after some seconds of trainings of which `stored` took none.
fn text(what: &str, (done, wanted): (usize, usize), stored: usize, seconds: f64) -> String {
    let each = seconds / (done - stored).max(1) as f64;
    let left = duration(each * wanted.saturating_sub(done) as f64);
    format!("{done} of {} trainings done, about {left} left  ({what})", wanted.max(done))
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn time_left_is_that_of_the_trainings_to_come() {
        // 10 of 20 trainings took 100 s; 70 are left.
        let shown = text("seed 3", (30, 100), 20, 100.0);
        assert_eq!(shown, "30 of 100 trainings done, about 12 min left  (seed 3)");
    }
}
