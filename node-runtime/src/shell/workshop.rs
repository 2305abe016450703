//! What the nodes of one process share: models, and a bounded number of threads that train.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use evenhand_models::{Model, ModelError};
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::Declined;
use tokio::sync::Semaphore;
use tokio::{task, time};

use crate::core::{Card, GraphOutcome, Input, Job, Trained};
use crate::library::Library;

const LATE: &str = "it did not end before the coordinator went on";

/// What a training gave, or what the coordinator and the owner are told instead.
type Outcome = Result<Trained, (Declined, String)>;

fn failed(cause: &str) -> Outcome {
    Err((Declined::TrainingFailed, cause.to_owned()))
}

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

    /// Trains on a thread of its own, so that the link's keepalive goes on meanwhile; what came of it, and what went wrong.
    ///
    /// A training whose time is over ends by itself at the next step, so that there is never more than one in a seat.
    pub(super) async fn train(self: Arc<Self>, job: Box<Job>) -> (Input, Option<String>) {
        let ticket = job.ticket;
        let deadline = Instant::now() + Duration::from_millis(job.deadline_ms.into());
        let run = async {
            let seat = Arc::clone(&self.seats).acquire_owned().await;
            let workshop = Arc::clone(&self);
            let run = move || {
                let _seat = seat;
                let begin = Instant::now();
                let outcome = workshop.run(&job, deadline);
                let spent = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
                workshop.training_ns.fetch_add(spent, Ordering::Relaxed);
                outcome
            };
            task::spawn_blocking(run).await.unwrap_or_else(|_| failed("the program is about to end"))
        };
        let outcome = time::timeout_at(deadline.into(), run).await.unwrap_or_else(|_| failed(LATE));
        match outcome {
            Ok(trained) => (Input::Trained { ticket, outcome: Ok(trained) }, None),
            Err((reason, cause)) => (Input::Trained { ticket, outcome: Err(reason) }, Some(cause)),
        }
    }

    fn run(&self, job: &Job, deadline: Instant) -> Outcome {
        let Some(model) = self.model(job.graph) else { return failed("the model is gone") };
        let over = || Instant::now() >= deadline;
        match panic::catch_unwind(AssertUnwindSafe(|| job.run(&model, over))) {
            Ok(Ok(Some(trained))) => Ok(trained),
            Ok(Ok(None)) => failed(LATE),
            // A limit was met, or an operator does not go with this node's data.
            Ok(Err(error @ (ModelError::Limit { .. } | ModelError::Node { .. }))) => {
                Err((Declined::ModelUnfit, error.to_string()))
            }
            Ok(Err(error)) => failed(&error.to_string()),
            Err(_) => failed("the model's arithmetic failed"),
        }
    }
}
