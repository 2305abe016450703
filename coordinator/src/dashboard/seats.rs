//! Seats of connections: when all are taken, the connection that has waited longest gives way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio::time::Instant;

/// The connections of a listener.
#[derive(Debug)]
pub(super) struct Seats {
    max: usize,
    taken: Mutex<TakenSeats>,
}

#[derive(Debug, Default)]
struct TakenSeats {
    next: u64,
    by_number: BTreeMap<u64, TakenSeat>,
}

#[derive(Debug)]
struct TakenSeat {
    /// True if it was answered before: a browser that listens to events is worth more than an unfinished request.
    answered: bool,
    /// The time of its last answer, or of the first byte of a request.
    since: Instant,
    gives_way: oneshot::Sender<()>,
}

/// One connection's seat, free again when dropped.
#[derive(Debug)]
pub(super) struct Seat {
    seats: Arc<Seats>,
    number: u64,
}

impl Seats {
    /// So many seats, at least one.
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max: max.max(1), taken: Mutex::default() })
    }

    /// A seat, and the signal that it must be given up.
    pub(super) fn take(self: &Arc<Self>) -> (Seat, oneshot::Receiver<()>) {
        let (gives_way, must_go) = oneshot::channel();
        let mut taken = self.taken();
        while taken.by_number.len() >= self.max {
            let first = taken.by_number.iter().min_by_key(|(_, seat)| (seat.answered, seat.since));
            let Some(number) = first.map(|(number, _)| *number) else { break };
            if let Some(seat) = taken.by_number.remove(&number) {
                // Its connection may be closing already.
                let _gone = seat.gives_way.send(());
            }
        }
        let number = taken.next;
        taken.next += 1;
        let seat = TakenSeat { answered: false, since: Instant::now(), gives_way };
        taken.by_number.insert(number, seat);
        (Seat { seats: Arc::clone(self), number }, must_go)
    }

    fn taken(&self) -> MutexGuard<'_, TakenSeats> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// A request has begun, or an answer was written.
    pub(super) fn refresh(&self, answered: bool) {
        if let Some(seat) = self.seats.taken().by_number.get_mut(&self.number) {
            seat.answered |= answered;
            seat.since = Instant::now();
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.taken().by_number.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn unfinished_requests_give_way_before_listeners_and_the_longest_first() {
        let seats = Seats::new(3);
        let (listener, mut listener_must_go) = seats.take();
        listener.refresh(true);
        let (_slow, mut slow_must_go) = seats.take();
        let (_slower, mut slower_must_go) = seats.take();
        let (fourth, mut fourth_must_go) = seats.take();
        assert!(slow_must_go.try_recv().is_ok() && slower_must_go.try_recv().is_err());
        drop(fourth);
        assert!(fourth_must_go.try_recv().is_err(), "it had a seat until then");
        let (_fifth, _) = seats.take();
        assert!(slower_must_go.try_recv().is_err(), "there was a free seat");
        let (_sixth, _) = seats.take();
        assert!(slower_must_go.try_recv().is_ok());
        let (_seventh, _) = seats.take();
        assert!(listener_must_go.try_recv().is_err());
        listener.refresh(true);
    }
}
