//! Looks up the names in a file on both sides of a sync. Neither side is listed, so a few names of a large
//! tree cost only a few requests.

use std::io::ErrorKind::{NotADirectory, NotFound};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use laneway_store::{ObjectId, Store};

use super::side::{EntryPlace, SideEntry};
use super::{SyncMerge, links, op};
use crate::job::pump::CancelledJob;
use crate::job::running::JobState;
use crate::job::search::TakenNames;
use crate::listing::folder_prefix;
use crate::listing::names_from::{ListedName, NameList};
use crate::listing::walk::{FoundFile, Links};
use crate::local::folder;
use crate::location::relative::RelativePath;
use crate::location::url;
use crate::{Error, Location, SyncRequest, Warning};

/// The maximum number of concurrent lookups of objects. A batch has at most 256 names.
const HEADS_AT_ONCE: usize = 128;

/// A side where names are looked up.
#[derive(Clone, Debug)]
enum NamedSide {
    /// A source folder, with the rule for links.
    Source {
        root: PathBuf,
        links: Links,
    },
    /// A destination folder. Links in it are not followed.
    Destination {
        root: PathBuf,
    },
    Prefix {
        store: Store,
        bucket: String,
        prefix: String,
    },
}

enum NameFinding {
    Entry(Box<SideEntry>),
    Nothing,
    /// The source has the name but doesn't copy it, such as a symbolic link. So the sync ignores the name on
    /// both sides.
    LeftOut(Warning),
}

struct NamePair {
    name: String,
    line: Box<str>,
    source: Result<NameFinding, Error>,
    there: Result<NameFinding, Error>,
}

impl SyncMerge<'_> {
    /// Copies, compares, skips or removes each name. Returns whether the file had no names.
    ///
    /// # Errors
    /// If the file of names can't be read, or a line isn't a valid name. The names before that line have been
    /// handled.
    pub(super) async fn named(&mut self, names: NameList) -> Result<bool, Error> {
        let from = NamedSide::source(self.job, self.request)?;
        let to = NamedSide::destination(self.job, self.request)?;
        let mut given =
            NamedPairs { job: self.job, from: &from, to: &to, names, known: TakenNames::new(true) };
        let mut is_empty = true;
        let mut coming = given.next().await?;
        while let Some(batch) = coming {
            is_empty = false;
            // Look up the next names while the names of this batch are handled.
            let (sent, next) = tokio::join!(self.batch(&from, batch), given.next());
            if sent?.is_err() {
                return Ok(is_empty);
            }
            coming = next?;
        }
        Ok(is_empty)
    }

    async fn batch(
        &mut self,
        from: &NamedSide,
        batch: Vec<NamePair>,
    ) -> Result<Result<(), CancelledJob>, Error> {
        for looked in batch {
            if self.one_named(from, looked).await?.is_err() {
                return Ok(Err(CancelledJob));
            }
        }
        Ok(self.carrier.flush().await)
    }

    async fn one_named(
        &mut self,
        from: &NamedSide,
        looked: NamePair,
    ) -> Result<Result<(), CancelledJob>, Error> {
        let NamePair { name, line, source, there } = looked;
        let target = from.target(&name);
        let failed = match (source, there) {
            (Err(error), _) | (_, Err(error)) => error,
            (Ok(NameFinding::LeftOut(warning)), _) => {
                self.spares(&name);
                self.job.warn(warning).await;
                return Ok(Ok(()));
            }
            (Ok(NameFinding::Nothing), Ok(_)) if !self.rules.delete => Error::not_found(
                &target,
                "is missing from the source; --delete would remove it from the destination",
            ),
            (Ok(NameFinding::Nothing), Ok(NameFinding::Entry(there))) if !self.is_called(&there).await? => {
                // The name of the file at the destination differs in case, so it is another name. Leave the
                // file alone.
                return Ok(Ok(()));
            }
            (Ok(source), Ok(there)) => return self.one(source.entry(), there.entry()).await,
        };
        let destination = Some(self.request.destination.to_string());
        self.job.fail(op(self.request), target, destination, failed.of_line(Some(line))).await;
        Ok(Ok(()))
    }
}

impl SyncMerge<'_> {
    /// Returns whether the destination's file has exactly the entry's name. A file system that ignores case
    /// finds the file under other spellings too.
    async fn is_called(&self, there: &SideEntry) -> Result<bool, Error> {
        let (Some(_), EntryPlace::File(_), Location::Local(root)) =
            (&self.folded, &there.at, &self.request.destination)
        else {
            return Ok(true);
        };
        let (root, name) = (root.clone(), there.name.clone());
        self.job.engine.files.run(move || folder::has_exactly(&root, &name)).await?
    }
}

