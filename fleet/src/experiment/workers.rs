//! Worker threads of an experiment: each takes the next item until all are done.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::ExperimentError;
use crate::sim::Interrupt;

/// Calls `work` with every item, `jobs` items at a time, and with the `state` of its worker.
///
/// Every worker has a pool of threads of its own and its share of the cores, so that items do not wait for each other's
/// parts. The first error raises the interrupt, and is returned when the items under way are done.
pub(super) fn for_each<T: Sync, S: Send>(
    items: &[T],
    jobs: usize,
    interrupt: &Interrupt,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &T) -> Result<(), ExperimentError> + Sync,
) -> Result<(), ExperimentError> {
    let jobs = jobs.clamp(1, items.len().max(1));
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let (next, failure) = (AtomicUsize::new(0), Mutex::new(None));
    let worker = || -> Result<(), ExperimentError> {
        let threads = rayon::ThreadPoolBuilder::new()
            .num_threads((cores / jobs).max(1))
            .build()
            .map_err(|error| ExperimentError::Threads(io::Error::other(error)))?;
        let mut state = state();
        while !interrupt.is_raised() {
            let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            threads.install(|| work(&mut state, item))?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                if let Err(error) = worker() {
                    failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                    interrupt.raise();
                }
            });
        }
    });
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_worked_on_once() {
        let items: Vec<usize> = (0..100).collect();
        let done = Mutex::new(Vec::new());
        let outcome = for_each(
            &items,
            7,
            &Interrupt::default(),
            || 0,
            |count, item| {
                *count += 1;
                done.lock().unwrap_or_else(PoisonError::into_inner).push(*item);
                Ok(())
            },
        );
        assert!(outcome.is_ok());
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_unstable();
        assert_eq!(done, items);
    }

    #[test]
    fn an_error_ends_the_work() {
        let (items, interrupt): (Vec<usize>, _) = ((0..100).collect(), Interrupt::default());
        let worked = AtomicUsize::new(0);
        let outcome = for_each(
            &items,
            1,
            &interrupt,
            || (),
            |(), item| {
                worked.fetch_add(1, Ordering::Relaxed);
                if *item == 3 { Err(ExperimentError::Threads(io::Error::other("none left"))) } else { Ok(()) }
            },
        );
        assert!(outcome.is_err_and(|error| error.to_string().contains("none left")));
        assert!(interrupt.is_raised());
        assert_eq!(worked.into_inner(), 4);
    }
}
