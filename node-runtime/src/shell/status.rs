//! Status of a node: for `evenhand-node status`, the owner and Prometheus.

use std::fmt;
use std::path::Path;

use evenhand_link::{CertificateFacts, Traffic};
use evenhand_program::atomic::AtomicFile;
use evenhand_program::prometheus::MetricKind::{Counter, Gauge};
use evenhand_program::prometheus::MetricsText;
use evenhand_protocol::identity::{FederationId, NodeId};
use evenhand_protocol::message::{Account, Phase, Refusal, Why};
use serde::{Deserialize, Serialize};

use super::forecast_status::ForecastStatus;
use crate::core::{Forecast, Node};
use crate::privacy::PrivacySpent;
use crate::source::time::iso_text;
use crate::window::ReadingCounts;

/// The name of the file in the state folder.
pub(super) const FILE: &str = "status.json";

/// The status of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatusSnapshot {
    /// Time of writing, in milliseconds since 1970.
    pub written_ms: i64,
    /// The program's version.
    pub version: String,
    /// The node.
    pub node: NodeId,
    /// Its federation.
    pub federation: FederationId,
    /// Grows with every start.
    pub session: u64,
    /// Connected to the broker.
    pub connected: bool,
    /// The node's own certificate, if it has one.
    #[serde(default)]
    pub certificate: Option<CertificateStatus>,
    /// The federation's phase.
    pub phase: Option<Phase>,
    /// The newest round announced.
    pub round: u32,
    /// It holds a model.
    pub holds_model: bool,
    /// Trainings so far in this session.
    pub trainings: u64,
    /// Counts of its readings.
    pub readings: ReadingCounts,
    /// The time of the newest reading.
    pub newest_reading_ms: Option<i64>,
    /// The status of its source.
    pub source: SourceStatus,
    /// Its newest forecast.
    pub forecast: Option<Forecast>,
    /// Its day-ahead forecasts.
    #[serde(default)]
    pub day_ahead: Option<ForecastStatus>,
    /// The mean absolute error of its forecasts.
    pub mean_absolute_error: Option<f64>,
    /// Number of forecasts in the mean.
    pub forecasts_evaluated: usize,
    /// The newest account of the coordinator.
    pub account: Option<Account>,
    /// The least readings behind an update.
    #[serde(default)]
    pub readings_min: usize,
    /// The privacy spent so far, with noise.
    #[serde(default)]
    pub privacy: Option<PrivacySpent>,
    /// The last refused update: round and reason.
    pub refused: Option<(u32, Refusal)>,
    /// Payload bytes sent.
    pub bytes_up: u64,
    /// Payload bytes received.
    pub bytes_down: u64,
}

/// The end of the node's certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateStatus {
    /// In milliseconds since 1970.
    pub expires_ms: i64,
    /// The day.
    pub expires_on: String,
}

/// The status of a source.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceStatus {
    /// The present error.
    pub failing: Option<String>,
    /// A recorded source has ended.
    pub ended: bool,
    /// Number of malformed readings, and of those whose time cannot be right.
    pub malformed: u64,
    /// The first of them, with the reason and the setting to change.
    #[serde(default)]
    pub kept_out: Option<String>,
    /// The sentence that proposes another step, if readings come too rarely.
    #[serde(default)]
    pub misfit: Option<String>,
    /// The arrival of the newest reading, or the start of a live source.
    #[serde(default)]
    pub newest_arrival_ms: Option<i64>,
    /// The arrival of the last reading before it fell silent.
    #[serde(default)]
    pub silent_since_ms: Option<i64>,
}

/// Facts that are unknown to the core.
pub(super) struct StatusContext<'a> {
    pub(super) now_ms: i64,
    pub(super) node: &'a NodeId,
    pub(super) federation: &'a FederationId,
    pub(super) connected: bool,
    pub(super) certificate: Option<&'a CertificateFacts>,
    pub(super) trainings: u64,
    pub(super) source: SourceStatus,
    pub(super) traffic: Traffic,
}