impl NameFinding {
    fn entry(self) -> Option<SideEntry> {
        match self {
            Self::Entry(entry) => Some(*entry),
            Self::Nothing | Self::LeftOut(_) => None,
        }
    }
}

/// Reads names from a file, drops repeated ones, and looks up the others on both sides.
struct NamedPairs<'a> {
    job: &'a JobState,
    from: &'a NamedSide,
    to: &'a NamedSide,
    names: NameList,
    known: TakenNames,
}

impl NamedPairs<'_> {
    /// Returns the next names, in their order, or `None` at the end.
    ///
    /// # Errors
    /// If the file of names can't be read, has an invalid line, or the engine runs no more file operations.
    async fn next(&mut self) -> Result<Option<Vec<NamePair>>, Error> {
        let Some(mut batch) = self.names.next().await? else { return Ok(None) };
        batch.retain(|named| self.known.is_new(&named.name));
        let names: Arc<[String]> = batch.iter().map(|named| named.name.clone()).collect();
        let (source, there) =
            tokio::try_join!(self.from.look(self.job, &names), self.to.look(self.job, &names))?;
        let both = source.into_iter().zip(there);
        let looked = batch.into_iter().zip(both);
        let looked =
            looked.map(|(ListedName { name, line }, (source, there))| NamePair { name, line, source, there });
        Ok(Some(looked.collect()))
    }
}

impl NamedSide {
    fn source(job: &JobState, request: &SyncRequest) -> Result<Self, Error> {
        match &request.source {
            Location::Local(root) => Ok(Self::Source { root: root.clone(), links: links(request) }),
            at => Ok(Self::prefix(job, at)?.into_source()),
        }
    }

    fn destination(job: &JobState, request: &SyncRequest) -> Result<Self, Error> {
        match &request.destination {
            Location::Local(root) => Ok(Self::Destination { root: root.clone() }),
            at => Self::prefix(job, at),
        }
    }

    fn prefix(job: &JobState, at: &Location) -> Result<Self, Error> {
        let Location::Object { provider, bucket, key } = at else {
            return Err(Error::usage(at.to_string(), "is not a folder"));
        };
        let store = job.store(*provider)?.clone();
        Ok(Self::Prefix { store, bucket: bucket.clone(), prefix: folder_prefix(key) })
    }

    fn into_source(self) -> Self {
        match self {
            Self::Prefix { store, bucket, prefix } => {
                Self::Prefix { store: store.as_source(), bucket, prefix }
            }
            place => place,
        }
    }

    /// Returns the path or URL of a name on this side, for messages.
    fn target(&self, name: &str) -> String {
        match self {
            Self::Source { root, .. } | Self::Destination { root } => root.join(name).display().to_string(),
            Self::Prefix { store, bucket, prefix } => {
                url(store.provider(), &ObjectId::new(bucket, format!("{prefix}{name}")))
            }
        }
    }

    /// Looks up some names on this side.
    async fn look(
        &self,
        job: &JobState,
        names: &Arc<[String]>,
    ) -> Result<Vec<Result<NameFinding, Error>>, Error> {
        match self {
            Self::Prefix { store, bucket, prefix } => {
                let head =
                    |name: String| head(job, store, ObjectId::new(bucket, format!("{prefix}{name}")), name);
                Ok(stream::iter(names.to_vec()).map(head).buffered(HEADS_AT_ONCE).collect().await)
            }
            Self::Source { .. } | Self::Destination { .. } => {
                let (place, names) = (self.clone(), Arc::clone(names));
                job.engine.files.run(move || names.iter().map(|name| place.file(name)).collect()).await
            }
        }
    }

