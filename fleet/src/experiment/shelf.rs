//! Data that trials share while they run.

use std::sync::{Arc, Mutex, PoisonError};

use super::runner::LoadPool;
use super::setup::{AsPublished, Setup};
use crate::FleetError;
use crate::data::{Dataset, Pool};

/// Pools by what they are made of: read when first needed, forgotten after their last trial.
pub(crate) struct Shelf {
    places: Mutex<Vec<Place>>,
}

struct Place {
    made_of: MadeOf,
    /// Trials that have not given it back yet.
    users: usize,
    pool: Option<Arc<Pool>>,
}

/// What a pool depends on; the strategy and the corruption are not part of it.
#[derive(PartialEq, Eq)]
struct MadeOf {
    dataset: Dataset,
    as_published: AsPublished,
    seed: u64,
    nodes: usize,
    batch: usize,
    rounds: u32,
}

impl MadeOf {
    fn of(setup: &Setup) -> Self {
        let Setup { dataset, as_published, seed, nodes, batch, rounds, .. } = *setup;
        Self { dataset, as_published, seed, nodes, batch, rounds }
    }
}

impl Shelf {
    pub(crate) fn new(setups: &[&Setup]) -> Self {
        let mut places: Vec<Place> = Vec::new();
        for setup in setups {
            let made_of = MadeOf::of(setup);
            match places.iter_mut().find(|place| place.made_of == made_of) {
                Some(place) => place.users += 1,
                None => places.push(Place { made_of, users: 1, pool: None }),
            }
        }
        Self { places: Mutex::new(places) }
    }

    /// The pool of a trial. Others wait while it is read: most likely for the same one.
    pub(crate) fn take(&self, setup: &Setup, load: &LoadPool<'_>) -> Result<Arc<Pool>, FleetError> {
        let made_of = MadeOf::of(setup);
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let place = places.iter_mut().find(|place| place.made_of == made_of);
        let place = place.expect("the shelf has a place for every trial");
        match &place.pool {
            Some(pool) => Ok(Arc::clone(pool)),
            None => Ok(Arc::clone(place.pool.insert(Arc::new(load(setup)?)))),
        }
    }

    pub(crate) fn give_back(&self, setup: &Setup) {
        let made_of = MadeOf::of(setup);
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = places.iter_mut().find(|place| place.made_of == made_of) {
            place.users -= 1;
            if place.users == 0 {
                place.pool = None;
            }
        }
    }
}
