//! Models by the digest of their graph: parsed and prepared once, shared by the nodes of a process, saved on disk.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use evenhand_models::{LoadOptions, Model, ModelError};
use evenhand_program::atomic;
use evenhand_protocol::identity::Digest;

use crate::prepared::PreparedModel;

/// Graphs in memory and on disk; a federation has one, and an owner may try a few.
const MODELS_MAX: usize = 4;

/// Reason why received bytes are not a graph for this node.
#[derive(Debug, thiserror::Error)]
pub enum ModelCacheError {
    /// It is no model that can be run here.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// It is another model than was asked for.
    #[error("the graph that arrived is {found}, not {wanted} as the manifest says")]
    Another {
        /// Digest in the manifest.
        wanted: Digest,
        /// Digest of the received graph.
        found: Digest,
    },
}

/// Prepared models by the digest of their graph.
#[derive(Debug, Default)]
pub struct ModelCache {
    folder: Option<PathBuf>,
    options: LoadOptions,
    models: Mutex<HashMap<Digest, PreparedModel>>,
}

impl ModelCache {
    /// An empty cache in memory, backed by files in `folder` if there is one.
    pub fn new(folder: Option<PathBuf>, options: LoadOptions) -> Self {
        Self { folder, options, models: Mutex::default() }
    }

    /// The model with this graph, from memory or disk.
    pub fn find(&self, digest: Digest) -> Option<PreparedModel> {
        let known = self.models().get(&digest).cloned();
        known.or_else(|| self.load(digest, &fs::read(self.path(digest)?).ok()?).ok())
    }

    /// Adds a received model, and saves it for later starts as far as the disk allows.
    pub fn add(&self, wanted: Digest, onnx: &[u8]) -> Result<PreparedModel, ModelCacheError> {
        let model = self.load(wanted, onnx)?;
        if let (Some(path), Some(folder)) = (self.path(wanted), &self.folder)
            && let Err(error) =
                atomic::replace_private(&path, onnx).and_then(|()| remove_oldest(folder, &path))
        {
            tracing::warn!(%error, path = %path.display(), "cannot save the model; it will be requested again after a restart");
        }
        Ok(model)
    }

    fn load(&self, wanted: Digest, onnx: &[u8]) -> Result<PreparedModel, ModelCacheError> {
        let model = Model::load(onnx, &self.options)?;
        let found = Digest(model.digest());
        if found != wanted {
            return Err(ModelCacheError::Another { wanted, found });
        }
        let mut models = self.models();
        if models.len() >= MODELS_MAX && !models.contains_key(&found) {
            models.clear();
        }
        Ok(models.entry(found).or_insert_with(|| PreparedModel::new(model)).clone())
    }

    fn path(&self, digest: Digest) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(format!("{digest}.onnx")))
    }

    fn models(&self) -> MutexGuard<'_, HashMap<Digest, PreparedModel>> {
        self.models.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the oldest graphs, so that a coordinator that changes its model often cannot fill the disk.
fn remove_oldest(folder: &Path, newest: &Path) -> io::Result<()> {
    let mut others = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path != newest && path.extension().is_some_and(|extension| extension == "onnx") {
            others.push((fs::metadata(&path)?.modified()?, path));
        }
    }
    others.sort();
    let surplus = (others.len() + 1).saturating_sub(MODELS_MAX);
    others.into_iter().take(surplus).try_for_each(|(_, path)| fs::remove_file(path))
}
