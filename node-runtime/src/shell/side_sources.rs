//! Sources of the side series.

use std::future::poll_fn;
use std::task::Poll;

use super::NodeError;
use super::source_driver::SourceDriver;
use crate::config::NodeConfig;
use crate::core::{Node, NodeInput};
use crate::window::{SideRole, SideSeries};

/// The sources of the side series, each with its driver.
pub(super) struct SideSources {
    sources: Vec<(SideSeries, SourceDriver)>,
    /// Length of a forecast: covariates are read so far ahead.
    horizon_ms: i64,
}

impl SideSources {
    pub(super) fn start(config: &NodeConfig, node: &Node) -> Result<Self, NodeError> {
        let start = |(side, source)| {
            let SideSeries { name, .. } = &side;
            let position = node.window().side_position(name);
            let driver = SourceDriver::start(&config.with_source(source), name, position)?;
            Ok((side, driver))
        };
        let sources = config.side_series().map(start).collect::<Result<_, NodeError>>()?;
        let steps =
            node.window().day_ahead().map_or(0, |window| window.forecaster().settings().horizon_steps);
        let horizon_ms = steps as i64 * i64::from(config.window.step_s) * 1000;
        Ok(Self { sources, horizon_ms })
    }

    /// The next data of a live source; never ready if there is none. Cancel safe.
    pub(super) async fn next(&mut self) -> NodeInput {
        poll_fn(|context| {
            for (side, driver) in &mut self.sources {
                if let Poll::Ready(batch) = driver.poll_next(context) {
                    return Poll::Ready(NodeInput::SideData { name: side.name.clone(), batch });
                }
            }
            Poll::Pending
        })
        .await
    }

    /// The data of recorded sources up to the household's newest reading, and of covariates as far ahead as a forecast.
    pub(super) fn read_until(&mut self, newest_ms: i64) -> Vec<NodeInput> {
        let horizon_ms = self.horizon_ms;
        let read = |(side, driver): &mut (SideSeries, SourceDriver)| {
            let ahead_ms = if side.role == SideRole::Covariate { horizon_ms } else { 0 };
            let batch = driver.read_until(newest_ms.saturating_add(ahead_ms));
            NodeInput::SideData { name: side.name.clone(), batch }
        };
        self.sources.iter_mut().map(read).collect()
    }

    /// Acknowledges all data so far: they are in the journal, or the disk has failed.
    pub(super) fn acknowledge(&mut self) {
        self.sources.iter_mut().for_each(|(_, driver)| driver.acknowledge());
    }
}
