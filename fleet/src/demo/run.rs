//! The demo from its flags to its exit code.

use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use evenhand_protocol::exit::Exit;
use evenhand_protocol::identity::FederationId;
use tokio::runtime::{self, Runtime};

use super::{DemoArgs, Plan, Transport};
use crate::outcome::{Ended, Outcome};
use crate::pending::PendingReport;
use crate::progress::{Progress, Style};
use crate::transport::mqtt::{self, Meeting};
use crate::transport::{Fleet, Interrupt, OnRound, Ran, memory};
use crate::watch::Watch;
use crate::{FleetError, report, signal, table};

/// Runs the demo and prints what it showed.
pub fn run(args: &DemoArgs) -> Result<Exit, FleetError> {
    let plan = Plan::new(args)?;
    let pending = PendingReport::create(&args.report)?;
    let runtime = runtime()?;
    let interrupt = Interrupt::default();
    runtime.spawn(signal::watch(interrupt.clone()));
    let progress = Progress::new(io::stderr(), Style::of_stderr(args.no_progress));
    let outcome = simulate(&plan, &runtime, &interrupt, progress)?;

    let figures = outcome.figures();
    pending.finish(&report::html(&outcome, &figures))?;
    let mut text = if args.json {
        serde_json::to_string(&figures).map_err(|error| FleetError::Output(error.into()))?
    } else {
        format!("{}report    {}", table::text(&outcome, &figures), args.report.display())
    };
    text.push('\n');
    io::stdout().lock().write_all(text.as_bytes()).map_err(FleetError::Output)?;
    if args.json && !args.no_progress {
        eprintln!("report: {}", args.report.display());
    }
    Ok(match outcome.ended {
        Ended::Complete => Exit::Ok,
        Ended::Interrupted => Exit::Interrupted,
    })
}

/// Runs a planned fleet to its end, or until `interrupt` is raised.
pub fn simulate<W: Write + Send>(
    plan: &Plan,
    runtime: &Runtime,
    interrupt: &Interrupt,
    progress: Progress<W>,
) -> Result<Outcome, FleetError> {
    let (fleet, observer) = plan.fleet(federation_id(plan)?)?;
    let initial = fleet.blueprint.weights.clone();
    let mut watch = Watch::new(plan.settings.clone(), plan.members.clone(), observer, initial, progress);
    watch.waiting("connecting");
    let ran = carry(plan, &fleet, runtime, interrupt, &mut |closed, _| watch.round(closed))?;
    Ok(watch.conclude(ran))
}

/// Runs `fleet` by the plan's transport.
pub(crate) fn carry(
    plan: &Plan,
    fleet: &Fleet,
    runtime: &Runtime,
    interrupt: &Interrupt,
    on_round: &mut OnRound<'_>,
) -> Result<Ran, FleetError> {
    match plan.transport {
        Transport::Memory => memory::run(fleet, interrupt, on_round),
        Transport::Mqtt => {
            let meeting = Meeting { broker: plan.broker.clone(), processes: plan.processes };
            runtime.block_on(mqtt::run(fleet, &meeting, interrupt, on_round))
        }
    }
}

/// Threads for links, timers and signals.
pub(crate) fn runtime() -> Result<Runtime, FleetError> {
    runtime::Builder::new_multi_thread().enable_all().build().map_err(FleetError::Runtime)
}

/// On a broker that others use too, no two runs may be mistaken for each other.
pub(crate) fn federation_id(plan: &Plan) -> Result<FederationId, FleetError> {
    let name = match plan.broker {
        Some(_) => {
            let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            format!("demo-{}-{}", since_1970.as_secs(), std::process::id())
        }
        None => "demo".to_owned(),
    };
    Ok(FederationId::new(&name)?)
}
