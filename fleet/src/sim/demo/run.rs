//! A demo run, over either transport.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use evenhand_protocol::identity::FederationId;
use tokio::runtime::Runtime;

use super::{DemoPlan, Transport};
use crate::names::value_name;
use crate::sim::fleet::HouseholdFleet;
use crate::sim::mqtt::{self, MqttRunOptions};
use crate::sim::progress::RunProgress;
use crate::sim::recorder::RunRecorder;
use crate::sim::{Interrupt, OnRound, RecordedRun, RunDescription, RunResult, SimulationError, memory};

/// Runs a planned fleet to its end, or until `interrupt` is raised.
pub fn simulate<W: Write + Send>(
    plan: &DemoPlan,
    runtime: &Runtime,
    interrupt: &Interrupt,
    progress: RunProgress<W>,
) -> Result<RecordedRun, SimulationError> {
    let (fleet, evaluator) = plan.fleet(federation_id(plan)?)?;
    let description = RunDescription {
        rules: fleet.rules.clone(),
        strategy: plan.strategy.name.to_owned(),
        transport: value_name(&plan.transport),
        command: plan.command(),
    };
    let initial = fleet.initial_model.weights.clone();
    let mut recorder = RunRecorder::new(description, plan.members.clone(), evaluator, initial, progress);
    recorder.waiting("connecting");
    let result = run_fleet(plan, &fleet, runtime, interrupt, &mut |closed, _| recorder.round(closed))?;
    Ok(recorder.finish(result))
}

/// Runs `fleet` by the plan's transport.
pub fn run_fleet(
    plan: &DemoPlan,
    fleet: &HouseholdFleet,
    runtime: &Runtime,
    interrupt: &Interrupt,
    on_round: &mut OnRound<'_>,
) -> Result<RunResult, SimulationError> {
    match plan.transport {
        Transport::Memory => memory::run(fleet, interrupt, on_round),
        Transport::Mqtt => {
            let options = MqttRunOptions { broker: plan.broker.clone(), processes: plan.processes };
            runtime.block_on(mqtt::run(fleet, &options, interrupt, on_round))
        }
    }
}

/// The federation's name: on a broker that others use too, one that no other run has.
pub fn federation_id(plan: &DemoPlan) -> Result<FederationId, SimulationError> {
    let name = match plan.broker {
        Some(_) => {
            let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            format!("demo-{}-{}", since_1970.as_secs(), std::process::id())
        }
        None => "demo".to_owned(),
    };
    Ok(FederationId::new(&name)?)
}