impl StatusSnapshot {
    pub(super) fn of(node: &Node, context: StatusContext<'_>) -> Self {
        Self {
            written_ms: context.now_ms,
            version: env!("CARGO_PKG_VERSION").into(),
            node: context.node.clone(),
            federation: context.federation.clone(),
            session: node.session(),
            connected: context.connected,
            certificate: context.certificate.map(|facts| CertificateStatus {
                expires_ms: facts.expires_ms,
                expires_on: facts.expires_on.clone(),
            }),
            phase: node.phase(),
            round: node.round(),
            holds_model: node.weights().is_some(),
            trainings: context.trainings,
            readings: node.window().counts(),
            newest_reading_ms: node.window().newest_ms(),
            source: context.source,
            forecast: node.forecasts().newest(),
            day_ahead: ForecastStatus::of(node),
            mean_absolute_error: node.forecasts().mean_absolute_error(),
            forecasts_evaluated: node.forecasts().outcomes().len(),
            account: node.account().cloned(),
            readings_min: node.floor().least(),
            privacy: node.privacy_spent(),
            refused: node.refusal(),
            bytes_up: context.traffic.bytes_up,
            bytes_down: context.traffic.bytes_down,
        }
    }

    /// Writes the status into the state folder.
    pub(super) fn write(&self, folder: &Path) -> std::io::Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        // One that is lost in a power failure is written again.
        AtomicFile::new(folder.join(FILE)).owner_only().without_sync().write(text.as_bytes())
    }

    /// Reads the newest status from the state folder.
    pub fn read(folder: &Path) -> std::io::Result<Self> {
        Ok(serde_json::from_str(&std::fs::read_to_string(folder.join(FILE))?)?)
    }

    /// The status in the exposition format of Prometheus.
    pub fn metrics(&self) -> String {
        let mut metrics = MetricsText::new("evenhand_node_")
            .with_label("node", &self.node)
            .with_label("federation", &self.federation);
        let mut metric = |name, kind, help, value: f64| metrics.single(name, kind, help, value);
        let flag = |set: bool| if set { 1.0 } else { 0.0 };
        metric("connected", Gauge, "Connected to the broker.", flag(self.connected));
        metric("round", Gauge, "Newest round announced.", self.round.into());
        metric("trainings_total", Counter, "Trainings in this session.", self.trainings as f64);
        metric("readings_accepted_total", Counter, "Readings accepted.", self.readings.accepted as f64);
        metric("readings_refused_total", Counter, "Readings refused.", self.readings.refused as f64);
        let late = self.readings.out_of_order as f64;
        metric("readings_out_of_order_total", Counter, "Readings not newer than the last.", late);
        metric("source_malformed_total", Counter, "Malformed readings.", self.source.malformed as f64);
        let silent = flag(self.source.silent_since_ms.is_some());
        metric("source_silent", Gauge, "No reading for three steps.", silent);
        metric("source_failing", Gauge, "The source fails.", flag(self.source.failing.is_some()));
        metric("bytes_up_total", Counter, "Payload bytes sent.", self.bytes_up as f64);
        metric("bytes_down_total", Counter, "Payload bytes received.", self.bytes_down as f64);
        if let Some(certificate) = &self.certificate {
            let expires_s = certificate.expires_ms as f64 / 1000.0;
            metric("certificate_expiry_seconds", Gauge, "End of the node's certificate.", expires_s);
        }
        let refused = flag(self.refused.is_some_and(|(_, refusal)| refusal == Refusal::Unknown));
        metric(
            "not_admitted",
            Gauge,
            "The federation's last refusal was that it does not admit this node.",
            refused,
        );
        if let Some(newest_ms) = self.newest_reading_ms {
            metric("newest_reading_seconds", Gauge, "Time of the newest reading.", newest_ms as f64 / 1000.0);
        }
        if let Some(forecast) = self.forecast {
            metric("forecast", Gauge, "Newest forecast, in the meter's unit.", forecast.value);
        }
        if let Some(error) = self.mean_absolute_error {
            metric("forecast_absolute_error", Gauge, "Mean absolute error of the forecasts.", error);
        }
        if let Some(account) = &self.account {
            metric("standing", Gauge, "The standing.", account.standing);
            metric("sampling_probability", Gauge, "The sampling probability.", account.sampling_probability);
            metric(
                "staleness_rounds",
                Gauge,
                "Rounds since the model was received.",
                account.staleness.into(),
            );
            metric("drawn_total", Counter, "How often the node was drawn.", account.drawn.into());
        }
        if let Some(spent) = self.privacy {
            metric("privacy_epsilon", Gauge, "Privacy spent, at privacy.delta.", spent.epsilon);
            metric("privacy_messages_total", Counter, "Messages with noise.", spent.messages as f64);
        }
        if let Some(day_ahead) = &self.day_ahead {
            day_ahead.add_metrics(&mut metrics);
        }
        metrics.into_text()
    }
}

