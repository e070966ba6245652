//! The options of jobs, in one table. Tests compare the keywords and builders of the bindings with this table.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;

use laneway::{Client, CopyRequest, Filter, Gzip, Job, Location, PutOptions, RemoveRequest, SyncRequest};

use crate::described::with_attributes;
use crate::failure::Failure;
use crate::value::{InvalidValue, NamedValues, Value, ValueKind};

/// A kind of job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JobVerb {
    /// Copies sources to a destination.
    Copy,
    /// Makes a folder or prefix equal to another one.
    Sync,
    /// Removes objects.
    Remove,
}

impl JobVerb {
    /// All kinds of jobs.
    pub const ALL: [Self; 3] = [Self::Copy, Self::Sync, Self::Remove];

    /// Returns the verb's name, which is the same in every language.
    pub fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Sync => "sync",
            Self::Remove => "remove",
        }
    }

    /// Returns the verb with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.name() == name)
    }
}

impl fmt::Display for JobVerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An option of jobs. The library's requests, or its `Filter`, have a method with the same name, unless the table says
/// otherwise.
#[derive(Debug)]
pub struct JobOption {
    /// The name, which is the same in every language.
    pub name: &'static str,
    /// The type of its values.
    pub kind: ValueKind,
    /// A description, usually in one sentence.
    pub meaning: &'static str,
    apply: OptionTarget,
}

type OptionSetter<R> = fn(R, Value) -> Result<R, InvalidValue>;

/// The part of a job that an option changes.
#[derive(Debug)]
enum OptionTarget {
    Request {
        copy: Option<OptionSetter<CopyRequest>>,
        sync: Option<OptionSetter<SyncRequest>>,
        remove: Option<OptionSetter<RemoveRequest>>,
    },
    Filter(OptionSetter<Filter>),
    Put(OptionSetter<PutOptions>),
}

impl JobOption {
    /// Returns whether jobs of this kind have the option.
    pub fn is_taken_by(&self, verb: JobVerb) -> bool {
        match (&self.apply, verb) {
            (OptionTarget::Request { copy, .. }, JobVerb::Copy) => copy.is_some(),
            (OptionTarget::Request { sync, .. }, JobVerb::Sync) => sync.is_some(),
            (OptionTarget::Request { remove, .. }, JobVerb::Remove) => remove.is_some(),
            (OptionTarget::Filter(_), _) => true,
            (OptionTarget::Put(_), verb) => verb != JobVerb::Remove,
        }
    }
}

/// Defines an option of requests. The list names the kinds of jobs that have it.
macro_rules! request {
    ($name:ident, $kind:ident, [$copy:tt $sync:tt $remove:tt], $meaning:literal) => {
        JobOption {
            name: stringify!($name),
            kind: ValueKind::$kind,
            meaning: $meaning,
            apply: OptionTarget::Request {
                copy: request!(@ $copy $name),
                sync: request!(@ $sync $name),
                remove: request!(@ $remove $name),
            },
        }
    };
    (@ - $name:ident) => { None };
    (@ $verb:ident $name:ident) => { Some(|request, value| Ok(request.$name(value.read()?))) };
}

/// Defines an option of filters, which all kinds of jobs have.
macro_rules! filter {
    ($name:ident, $kind:ident, $meaning:literal) => {
        filter!($name, $kind, $meaning, |filter, value| Ok(filter.$name(value.read()?)))
    };
    ($name:ident, $kind:ident, $meaning:literal, $change:expr) => {
        JobOption {
            name: stringify!($name),
            kind: ValueKind::$kind,
            meaning: $meaning,
            apply: OptionTarget::Filter($change),
        }
    };
}