    /// Looks a name up on this machine. Blocks the thread.
    fn file(&self, name: &str) -> Result<NameFinding, Error> {
        let refused = |why: String| Err(Error::refused(self.target(name), why));
        // A slash at the end is valid, because an object with such a name stands for a folder.
        if let Err(e) = RelativePath::new(name.trim_end_matches('/').to_owned()) {
            return refused(e.to_string());
        }
        match self {
            Self::Source { root, links } => {
                let path = root.join(name);
                let link = link_on_the_way(root, name);
                let is_followed = |link: &PathBuf| match links {
                    Links::All => true,
                    Links::ToFiles => *link == path,
                    Links::None => false,
                };
                if let Some(link) = link.as_ref().filter(|link| !is_followed(link)) {
                    return Ok(NameFinding::LeftOut(Warning::left_out(link, "it is a symbolic link")));
                }
                match std::fs::metadata(&path) {
                    Ok(metadata) if metadata.is_file() => Ok(NameFinding::of_file(path, name, &metadata)),
                    Ok(_) => refused("is not a file".to_owned()),
                    // Report a broken link as an error, so that the sync removes nothing at the destination.
                    // The link's target may be missing only for a time.
                    Err(e) if link.is_some() => Err(Error::local(&path, "the link is broken", e)),
                    Err(e) if matches!(e.kind(), NotFound | NotADirectory) => Ok(NameFinding::Nothing),
                    Err(e) => Err(Error::local(&path, "can't be read", e)),
                }
            }
            Self::Destination { root } => {
                let path = root.join(name);
                match path.symlink_metadata() {
                    _ if link_on_the_way(root, name).is_some() => Ok(NameFinding::Nothing),
                    Ok(metadata) if metadata.is_file() => Ok(NameFinding::of_file(path, name, &metadata)),
                    // Anything at the destination that isn't a regular file is left alone.
                    Ok(_) => Ok(NameFinding::Nothing),
                    Err(e) if matches!(e.kind(), NotFound | NotADirectory) => Ok(NameFinding::Nothing),
                    Err(e) => Err(Error::local(&path, "its attributes can't be read", e)),
                }
            }
            Self::Prefix { .. } => Ok(NameFinding::Nothing),
        }
    }
}

async fn head(job: &JobState, store: &Store, id: ObjectId, name: String) -> Result<NameFinding, Error> {
    job.asked();
    match store.head(&id, None).await {
        Ok(meta) => Ok(NameFinding::Entry(Box::new(SideEntry::of_object(name, meta)))),
        Err(error) if error.is_not_found() => Ok(NameFinding::Nothing),
        Err(error) => Err(error.into()),
    }
}

impl NameFinding {
    fn of_file(path: PathBuf, name: &str, metadata: &std::fs::Metadata) -> Self {
        let (size, modified) = (metadata.len(), metadata.modified().ok());
        Self::Entry(Box::new(SideEntry::of_file(FoundFile { path, name: name.to_owned(), size, modified })))
    }
}

/// Returns the first symbolic link on the path from a folder to an entry below it. This link may be the entry
/// itself.
fn link_on_the_way(root: &Path, name: &str) -> Option<PathBuf> {
    let mut path = root.to_owned();
    name.split('/').find_map(|component| {
        path.push(component);
        path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink()).then(|| path.clone())
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_name_leads_out_of_its_folder_or_through_a_link_there() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("d")).unwrap();
        std::fs::write(dir.path().join("outside"), "theirs").unwrap();
        std::fs::write(root.join("d/f"), "f").unwrap();
        symlink(dir.path(), root.join("link")).unwrap();
        symlink("d/f", root.join("to-file")).unwrap();
        symlink("gone", root.join("dangling")).unwrap();
        let source = |links| NamedSide::Source { root: root.clone(), links };
        let destination = NamedSide::Destination { root: root.clone() };
        for place in [source(Links::ToFiles), source(Links::None), source(Links::All), destination.clone()] {
            assert!(place.file("../outside").is_err());
            assert!(matches!(place.file("d/f"), Ok(NameFinding::Entry(_))));
            for nothing in ["none", "none/at/all", "d/f/below"] {
                assert!(matches!(place.file(nothing), Ok(NameFinding::Nothing)), "{nothing}");
            }
        }
        assert!(source(Links::ToFiles).file("d").is_err(), "is not a file");
        for links in [Links::ToFiles, Links::All] {
            assert!(matches!(source(links).file("to-file"), Ok(NameFinding::Entry(_))));
            assert!(source(links).file("dangling").is_err(), "a broken link is an error, not a missing name");
        }
        assert!(matches!(source(Links::ToFiles).file("link/outside"), Ok(NameFinding::LeftOut(_))));
        assert!(matches!(source(Links::All).file("link/outside"), Ok(NameFinding::Entry(_))));
        for link in ["to-file", "link/outside"] {
            assert!(matches!(source(Links::None).file(link), Ok(NameFinding::LeftOut(_))), "{link}");
            assert!(matches!(destination.file(link), Ok(NameFinding::Nothing)), "{link}");
        }
        assert!(matches!(destination.file("d"), Ok(NameFinding::Nothing)));
    }
}
