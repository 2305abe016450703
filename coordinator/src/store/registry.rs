//! The changes of the registry: names, keys, invitations. Records are never deleted.

use std::sync::Arc;

use redb::{ReadableDatabase, ReadableTable, TableDefinition};

use super::guard::catch_damage;
use super::{Store, StoreError, checksum};
use crate::joining::{NodeRegistry, RegistryChange, RegistryJournal};

/// One record a change, numbered from 0.
pub(super) const REGISTRY: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("registry");

impl Store {
    /// Names, keys and invitations.
    pub fn registry(&self) -> Result<NodeRegistry, StoreError> {
        catch_damage(|| {
            let transaction = self.database.begin_read()?;
            let table = match transaction.open_table(REGISTRY) {
                Ok(table) => table,
                Err(redb::TableError::TableDoesNotExist(_)) => return Ok(NodeRegistry::default()),
                Err(error) => return Err(error.into()),
            };
            let mut registry = NodeRegistry::default();
            for record in table.iter()? {
                let (number, bytes) = record?;
                let damaged = || StoreError::Damaged(format!("record {} of the registry", number.value()));
                let change = checksum::verified(bytes.value()).ok_or_else(damaged)?;
                registry.apply(postcard::from_bytes(change).map_err(|_| damaged())?);
            }
            Ok(registry)
        })
    }
}

impl RegistryJournal for Arc<Store> {
    fn append(&self, changes: &[RegistryChange]) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.write(|transaction| {
            let mut table = transaction.open_table(REGISTRY)?;
            let next = table.last()?.map_or(0, |(number, _)| number.value() + 1);
            for (number, change) in (next..).zip(changes) {
                let bytes =
                    checksum::append(postcard::to_allocvec(change).expect("plain data always encodes"));
                table.insert(number, bytes.as_slice())?;
            }
            Ok(())
        })?)
    }
}