/// All options of jobs, in the order of their names.
pub static JOB_OPTIONS: &[JobOption] = &[
    request!(allow_empty, Flag, [- sync -], "Lets `delete` remove everything when the source is empty."),
    request!(
        allow_unverified,
        Flag,
        [copy - -],
        "With `remove_source`, removes a source even if its copy could only be compared by size."
    ),
    JobOption {
        name: "attributes",
        kind: ValueKind::Pairs,
        meaning: "Attributes of new objects by header name. Other names become user metadata.",
        apply: OptionTarget::Put(|put, value| {
            Ok(with_attributes(put, value.read::<BTreeMap<String, String>>()?))
        }),
    },
    request!(checksum, Flag, [- sync -], "Compares items of equal size by checksum, not by time."),
    request!(contents, Flag, [copy - -], "Copies the contents of a folder directly into the destination, without the folder's name."),
    request!(delete, Flag, [- sync -], "Removes items from the destination that the source lacks."),
    request!(dry_run, Flag, [copy sync remove], "Only reports what would be done."),
    request!(durable, Flag, [copy sync -], "Flushes each file and its directory to disk before it counts as done."),
    request!(existing, Flag, [- sync -], "Copies only items that the destination already has."),
    request!(files_from, Place, [copy sync remove], "A file with the names of the items, one per line."),
    filter!(
        filters,
        Texts,
        "Rules that select names: `+ GLOB` includes and `- GLOB` skips. The first matching rule applies.",
        |filter, value| {
            Ok(value.read::<Vec<String>>()?.iter().try_fold(filter, |filter, rule| filter.line(rule))?)
        }
    ),
    request!(follow_symlinks, Flag, [copy sync -], "Follows symbolic links to directories."),
    request!(force, Flag, [- sync -], "Lets `delete` run on a destination that contains only a folder with the source's name, and remove that folder."),
    JobOption {
        name: "gzip",
        kind: ValueKind::Texts,
        meaning: "Compresses files with these extensions when they are uploaded.",
        apply: OptionTarget::Request {
            copy: Some(|request, value| Ok(request.gzip(Gzip::extensions(value.read::<Vec<String>>()?)?))),
            sync: None,
            remove: None,
        },
    },
    request!(ignore_existing, Flag, [- sync -], "Copies only items that the destination lacks."),
    request!(ignore_symlinks, Flag, [- sync -], "Skips symbolic links."),
    request!(keep_partial, Flag, [copy sync -], "Keeps the finished parts of large objects when the job is cancelled, so that it can be resumed."),
    request!(max_delete, Number, [- sync -], "Removes nothing if more items than this would be removed."),
    filter!(max_size, Number, "Takes only items with at most this many bytes."),
    filter!(min_size, Number, "Takes only items with at least this many bytes."),
    filter!(newer, Time, "Takes only items that changed at this time or later."),
    request!(no_clobber, Flag, [copy - -], "Skips destinations that exist."),
    filter!(older, Time, "Takes only items that changed before this time."),
    request!(preserve, Flag, [copy sync -], "Keeps times, modes and owners of files as metadata of objects, and restores them on download."),
    request!(recursive, Flag, [copy - remove], "Includes everything below directories and prefixes."),
    request!(remove_source, Flag, [copy - -], "Removes each source after its copy is verified."),
    request!(size_only, Flag, [- sync -], "Compares sizes only."),
    JobOption {
        name: "tags",
        kind: ValueKind::Pairs,
        meaning: "Tags of new objects, on S3.",
        apply: OptionTarget::Put(|put, value| {
            let tags = value.read::<BTreeMap<String, String>>()?;
            Ok(tags.into_iter().fold(put, |put, (name, value)| put.tag(name, value)))
        }),
    },
    request!(update, Flag, [- sync -], "Skips items that are newer at the destination, whatever their size."),
];

/// Returns the type of an option's values.
///
/// # Errors
/// Fails if the name isn't in the table.
pub fn kind_of(name: &str) -> Result<ValueKind, Failure> {
    let unknown = || Failure::usage(format!("{name}: jobs have no such option"));
    Ok(option(name).ok_or_else(unknown)?.kind)
}

fn option(name: &str) -> Option<&'static JobOption> {
    JOB_OPTIONS.iter().find(|option| option.name == name)
}

