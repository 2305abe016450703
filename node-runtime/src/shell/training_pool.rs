//! Models and a bounded number of training and forecasting threads, shared by the nodes of a process.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use evenhand_models::ModelError;
use evenhand_program::log_rate::LogRate;
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::Declined;
use evenhand_protocol::tick::Tick;
use tokio::sync::Semaphore;
use tokio::{task, time};

use crate::core::{GraphOutcome, NodeInput, PersonalJob, Prediction, Trained, TrainingJob};
use crate::model_cache::ModelCache;

const LATE: &str = "it did not end before its time was over";
const OUTDATED: &str = "the coordinator went on to a newer round";
const MODEL_GONE: &str = "the model is gone";
const DEFECT: &str = "the model's arithmetic failed";

/// A training's result; or the reason for the coordinator, and the cause for the log.
type TrainingOutcome = Result<Trained, (Declined, String)>;

fn failed(cause: &str) -> TrainingOutcome {
    Err((Declined::TrainingFailed, cause.to_owned()))
}

fn value_or_cause<T>(result: Result<T, String>) -> (Option<T>, Option<String>) {
    match result {
        Ok(value) => (Some(value), None),
        Err(cause) => (None, Some(cause)),
    }
}

/// Models and training threads, shared by the nodes of a process.
#[derive(Debug)]
pub struct TrainingPool {
    models: Arc<ModelCache>,
    training: Arc<Semaphore>,
    forecasting: Arc<Semaphore>,
    training_ns: AtomicU64,
    /// Log lines about models that do not run here.
    unfit: Mutex<LogRate>,
}

impl TrainingPool {
    /// At most `threads` nodes train, and as many forecast, at the same time.
    pub fn new(models: Arc<ModelCache>, threads: usize) -> Self {
        let permits = || Arc::new(Semaphore::new(threads.max(1)));
        Self {
            models,
            training: permits(),
            forecasting: permits(),
            training_ns: AtomicU64::new(0),
            unfit: Mutex::default(),
        }
    }

    /// Time spent in training by all nodes together.
    pub fn training(&self) -> Duration {
        Duration::from_nanos(self.training_ns.load(Ordering::Relaxed))
    }

    pub(super) fn find(&self, digest: Digest) -> NodeInput {
        let found = self.models.find(digest);
        let outcome = found.map_or(GraphOutcome::Absent, |model| GraphOutcome::Ready(model.info()));
        NodeInput::Graph { digest, outcome }
    }

    pub(super) fn load(&self, digest: Digest, onnx: &[u8]) -> NodeInput {
        let outcome = match self.models.add(digest, onnx) {
            Ok(model) => GraphOutcome::Ready(model.info()),
            Err(error) => {
                let permitted =
                    self.unfit.lock().unwrap_or_else(PoisonError::into_inner).permit(Instant::now());
                if let Some(left_out) = permitted {
                    tracing::error!(%error, graph = %digest, left_out, "the federation's model does not run here");
                }
                GraphOutcome::Unfit
            }
        };
        NodeInput::Graph { digest, outcome }
    }

    /// Trains on a blocking thread, so that the link's keepalive goes on meanwhile; the outcome, and the cause of a failure.
    ///
    /// A training whose time is over, or that is cancelled, ends by itself at the next step, so that there is never more than one a permit.
    pub(super) async fn train(
        self: Arc<Self>,
        now: Tick,
        job: Box<TrainingJob>,
        cancelled: Arc<AtomicBool>,
    ) -> (NodeInput, Option<String>) {
        let job_id = job.id;
        let deadline = Instant::now() + Duration::from_millis(job.deadline.ms_since(now));
        let run = async {
            let permit = Arc::clone(&self.training).acquire_owned().await;
            let pool = Arc::clone(&self);
            let run = move || {
                let _permit = permit;
                let begin = Instant::now();
                let outcome = pool.run(&job, deadline, &cancelled);
                pool.count_training(begin);
                outcome
            };
            task::spawn_blocking(run).await.unwrap_or_else(|_| failed("the program is about to end"))
        };
        let outcome = time::timeout_at(deadline.into(), run).await.unwrap_or_else(|_| failed(LATE));
        match outcome {
            Ok(trained) => (NodeInput::Trained { job_id, outcome: Ok(trained) }, None),
            Err((reason, cause)) => (NodeInput::Trained { job_id, outcome: Err(reason) }, Some(cause)),
        }
    }

    /// Trains the personal part on a blocking thread; the outcome, and the cause of a failure.
    pub(super) async fn train_personal(
        self: Arc<Self>,
        job: Box<PersonalJob>,
    ) -> (NodeInput, Option<String>) {
        let graph = job.graph;
        let permit = Arc::clone(&self.training).acquire_owned().await;
        let run = move || {
            let _permit = permit;
            let begin = Instant::now();
            let model = self.models.find(job.graph).ok_or(MODEL_GONE)?;
            let trained = model.train_personal(&job).map_err(|error| error.to_string());
            self.count_training(begin);
            trained
        };
        let trained = task::spawn_blocking(run).await.unwrap_or_else(|_| Err(DEFECT.into()));
        let (weights, cause) = value_or_cause(trained);
        (NodeInput::PersonalTrained { graph, weights }, cause)
    }

    /// Forecasts on a blocking thread; the outcome, and the cause of a failure.
    pub(super) async fn forecast(
        self: Arc<Self>,
        prediction: Box<Prediction>,
    ) -> (NodeInput, Option<String>) {
        let (id, for_ms) = (prediction.id, prediction.query.for_ms);
        let permit = Arc::clone(&self.forecasting).acquire_owned().await;
        let run = move || {
            let _permit = permit;
            let model = self.models.find(prediction.graph).ok_or(MODEL_GONE)?;
            model.predict(&prediction).map_err(|error| error.to_string())
        };
        let outputs = task::spawn_blocking(run).await.unwrap_or_else(|_| Err(DEFECT.into()));
        let (outputs, cause) = value_or_cause(outputs);
        (NodeInput::Predicted { id, for_ms, outputs }, cause)
    }

    fn count_training(&self, begin: Instant) {
        let spent = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.training_ns.fetch_add(spent, Ordering::Relaxed);
    }

    fn run(&self, job: &TrainingJob, deadline: Instant, cancelled: &AtomicBool) -> TrainingOutcome {
        let Some(model) = self.models.find(job.graph) else { return failed(MODEL_GONE) };
        let over = || cancelled.load(Ordering::Relaxed) || Instant::now() >= deadline;
        match panic::catch_unwind(AssertUnwindSafe(|| model.train(job, over))) {
            Ok(Ok(Some(trained))) => Ok(trained),
            Ok(Ok(None)) if cancelled.load(Ordering::Relaxed) => failed(OUTDATED),
            Ok(Ok(None)) => failed(LATE),
            // A limit was met, or an operator does not go with this node's data.
            Ok(Err(error @ (ModelError::Limit { .. } | ModelError::Node { .. }))) => {
                Err((Declined::ModelUnfit, error.to_string()))
            }
            Ok(Err(error)) => failed(&error.to_string()),
            Err(_) => failed(DEFECT),
        }
    }
}
