//! Receivers of the node's status: systemd, the status file, the owner, Prometheus, the page.

use std::net::SocketAddr;

use evenhand_program::notify::ServiceNotifier;
use evenhand_program::prometheus::CONTENT_TYPE;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::disk::Folder;
use super::http_server::{self, ServedAnswer, ServedDocument, ServedSite};
use super::owner::OwnerLink;
use super::page::{self, PageSnapshot};
use super::{NodeError, StatusSnapshot};
use crate::config::NodeConfig;
use crate::core::Node;

/// Receivers of the node's status.
pub(super) struct StatusSinks {
    pub(super) notify: ServiceNotifier,
    /// The folder that `evenhand-node status` reads.
    pub(super) folder: Option<Folder>,
    pub(super) owner: Option<OwnerLink>,
    status: watch::Sender<Option<StatusSnapshot>>,
    /// The owner's page, with the unit of its figures.
    page: Option<(watch::Sender<Option<PageSnapshot>>, String)>,
    /// The servers of metrics and page.
    servers: Vec<JoinHandle<()>>,
}

impl StatusSinks {
    /// Connects to the owner's broker, and listens where the configuration says.
    pub(super) async fn start(config: &NodeConfig, notify: ServiceNotifier) -> Result<Self, NodeError> {
        let status = watch::Sender::new(None);
        let mut servers = Vec::new();
        if let Some(section) = &config.metrics {
            servers.push(serve("metrics", section.listen, metrics_site(status.subscribe())).await?);
        }
        let mut page = None;
        if let Some(section) = &config.page {
            let sender = watch::Sender::new(None);
            servers.push(serve("page", section.listen, page::site(section, sender.subscribe())).await?);
            let unit = config.owner.as_ref().map_or(&section.unit, |owner| &owner.unit);
            page = Some((sender, unit.clone()));
            tracing::info!(node = %config.node.id, url = format!("http://{}/", section.listen), "page for the owner");
        }
        let owner = config.owner.as_ref().map(|section| OwnerLink::start(config, section)).transpose()?;
        let folder = config.node.state_folder.clone().map(Folder);
        Ok(Self { notify, folder, owner, status, page, servers })
    }

    /// True if the status is wanted from time to time.
    pub(super) fn any(&self) -> bool {
        self.folder.is_some() || self.is_live()
    }

    /// True if the status is wanted whenever something has happened.
    pub(super) fn is_live(&self) -> bool {
        self.owner.is_some() || !self.servers.is_empty()
    }

    /// Hands the status to those who show it live.
    pub(super) fn publish(&self, node: &Node, status: &StatusSnapshot) {
        if let Some(owner) = &self.owner {
            owner.publish(status);
        }
        self.status.send_replace(Some(status.clone()));
        if let Some((page, unit)) = &self.page {
            page.send_replace(Some(PageSnapshot::of(node, status.clone(), unit)));
        }
    }
}

impl Drop for StatusSinks {
    fn drop(&mut self) {
        self.servers.iter().for_each(JoinHandle::abort);
    }
}

/// Starts the server of a section.
async fn serve(
    section: &'static str,
    listen: SocketAddr,
    site: ServedSite,
) -> Result<JoinHandle<()>, NodeError> {
    http_server::serve(listen, site).await.map_err(|cause| NodeError::Listen { section, listen, cause })
}

/// The metrics of the newest status. Prometheus asks by whatever name it was given.
fn metrics_site(status: watch::Receiver<Option<StatusSnapshot>>) -> ServedSite {
    let answer = move |path: &str| match (path, status.borrow().as_ref()) {
        ("/metrics", Some(status)) => {
            let body = status.metrics().into_bytes();
            ServedAnswer::Document(ServedDocument { content_type: CONTENT_TYPE, body })
        }
        ("/metrics", None) => ServedAnswer::Starting,
        _ => ServedAnswer::Unknown("/metrics"),
    };
    ServedSite { answer: Box::new(answer), hosts: vec!["*".to_owned()] }
}