/// A job to start.
#[derive(Debug)]
pub struct JobRequest {
    /// The kind of the job.
    pub verb: JobVerb,
    /// Paths and URLs: the sources, or the objects to remove.
    pub sources: Vec<OsString>,
    /// The destination, which a removal doesn't have.
    pub destination: Option<OsString>,
    /// Options by name.
    pub options: NamedValues,
    /// Further options of new objects.
    pub put: PutOptions,
}

/// Starts a job.
///
/// # Errors
/// Fails if the job doesn't have an option, if a value is invalid, or if a source or destination is invalid.
pub fn begin(client: &Client, request: JobRequest) -> Result<Job, Failure> {
    let JobRequest { verb, sources, destination, options, put } = request;
    let sources = sources.iter().map(|text| Location::parse(text)).collect::<Result<Vec<_>, _>>()?;
    let destination = destination.map(|text| Location::parse(&text)).transpose()?;
    let ReadOptions { filter, put, own } = read(verb, options, put)?;
    // `read` has returned an error for options that this kind of job doesn't have.
    match (verb, destination, sources.as_slice()) {
        (JobVerb::Copy, Some(destination), _) => {
            let request = CopyRequest::new(sources, destination).put(put).filter(filter);
            let request = applied(request, own, |(copy, ..)| copy)?;
            request.check()?;
            Ok(client.copy(request))
        }
        (JobVerb::Sync, Some(destination), [source]) => {
            let request = SyncRequest::new(source.clone(), destination).put(put).filter(filter);
            let request = applied(request, own, |(_, sync, _)| sync)?;
            request.check()?;
            Ok(client.sync(request))
        }
        (JobVerb::Remove, None, _) => {
            let request = RemoveRequest::new(sources).filter(filter);
            let request = applied(request, own, |(.., remove)| remove)?;
            request.check()?;
            Ok(client.remove(request))
        }
        _ => Err(Failure::usage(format!("a {verb} job has the wrong number of sources or destinations"))),
    }
}

/// Returns the sync that a plan divides. The plan checks it.
///
/// # Errors
/// Fails if a sync doesn't have an option, or if a value is invalid.
pub(crate) fn sync_request(
    source: Location,
    destination: Location,
    options: NamedValues,
) -> Result<SyncRequest, Failure> {
    let ReadOptions { filter, own, .. } = read(JobVerb::Sync, options, PutOptions::default())?;
    applied(SyncRequest::new(source, destination).filter(filter), own, |(_, sync, _)| sync)
}

/// Returns the filter of these options.
///
/// # Errors
/// Fails if an option isn't one of filters, or if a value is invalid.
pub(crate) fn filter(options: NamedValues) -> Result<Filter, Failure> {
    Ok(read(JobVerb::Remove, options, PutOptions::default())?.filter)
}

/// Refuses filter rules without a sign. The library would read such a rule as an exclusion, so a removal with the rule
/// `*.tmp` would remove everything else.
pub(crate) fn check_signs(options: &NamedValues) -> Result<(), Failure> {
    for (name, value) in options {
        let Value::Texts(rules) = value else { continue };
        let unsigned = |rule: &&String| !rule.starts_with("+ ") && !rule.starts_with("- ");
        if name == "filters"
            && let Some(rule) = rules.iter().find(unsigned)
        {
            let why = "must begin with \"+ \" to include names, or with \"- \" to exclude them";
            return Err(Failure::usage(format!("filters: the rule {rule:?} {why}")));
        }
    }
    Ok(())
}

/// Options of a job, by the part of its request that they change.
struct ReadOptions {
    filter: Filter,
    put: PutOptions,
    own: Vec<(String, Value, RequestSetters)>,
}

fn read(verb: JobVerb, options: NamedValues, put: PutOptions) -> Result<ReadOptions, Failure> {
    let mut parts = ReadOptions { filter: Filter::default(), put, own: Vec::new() };
    for (name, value) in options {
        let none = || Failure::usage(format!("{name}: a {verb} job has no such option"));
        let option = option(&name).filter(|option| option.is_taken_by(verb)).ok_or_else(none)?;
        match &option.apply {
            OptionTarget::Filter(change) => {
                parts.filter = change(parts.filter, value).map_err(|why| why.of(&name))?;
            }
            OptionTarget::Put(change) => parts.put = change(parts.put, value).map_err(|why| why.of(&name))?,
            OptionTarget::Request { copy, sync, remove } => {
                parts.own.push((name, value, (*copy, *sync, *remove)));
            }
        }
    }
    Ok(parts)
}