/// For the owner: `evenhand-node status`.
impl fmt::Display for StatusSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "none yet".into());
        writeln!(f, "node         {} of {}, version {}", self.node, self.federation, self.version)?;
        writeln!(f, "as of        {}", iso_text(self.written_ms))?;
        writeln!(f, "broker       {}", if self.connected { "connected" } else { "disconnected" })?;
        if let Some(certificate) = &self.certificate {
            writeln!(f, "  certificate until {}", certificate.expires_on)?;
        }
        let phase = self.phase.map_or("no manifest yet", |phase| match phase {
            Phase::Enrolling => "waiting for nodes",
            Phase::Exploring => "measuring contributions",
            Phase::Exploiting => "drawing by standing",
            Phase::Running => "measuring everybody, drawing by standing",
            Phase::Paused => "paused",
            Phase::Finished => "finished",
            Phase::Failed => "failed",
        });
        writeln!(f, "federation   {phase}, round {}", self.round)?;
        let ReadingCounts { accepted, refused, out_of_order, .. } = self.readings;
        let bad = refused + out_of_order + self.source.malformed;
        writeln!(f, "readings     {accepted} accepted, {bad} refused")?;
        writeln!(f, "  newest     {}", or_none(self.newest_reading_ms.map(iso_text)))?;
        let source = match &self.source {
            SourceStatus { failing: Some(cause), .. } => format!("fails: {cause}"),
            SourceStatus { ended: true, .. } => "ended".into(),
            SourceStatus { silent_since_ms: Some(since_ms), .. } => {
                format!("silent since {}; try evenhand-node probe", iso_text(*since_ms))
            }
            _ if accepted == 0 => "open, no reading yet; try evenhand-node probe".into(),
            _ => "ok".into(),
        };
        writeln!(f, "  source     {source}")?;
        if let Some(example) = &self.source.kept_out {
            writeln!(f, "  kept out   {example}")?;
        }
        if let Some(sentence) = &self.source.misfit {
            writeln!(f, "  step       {sentence}")?;
        }
        let forecast =
            self.forecast.map(|forecast| format!("{:.3} for {}", forecast.value, iso_text(forecast.for_ms)));
        writeln!(f, "forecast     {}", or_none(forecast))?;
        let error = self
            .mean_absolute_error
            .map(|error| format!("{error:.3} over {} forecasts", self.forecasts_evaluated));
        writeln!(f, "  mean error {}", or_none(error))?;
        if let Some(day_ahead) = &self.day_ahead {
            write!(f, "{day_ahead}")?;
        }
        match &self.account {
            None => writeln!(f, "account      none yet"),
            Some(account) => {
                writeln!(f, "account      after round {}", account.round)?;
                writeln!(f, "  standing   {:.4} ± {:.4}", account.standing, account.standing_error)?;
                writeln!(f, "  sampling   {:.2} % in each draw", 100.0 * account.sampling_probability)?;
                let last = account.last_drawn.map_or("never".into(), |round| format!("in round {round}"));
                writeln!(f, "  drawn      {} times, last {last}", account.drawn)?;
                writeln!(f, "  staleness  {} rounds", account.staleness)?;
                writeln!(f, "  why        {}", why(account.why))
            }
        }?;
        writeln!(f, "privacy      updates of at least {} readings", self.readings_min)?;
        if let Some(spent) = self.privacy {
            let of = spent.epsilon_max.map(|most| format!(" of {most}")).unwrap_or_default();
            let (unit, delta) = (spent.unit.name(), spent.delta);
            writeln!(
                f,
                "  spent      ε {:.2}{of} for a {unit}, δ {delta:e}, {} messages",
                spent.epsilon, spent.messages
            )?;
        }
        match self.refused {
            Some((round, refusal)) => {
                writeln!(f, "refused      in round {round}, {}: {}", refusal.name(), reason(refusal))
            }
            None => Ok(()),
        }
    }
}

/// Why a message was refused, and what to do.
pub(super) fn reason(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Unknown => {
            "the federation does not admit this node: the operator has removed it, the token (node.token_file) or the name is \
             not on the list, or there is no place left; ask the operator"
        }
        Refusal::NotDrawn => "this node was not asked in that round",
        Refusal::Late => "the update came after the round was over; it counts in no round",
        Refusal::Repeated => "it had counted before",
        Refusal::Dimension => "it is not as long as the model; are node and coordinator of one version?",
        Refusal::NotFinite => "it holds values that are no numbers; see evenhand-node probe for odd readings",
        Refusal::Norm => "it is longer than the coordinator allows (admission.norm_max)",
        Refusal::Samples => "it claims more samples than the coordinator allows (training.samples_max)",
        Refusal::Malformed => "the coordinator could not read it; are node and coordinator of one version?",
        Refusal::Rate => "this node sends more than the coordinator allows; does another one use its name?",
    }
}

