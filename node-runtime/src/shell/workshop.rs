//! What the nodes of one process share: models, and a bounded number of threads that train.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use evenhand_models::Model;
use evenhand_protocol::identity::Digest;
use tokio::sync::Semaphore;
use tokio::task;

use crate::core::{Card, GraphOutcome, Input, Job, Trained};
use crate::library::Library;

/// Models and training threads, shared by the nodes of a process.
#[derive(Debug)]
pub struct Workshop {
    library: Arc<Library>,
    seats: Arc<Semaphore>,
    training_ns: AtomicU64,
}

impl Workshop {
    /// At most `seats` nodes train at the same time.
    pub fn new(library: Arc<Library>, seats: usize) -> Self {
        Self { library, seats: Arc::new(Semaphore::new(seats.max(1))), training_ns: AtomicU64::new(0) }
    }

    /// Time spent in training by all nodes together.
    pub fn training(&self) -> Duration {
        Duration::from_nanos(self.training_ns.load(Ordering::Relaxed))
    }

    pub(super) fn model(&self, digest: Digest) -> Option<Model> {
        self.library.find(digest)
    }

    pub(super) fn find(&self, digest: Digest) -> Input {
        let found = self.model(digest);
        let outcome = found.map_or(GraphOutcome::Absent, |model| GraphOutcome::Ready(Card::of(&model)));
        Input::Graph { digest, outcome }
    }

    pub(super) fn load(&self, digest: Digest, onnx: &[u8]) -> Input {
        let outcome = match self.library.add(digest, onnx) {
            Ok(model) => GraphOutcome::Ready(Card::of(&model)),
            Err(error) => {
                tracing::error!(%error, graph = %digest, "the federation's model does not run here");
                GraphOutcome::Unfit
            }
        };
        Input::Graph { digest, outcome }
    }

    /// Trains on a thread of its own, so that the link's keepalive goes on meanwhile.
    pub(super) async fn train(self: Arc<Self>, job: Box<Job>) -> Input {
        let ticket = job.ticket;
        let seat = Arc::clone(&self.seats).acquire_owned().await;
        let run = move || {
            let _seat = seat;
            let begin = Instant::now();
            let outcome = self.run(&job);
            let spent = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.training_ns.fetch_add(spent, Ordering::Relaxed);
            outcome
        };
        let outcome = task::spawn_blocking(run).await.unwrap_or_default();
        Input::Trained { ticket, outcome }
    }

    fn run(&self, job: &Job) -> Option<Trained> {
        let model = self.model(job.graph)?;
        let trained = panic::catch_unwind(AssertUnwindSafe(|| job.run(&model)));
        let cause = match trained {
            Ok(Ok(trained)) => return Some(trained),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the model's arithmetic failed".to_owned(),
        };
        tracing::error!(round = job.round, cause, "cannot train");
        None
    }
}
