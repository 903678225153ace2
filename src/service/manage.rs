//! What whoever runs the service does with it: data in and out, edits, keys. All of it blocks, for as long as the database takes.

use std::{io, path::Path};

use ring::rand::{SecureRandom, SystemRandom};

use crate::key_gate::hash_of;
use crate::refusal::redact;
use crate::service::{ServedData, whole_seconds};
use crate::{Edit, EditError, ExportSummary, ImportSummary, Service, ServiceError, SourceFile, export, import};
use store::{Place, catalog::KeyRow, facts::SupplyFacts as _, snapshot::Snapshot};

impl Service {
    /// Puts a data folder (or [`bundled`](crate::bundled)) in place of the data that is there: one transaction, all or nothing. The
    /// same files a second time change nothing. Keys stay. `progress` hears the name of each file. Fails with every problem found,
    /// with file and record; or where a file or the database cannot be used.
    pub fn import(
        &self,
        files: impl IntoIterator<Item = io::Result<SourceFile>>,
        mut progress: impl FnMut(&str),
    ) -> Result<ImportSummary, ServiceError> {
        self.import_files(&mut files.into_iter(), &mut progress)
    }

    // What callers hand over has no types from here on: an import is much code, and is compiled once.
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

    /// Puts the snapshot of a daemon, whose database is at `place`, in place of the data that is there, as [`Self::import`] does with a
    /// folder. `progress` hears each token, with how many there are.
    pub fn import_daemon(&self, place: &Place, progress: &mut dyn FnMut(&str, usize)) -> Result<ImportSummary, ServiceError> {
        let now = whole_seconds(self.0.options.clock.now());
        let snapshot = Snapshot::open_in(place)?;
        let imported = import::import_daemon(self.own()?, &snapshot, now, progress)?;
        self.forget();
        Ok(imported)
    }

    /// Writes the data as a folder that [`Self::import`] takes. `progress` hears the name of each file.
    /// Fails where the folder is there and not empty, or cannot be written, or the data cannot be read.
    pub fn export(&self, data_folder: &Path, progress: &mut dyn FnMut(&str)) -> Result<ExportSummary, ServiceError> {
        match &self.0.data {
            ServedData::Own(catalog) => catalog.read(|view| export::export(view, data_folder, progress)),
            ServedData::Mirror { snapshot, .. } => snapshot.read(|view| export::export(view, data_folder, progress)),
        }
    }

    /// Changes the data in one transaction: all of what `change` does, or nothing where it answers an error. Each token that is
    /// touched gets a new `lastUpdatedDate`. Fails with what `change` answers, or where the database cannot be written.
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

    /// Makes a key and answers it: the only time that anybody sees it.
    /// Fails where the name is no name or taken, or the database cannot be written.
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

    /// All keys with their usage, revoked ones too.
    pub fn keys(&self) -> Result<Vec<KeyRow>, ServiceError> {
        let now = self.0.options.clock.now();
        Ok(self.0.key_gate.keys()?.keys()?.into_iter().map(|key| key.as_of(now)).collect())
    }

    /// Ends a key at once. Answers whether one of that name was in use.
    pub fn revoke_key(&self, name: &str) -> Result<bool, ServiceError> {
        let revoked = self.0.key_gate.keys()?.revoke_key(name, self.0.options.clock.now())?;
        self.forget();
        Ok(revoked)
    }

    /// Whether a key is asked for, as things are now.
    pub fn asks_for_keys(&self) -> Result<bool, ServiceError> {
        Ok(self.0.key_gate.requires_key()?)
    }

    pub fn token_count(&self) -> Result<usize, ServiceError> {
        Ok(match &self.0.data {
            ServedData::Own(catalog) => catalog.read(|view| view.tokens())?,
            ServedData::Mirror { snapshot, .. } => snapshot.read(|view| view.tokens())?,
        }
        .len())
    }
}