type RequestSetters = (
    Option<OptionSetter<CopyRequest>>,
    Option<OptionSetter<SyncRequest>>,
    Option<OptionSetter<RemoveRequest>>,
);

/// Applies options to a request. `of` selects each option's function for this kind of request.
fn applied<R>(
    request: R,
    own: Vec<(String, Value, RequestSetters)>,
    of: impl Fn(RequestSetters) -> Option<OptionSetter<R>>,
) -> Result<R, Failure> {
    own.into_iter().try_fold(request, |request, (name, value, changes)| match of(changes) {
        Some(change) => change(request, value).map_err(|why| why.of(&name)),
        None => Ok(request),
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    fn sample(kind: ValueKind) -> Value {
        match kind {
            ValueKind::Flag => Value::Flag(true),
            ValueKind::Number => Value::Number(7),
            ValueKind::Text => Value::Text("text".into()),
            ValueKind::Texts => Value::Texts(vec!["txt".into()]),
            ValueKind::Pairs => Value::Pairs([("name".into(), "value".into())].into()),
            ValueKind::Time => Value::Time(SystemTime::UNIX_EPOCH),
            ValueKind::Duration => Value::Duration(Duration::from_secs(1)),
            ValueKind::Place => Value::Place("names.txt".into()),
        }
    }

    #[test]
    fn each_option_reads_a_value_of_its_kind_and_refuses_others() {
        let kinds = [
            ValueKind::Flag,
            ValueKind::Number,
            ValueKind::Text,
            ValueKind::Texts,
            ValueKind::Pairs,
            ValueKind::Time,
            ValueKind::Place,
        ];
        for option in JOB_OPTIONS {
            let is_readable = |kind| {
                let places = || vec!["s3://lake/a/".parse().unwrap()];
                let place = || "s3://lake/b/".parse().unwrap();
                match option.apply {
                    OptionTarget::Filter(change) => change(Filter::default(), sample(kind)).is_ok(),
                    OptionTarget::Put(change) => change(PutOptions::default(), sample(kind)).is_ok(),
                    OptionTarget::Request { copy, sync, remove } => {
                        let copy =
                            copy.map(|set| set(CopyRequest::new(places(), place()), sample(kind)).is_ok());
                        let sync =
                            sync.map(|set| set(SyncRequest::new(place(), place()), sample(kind)).is_ok());
                        let remove =
                            remove.map(|set| set(RemoveRequest::new(places()), sample(kind)).is_ok());
                        let all: Vec<_> = [copy, sync, remove].into_iter().flatten().collect();
                        assert!(!all.is_empty(), "{} is taken by no job", option.name);
                        assert!(all.iter().all(|one| *one == all[0]), "{}: jobs differ", option.name);
                        all[0]
                    }
                }
            };
            for kind in kinds {
                assert_eq!(is_readable(kind), kind == option.kind, "{} by {kind:?}", option.name);
            }
        }
    }

    #[test]
    fn refuses_an_option_that_the_job_has_no_use_for() {
        let client = Client::builder().anonymous(true).build().unwrap();
        let request = |verb, option: &str| JobRequest {
            verb,
            sources: vec!["s3://lake/x".into()],
            destination: (verb != JobVerb::Remove).then(|| "s3://lake/y".into()),
            options: vec![(option.to_owned(), Value::Flag(true))],
            put: PutOptions::default(),
        };
        let refused = begin(&client, request(JobVerb::Remove, "no_clobber")).unwrap_err();
        assert_eq!(refused.message, "no_clobber: a remove job has no such option");
        assert!(
            begin(&client, request(JobVerb::Copy, "attributes"))
                .unwrap_err()
                .message
                .contains("wrong type or format")
        );
    }
}
