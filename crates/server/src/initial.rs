//! The content that a server begins with, and that a reset restores: empty buckets, and the files of seeds.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use crate::objects::settings::parse_bucket_name;
use crate::objects::{Objects, StoreError};

/// The buckets and the seeds that a server began with.
#[derive(Debug, Default, Clone)]
pub(crate) struct Initial {
    pub(crate) buckets: BTreeSet<String>,
    pub(crate) seeds: Vec<PathBuf>,
}

impl Initial {
    /// Makes the buckets, and puts the files that the seeds have now.
    pub(crate) fn restore(&self, objects: &Objects) -> Result<(), StoreError> {
        for name in &self.buckets {
            match objects.create_bucket_named(name) {
                Ok(()) | Err(StoreError::BucketExists) => {}
                Err(refused) => return Err(refused),
            }
        }
        self.seeds.iter().try_for_each(|seed| sow(objects, seed)).map_err(StoreError::Io)
    }
}

/// Puts the files below a folder into the store. The first part of each relative path is the bucket, and the rest is the key.
pub(crate) fn sow(objects: &Objects, seed: &Path) -> io::Result<()> {
    for bucket in std::fs::read_dir(seed).map_err(|error| named(seed, error))? {
        let path = bucket?.path();
        if !path.is_dir() {
            let rule = "this isn't a folder; the --seed folder may contain only folders, one for each bucket";
            return Err(named(&path, io::Error::other(rule)));
        }
        let name = parse_bucket_name(name(&path)?).map_err(|error| named(&path, io::Error::other(error)))?;
        match objects.create_bucket_named(&name) {
            Ok(()) | Err(StoreError::BucketExists) => {}
            Err(StoreError::Io(error)) => return Err(named(&path, error)),
            Err(refused) => return Err(named(&path, io::Error::other(format!("{refused:?}")))),
        }
        let mut folders = vec![(path, String::new())];
        while let Some((folder, prefix)) = folders.pop() {
            for entry in std::fs::read_dir(&folder).map_err(|error| named(&folder, error))? {
                let path = entry?.path();
                let key = format!("{prefix}{}", self::name(&path)?);
                if path.is_dir() {
                    folders.push((path, format!("{key}/")));
                } else {
                    let put = std::fs::read(&path).and_then(|bytes| objects.put(&name, &key, &bytes));
                    put.map_err(|error| named(&path, error))?;
                }
            }
        }
    }
    Ok(())
}

/// Returns the last name of a path. Keys and bucket names are UTF-8, so any other name is an error.
fn name(path: &Path) -> io::Result<&str> {
    let name = path.file_name().and_then(|name| name.to_str());
    name.ok_or_else(|| named(path, io::Error::other("the name isn't UTF-8")))
}

fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
