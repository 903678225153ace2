//! Operations for the operator: import, export, edits, and keys. All of them block on the database.

use std::{io, path::Path};

use ring::rand::{SecureRandom, SystemRandom};

use crate::key_gate::hash_of;
use crate::refusal::redact;
use crate::service::{ServedData, whole_seconds};
use crate::{Edit, EditError, ExportSummary, ImportSummary, Service, ServiceError, SourceFile, export, import};
use store::{DatabaseLocation, catalog::KeyRow, facts::SupplyFacts as _, snapshot::Snapshot};

impl Service {
    /// Replaces the data by a data folder or by [`bundled`](crate::bundled), in one transaction. Keys stay. Importing the same files again
    /// changes nothing. Calls `progress` with the name of each file.
    ///
    /// # Errors
    ///
    /// Returns all problems of the data, or the error of a file or the database.
    pub fn import(
        &self,
        files: impl IntoIterator<Item = io::Result<SourceFile>>,
        mut progress: impl FnMut(&str),
    ) -> Result<ImportSummary, ServiceError> {
        self.import_files(&mut files.into_iter(), &mut progress)
    }

    // The dynamic types make the compiler generate the code of an import only once.
    fn import_files(
        &self,
        files: &mut dyn Iterator<Item = io::Result<SourceFile>>,
        progress: &mut dyn FnMut(&str),
    ) -> Result<ImportSummary, ServiceError> {
        let now = whole_seconds(self.0.options.clock.now());
        let imported = import::import(self.own()?, files, now, progress)?;
        self.forget();
        Ok(imported)
    }

    /// Like [`Self::import`], for the snapshot of a daemon, whose database is at `place`. Calls `progress` with each token and the
    /// number of tokens.
    pub fn import_daemon(
        &self,
        place: &DatabaseLocation,
        progress: &mut dyn FnMut(&str, usize),
    ) -> Result<ImportSummary, ServiceError> {
        let now = whole_seconds(self.0.options.clock.now());
        let snapshot = Snapshot::open_in(place)?;
        let imported = import::import_daemon(self.own()?, &snapshot, now, progress)?;
        self.forget();
        Ok(imported)
    }

    /// Writes the data as a folder for [`Self::import`]. Calls `progress` with the name of each file. The folder must not exist or be
    /// empty.
    pub fn export(&self, data_folder: &Path, progress: &mut dyn FnMut(&str)) -> Result<ExportSummary, ServiceError> {
        match &self.0.data {
            ServedData::Own(catalog) => catalog.read(|view| export::export(view, data_folder, progress)),
            ServedData::Mirror { snapshot, .. } => snapshot.read(|view| export::export(view, data_folder, progress)),
        }
    }

    /// Changes the data in one transaction, which is rolled back if `change` fails. Sets `lastUpdatedDate` of each edited token.
    pub fn edit<T>(&self, change: impl FnOnce(&mut Edit<'_>) -> Result<T, EditError>) -> Result<T, ServiceError> {
        let now = whole_seconds(self.0.options.clock.now());
        let result = self.own()?.write(|draft| {
            let mut edit = Edit::new(draft, now);
            let result = change(&mut edit)?;
            edit.finish()?;
            Ok::<_, EditError>(result)
        })?;
        self.forget();
        Ok(result)
    }

    /// Creates a key and returns it. It is not stored and cannot be shown again.
    ///
    /// # Errors
    ///
    /// Fails if the name is invalid or in use, or if the database cannot be written.
    pub fn add_key(&self, name: &str, monthly_limit: u64) -> Result<String, ServiceError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            return Err(ServiceError::KeyName(redact(name)));
        }
        let mut bytes = [0_u8; 32];
        SystemRandom::new().fill(&mut bytes).map_err(|_| ServiceError::Randomness)?;
        let mut key = String::from("cw_");
        base64::Engine::encode_string(&base64::engine::general_purpose::URL_SAFE_NO_PAD, bytes, &mut key);
        self.0.key_gate.keys()?.add_key(name, &hash_of(key.as_bytes()), monthly_limit, self.0.options.clock.now())?;
        self.forget();
        Ok(key)
    }

    /// Changes the limit of an active key, as an API does after a purchase. Returns whether there is one with this name.
    #[cfg(any(test, feature = "test-edits"))]
    pub fn set_monthly_limit(&self, name: &str, monthly_limit: u64) -> Result<bool, ServiceError> {
        let is_set = self.0.key_gate.keys()?.set_monthly_limit(name, monthly_limit)?;
        self.forget();
        Ok(is_set)
    }

    /// Returns all keys with their usage, including revoked keys.
    pub fn keys(&self) -> Result<Vec<KeyRow>, ServiceError> {
        let now = self.0.options.clock.now();
        Ok(self.0.key_gate.keys()?.keys()?.into_iter().map(|key| key.as_of(now)).collect())
    }

    /// Revokes a key. Returns whether an active key had this name.
    pub fn revoke_key(&self, name: &str) -> Result<bool, ServiceError> {
        let revoked = self.0.key_gate.keys()?.revoke_key(name, self.0.options.clock.now())?;
        self.forget();
        Ok(revoked)
    }

    pub fn token_count(&self) -> Result<usize, ServiceError> {
        Ok(match &self.0.data {
            ServedData::Own(catalog) => catalog.read(|view| view.tokens())?,
            ServedData::Mirror { snapshot, .. } => snapshot.read(|view| view.tokens())?,
        }
        .len())
    }
}
