//! Consistent copies of a store in use.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::joining::CoordinatorKeys;
use evenhand_program::private::create_folder;
use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};

use super::guard::catch_damage;
use super::registry::REGISTRY;
use super::{CHECKPOINTS, DIGESTS, FEDERATION, FILE, ROUNDS, RULES, Store, StoreError, UPDATES};

impl Store {
    /// Copies the current content to another folder, readable by its owner alone; it must not hold a federation yet.
    pub fn back_up(&self, to: &Path) -> Result<(), StoreError> {
        let io = |source| StoreError::Io { path: to.to_owned(), source };
        create_folder(to).map_err(io)?;
        let mut new = OpenOptions::new();
        let opened = new.read(true).write(true).create_new(true).mode(0o600).open(to.join(FILE));
        let file = opened.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => StoreError::Occupied { folder: to.to_owned() },
            _ => io(error),
        })?;
        let target = Database::builder().create_file(file).map_err(redb::Error::from)?;
        catch_damage(|| {
            let from = self.database.begin_read()?;
            let into = target.begin_write()?;
            copy(&from, &into, FEDERATION)?;
            for table in [ROUNDS, UPDATES, DIGESTS, RULES, CHECKPOINTS] {
                copy(&from, &into, table)?;
            }
            copy(&from, &into, REGISTRY)?;
            Ok(into.commit()?)
        })?;
        // Without the keys, nodes would have to be invited again.
        match CoordinatorKeys::load(&self.folder) {
            Ok(Some(keys)) => keys.save(to).map_err(|error| StoreError::Keys(error.to_string())),
            Ok(None) => Ok(()),
            Err(error) => Err(StoreError::Keys(error.to_string())),
        }
    }
}

fn copy<K: redb::Key>(
    from: &ReadTransaction,
    into: &WriteTransaction,
    table: TableDefinition<'static, K, &'static [u8]>,
) -> Result<(), StoreError> {
    let mut copy = into.open_table(table)?;
    let table = match from.open_table(table) {
        // A store of an earlier version.
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(()),
        table => table?,
    };
    for entry in table.iter()? {
        let (key, value) = entry?;
        copy.insert(key.value(), value.value())?;
    }
    Ok(())
}
