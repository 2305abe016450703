//! The kinds of sources that a program has, and the `[source]` section that chooses one.

use crate::config::section::{Keys, Section, document_keys, document_optional};
use crate::config::{BrokerLinkConfig, NodeConfig, NodeConfigError, Pace, SourceConfig};
use crate::reading::SourcePosition;
use crate::source::{Source, SourceError};
use crate::time_zone::LocalTimeZone;

/// The configuration of one kind of source.
pub trait SourceKind {
    /// The first value that cannot be used, with the remedy.
    fn check(&self) -> Result<(), String>;

    /// What it reads: its address, for a sentence.
    fn place(&self) -> String;

    /// Opens the source.
    fn open(&self, context: &SourceContext<'_>) -> Result<Box<dyn Source>, SourceError>;

    /// Reads never wait: the source can be paced by rounds.
    fn is_recorded(&self) -> bool {
        false
    }

    /// The source delivers labelled rows.
    fn is_labelled(&self) -> bool {
        false
    }

    /// The broker of a source that has one of its own.
    fn broker(&self) -> Option<&BrokerLinkConfig> {
        None
    }
}

/// Surroundings of a source when it is opened.
#[derive(Debug, Clone, Copy)]
pub struct SourceContext<'a> {
    /// The node's configuration.
    pub config: &'a NodeConfig,
    /// "source", or the name of a side series: no two sources of a node have the same.
    pub name: &'a str,
    /// The end of the data that the node has received; the source continues after it.
    pub position: SourcePosition,
}

impl SourceContext<'_> {
    /// The name of a source that is only looked at: it leaves nothing behind with its sender.
    pub const PROBE: &'static str = "probe";

    /// The zone of the source's local times: its own, or that of the window.
    pub fn time_zone(&self, own: Option<&LocalTimeZone>) -> LocalTimeZone {
        own.unwrap_or(&self.config.window.time_zone).clone()
    }
}

/// The list of kinds: cargo feature, which is also the name in the file, and type of its section.
macro_rules! sources {
    ($($(#[doc = $about:literal])+ $feature:tt => $variant:ident($section:ty),)+) => {
        /// The `[source]` section: the kind of source and its keys.
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(tag = "kind")]
        pub enum SourceConfig {
            $(
                $(#[doc = $about])+
                #[cfg(feature = $feature)]
                #[serde(rename = $feature)]
                $variant($section),
            )+
        }

        impl SourceConfig {
            /// Every kind, and whether this program was built with it.
            const KINDS: &[(&str, bool)] = &[$(($feature, cfg!(feature = $feature))),+];

            /// The section as its kind.
            pub fn kind(&self) -> &dyn SourceKind {
                match self {
                    $(#[cfg(feature = $feature)] Self::$variant(section) => section,)+
                }
            }

            /// The sections of all kinds as `print-config` shows them: the first in effect, the others commented.
            #[allow(clippy::vec_init_then_push, reason = "a kind that is not built has no element")]
            fn documents(name: &str) -> Vec<String> {
                let mut documents = Vec::new();
                $(
                    #[cfg(feature = $feature)]
                    documents.push(registry::document::<$section>(name, $feature, documents.is_empty()));
                )+
                documents
            }
        }

        #[cfg(not(any($(feature = $feature),+)))]
        compile_error!(concat!("a node needs a source: build with one of the features", $(" ", $feature),+));
    };
}
pub(super) use sources;

pub(super) fn document<K: Keys>(name: &str, kind: &str, in_effect: bool) -> String {
    if !in_effect {
        return document_optional::<K>(name, &format!("## kind = {kind:?}\n"));
    }
    let kinds: Vec<String> = SourceConfig::kinds().map(|kind| format!("{kind:?}")).collect();
    let mut text = format!(
        "[{name}]\n## The kind of source: {}; the others are shown below.\nkind = {kind:?}\n",
        kinds.join(", ")
    );
    document_keys::<K>(&mut text);
    text
}

impl SourceConfig {
    /// The kinds this program was built with.
    pub fn kinds() -> impl Iterator<Item = &'static str> {
        Self::KINDS.iter().filter_map(|(kind, built)| built.then_some(*kind))
    }

    /// The kind that a configuration names although this program was built without it.
    pub(crate) fn missing_kind(config: &str) -> Option<&'static str> {
        missing(config, Self::KINDS)
    }
}

impl Section for SourceConfig {
    fn document(name: &str) -> String {
        Self::documents(name).join("\n")
    }

    fn document_optional(name: &str) -> String {
        Self::document(name)
    }

    fn check(&self, name: &str, whole: &NodeConfig) -> Result<(), NodeConfigError> {
        let kind = self.kind();
        kind.check().map_err(NodeConfigError::Value)?;
        let sentence = match (kind.is_labelled(), whole.rows.is_some()) {
            (true, false) => "source.label_column needs a [rows] section with the shape of a row",
            (false, true) => "[rows] needs labelled rows; use a csv source with label_column, or remove it",
            _ if whole.pace.by == Pace::Rounds && !kind.is_recorded() => {
                "pace.by = \"rounds\" is for a household or a finished file; set source.follow = false, or pace.by = \"clock\""
            }
            _ => {
                return kind.broker().map_or(Ok(()), |broker| broker.check(&format!("{name}.broker"), whole));
            }
        };
        Err(NodeConfigError::Value(sentence.to_owned()))
    }
}

fn missing(config: &str, kinds: &[(&'static str, bool)]) -> Option<&'static str> {
    let config: toml::Table = config.parse().ok()?;
    let named = config.get("source")?.get("kind")?.as_str()?;
    kinds.iter().find_map(|(kind, built)| (*kind == named && !built).then_some(*kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_that_was_not_built_differs_from_an_unknown_one() {
        let kinds = [("csv", true), ("p1", false)];
        let named = |kind: &str| missing(&format!("[source]\nkind = \"{kind}\"\n"), &kinds);
        assert_eq!((named("csv"), named("p1"), named("p2")), (None, Some("p1"), None));
        assert_eq!(missing("[source\n", &kinds), None);
    }
}