fn why(why: Why) -> &'static str {
    match why {
        Why::Exploring => "everybody takes part while contributions are measured",
        Why::Drawn => "the draw fell on this node",
        Why::NotDrawn => "the draw fell on others",
        Why::Absent => "this node was away when the draw was made",
        Why::Newcomer => "this node joined and is being measured",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::config::PrivacyUnit;

    fn status() -> StatusSnapshot {
        StatusSnapshot {
            written_ms: 1_704_067_200_000,
            version: "0.1.0".into(),
            node: NodeId::new("m1").unwrap(),
            federation: FederationId::new("town").unwrap(),
            session: 3,
            connected: true,
            certificate: Some(CertificateStatus {
                expires_ms: 1_801_353_600_000,
                expires_on: "2027-01-31".into(),
            }),
            phase: Some(Phase::Exploiting),
            round: 12,
            holds_model: true,
            trainings: 4,
            readings: ReadingCounts { accepted: 100, refused: 1, out_of_order: 2, restarts: 0 },
            newest_reading_ms: Some(1_704_067_200_000),
            source: SourceStatus {
                failing: Some("no such file".into()),
                malformed: 3,
                kept_out: Some("\"1,5\" has a decimal comma".into()),
                ..SourceStatus::default()
            },
            forecast: Some(Forecast { for_ms: 1_704_068_100_000, value: 0.5 }),
            day_ahead: None,
            mean_absolute_error: Some(0.125),
            forecasts_evaluated: 9,
            account: Some(Account {
                round: 11,
                standing: 0.25,
                standing_error: 0.01,
                sampling_probability: 0.125,
                staleness: 2,
                last_drawn: Some(9),
                drawn: 5,
                why: Why::NotDrawn,
            }),
            readings_min: 96,
            privacy: Some(PrivacySpent {
                unit: PrivacyUnit::Day,
                epsilon: 3.456,
                delta: 1e-5,
                epsilon_max: Some(8.0),
                messages: 12,
            }),
            refused: Some((8, Refusal::Late)),
            bytes_up: 10,
            bytes_down: 20,
        }
    }

    #[test]
    fn is_written_and_read() {
        let folder = tempfile::tempdir().unwrap();
        status().write(folder.path()).unwrap();
        assert_eq!(StatusSnapshot::read(folder.path()).unwrap(), status());
    }

    #[test]
    fn shows_the_owner_the_standing() {
        let text = status().to_string();
        for expected in [
            "m1 of town",
            "drawing by standing, round 12",
            "100 accepted, 6 refused",
            "fails: no such file",
            "kept out   \"1,5\" has a decimal comma",
            "0.500 for 2024-01-01T00:15:00Z",
            "0.125 over 9",
            "0.2500 ± 0.0100",
            "12.50 %",
            "5 times, last in round 9",
            "2 rounds",
            "the draw fell on others",
            "in round 8, late: the update came after",
            "certificate until 2027-01-31",
            "updates of at least 96 readings",
            "ε 3.46 of 8 for a day, δ 1e-5, 12 messages",
        ] {
            assert!(text.contains(expected), "{expected:?} in\n{text}");
        }
        assert_eq!(text.lines().filter(|line| line.trim().is_empty()).count(), 0);
    }

    #[test]
    fn every_refusal_has_a_reason_and_a_source_without_readings_is_no_success() {
        let mut status = StatusSnapshot { refused: Some((3, Refusal::Unknown)), ..status() };
        assert!(status.to_string().contains("does not admit this node"), "{status}");
        assert!(status.metrics().contains("evenhand_node_not_admitted{node=\"m1\",federation=\"town\"} 1\n"));
        status.source = SourceStatus::default();
        assert!(status.to_string().contains("source     ok\n"), "{status}");
        status.readings.accepted = 0;
        assert!(status.to_string().contains("no reading yet; try evenhand-node probe"), "{status}");
    }

    #[test]
    fn metrics_are_in_the_exposition_format() {
        let text = status().metrics();
        let labels = "{node=\"m1\",federation=\"town\"}";
        assert!(text.contains(&format!("evenhand_node_round{labels} 12\n")), "{text}");
        assert!(text.contains(&format!("evenhand_node_source_failing{labels} 1\n")), "{text}");
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(name.ends_with(labels) && value.parse::<f64>().is_ok(), "{line}");
        }
        let names: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        assert!(names.len() >= 15);
    }
}
