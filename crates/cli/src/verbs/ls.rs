//! `laneway ls` lists buckets, prefixes and objects, and `laneway stat` shows the metadata of objects.

use std::borrow::Cow;
use std::error::Error as _;
use std::ffi::OsString;
use std::io;
use std::time::SystemTime;

use clap::Args;
use laneway::{Client, Entry, Error, ErrorKind, Filter, ListRequest, Location, ObjectAccess, Provider};
use laneway_store::CredentialError;

use crate::arguments::filters::FilterOptions;
use crate::context::{Context, complain};
use crate::exit::{BadUsage, Exit, OutcomeTally};
use crate::report::line;
use crate::report::line::printable;
use crate::report::object::{ObjectRecord, PlaceRecord, UsageRecord};
use crate::{arguments, locations};

/// List buckets, prefixes and objects
///
/// Without a URL, ls lists the buckets of every store for which you have credentials. With gs:// or s3:// it lists the buckets of that
/// store. Without -r, ls shows one level, with prefixes as gs://bucket/prefix/. With -r it prints every object, one URL per line.
///
/// -h prints help; with -l it means --readable-sizes, so `ls -lh` works as usual.
#[derive(Args, Debug)]
// The flag `short_h` below means --readable-sizes if -l is given. Without -l, the flag prints help.
#[command(disable_help_flag = true)]
pub(crate) struct Ls {
    /// Bucket, prefix, object or pattern; gs:// and s3:// list buckets
    #[arg(value_name = "URL")]
    urls: Vec<OsString>,
    /// Show size and time of change (UTC) of each object, and a total
    ///
    /// Example: laneway ls -l gs://my-bucket/photos/
    #[arg(long, short)]
    long: bool,
    /// List every object below the URL, in all folders
    ///
    /// Example: laneway ls -r gs://my-bucket/photos/
    #[arg(long, short, short_alias = 'R')]
    recursive: bool,
    /// List all versions that the bucket keeps, and delete markers
    ///
    /// A version is gs://bucket/key#generation or s3://bucket/key#id. `cp`, `cat`, `stat` and `rm` accept such URLs. GCS lists the oldest
    /// version of a key first, S3 the newest.
    ///
    /// Example: laneway ls -a gs://my-bucket/key
    #[arg(long, short)]
    all_versions: bool,
    /// List the deleted objects that GCS and Azure can restore
    ///
    /// On GCS, they have the generations that `restore` accepts.
    ///
    /// Example: laneway ls -r --soft-deleted gs://my-bucket/photos/
    #[arg(long, conflicts_with = "all_versions")]
    soft_deleted: bool,
    /// Print sizes like 4.59KiB, with -l
    ///
    /// Example: laneway ls -l --readable-sizes gs://my-bucket/photos/
    #[arg(long, alias = "human-readable")]
    readable_sizes: bool,
    /// Print the number of objects and bytes at the end
    ///
    /// Example: laneway ls -r --summarize gs://my-bucket/photos/
    #[arg(long)]
    summarize: bool,
    /// List at most N entries
    ///
    /// Example: laneway ls -r --limit 10 gs://my-bucket/photos/
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    #[command(flatten)]
    filters: FilterOptions,
    /// Print help; with -l, print sizes like 4.59KiB
    #[arg(short = 'h', id = "short_h")]
    short_h: bool,
    /// Print help with details and examples
    #[arg(long, action = clap::ArgAction::HelpLong)]
    help: Option<bool>,
}

impl Ls {
    pub(crate) fn run(mut self, context: &Context) -> anyhow::Result<Exit> {
        if self.short_h && !self.long {
            context.output.bytes(arguments::short_help("ls").as_bytes())?;
            return Ok(Exit::Done);
        }
        self.readable_sizes |= self.short_h;
        if self.urls.is_empty() {
            return self.list_buckets(context);
        }
        let places = locations::remote(&self.urls)?;
        let filter = self.filters.filter(SystemTime::now())?;
        if !filter.is_empty() && !self.recursive {
            return Err(BadUsage::new("filters need -r").into());
        }
        let client = context.client()?;
        let mut printer =
            ListingPrinter { ls: &self, context, terminal: context.output.is_terminal(), total: (0, 0) };
        let mut tally = OutcomeTally::default();
        let mut left = self.limit.unwrap_or(u64::MAX);
        for at in places {
            let Location::Object { provider, bucket, key } = &at else { continue };
            let mut listing = client.list(self.request(&at, &filter));
            let mut found = false;
            loop {
                if left == 0 {
                    tally.done();
                    break;
                }
                match listing.next_blocking() {
                    Some(Ok(entry)) => {
                        found = true;
                        left -= 1;
                        printer.print(*provider, &entry)?;
                    }
                    Some(Err(error)) => {
                        context.fail(&at, &error, &mut tally)?;
                        break;
                    }
                    None if !found && !filter.is_empty() => {
                        complain(&format!("{at}: nothing passes the filters"));
                        tally.done();
                        break;
                    }
                    // A key or prefix without any object is an error. An empty bucket or an account without buckets isn't, because the user
                    // named no key.
                    None if !found && !bucket.is_empty() && !key.is_empty() => {
                        tally.failed(false);
                        let (url, class) = (at.to_string(), ErrorKind::NotFound.name());
                        context.report_failure(Some(&url), &format!("{at}: nothing matches"), class)?;
                        break;
                    }
                    None => {
                        tally.done();
                        break;
                    }
                }
            }
        }
        let (objects, bytes) = printer.total;
        match context.options.json {
            true if self.summarize => context.output.json(&UsageRecord::new(None, objects, bytes))?,
            false if self.summarize || (self.long && (objects, bytes) != (0, 0)) => {
                context.output.line(&line::total(objects, bytes))?;
            }
            _ => {}
        }
        context.print_stats(&client)?;
        Ok(tally.exit())
    }

    /// Lists the buckets of each store that is configured.
    fn list_buckets(&self, context: &Context) -> anyhow::Result<Exit> {
        let client = context.client()?;
        let mut printer =
            ListingPrinter { ls: self, context, terminal: context.output.is_terminal(), total: (0, 0) };
        let mut tally = OutcomeTally::default();
        let mut unset = Vec::new();
        for provider in Provider::CLOUDS {
            let at = Location::object(provider, "", "");
            let mut listing = client.list(ListRequest::new(at.clone()));
            loop {
                match listing.next_blocking() {
                    Some(Ok(entry)) => printer.print(provider, &entry)?,
                    Some(Err(error)) if is_of_setup(&error) => {
                        unset.push((at, error));
                        break;
                    }
                    Some(Err(error)) => {
                        context.fail(&at, &error, &mut tally)?;
                        break;
                    }
                    None => {
                        tally.done();
                        break;
                    }
                }
            }
        }
        let is_any_set_up = unset.len() < Provider::CLOUDS.len();
        for (at, error) in unset {
            match is_any_set_up {
                true if context.options.quiet => {}
                true => complain(&format!("{at} is skipped: {error}")),
                false => context.fail(&at, &error, &mut tally)?,
            }
        }
        if !is_any_set_up {
            complain(
                "no store is set up, so no buckets can be listed; `laneway ls gs://BUCKET` lists one bucket",
            );
        }
        context.print_stats(&client)?;
        Ok(tally.exit())
    }

    fn request(&self, at: &Location, filter: &Filter) -> ListRequest {
        let request = ListRequest::new(at.clone()).recursive(self.recursive);
        let request = request.all_versions(self.all_versions).soft_deleted(self.soft_deleted);
        request.filter(filter.clone())
    }
}

/// Returns whether a listing failed only because the store isn't set up: it has no credentials or no project, so no request was sent.
fn is_of_setup(error: &laneway::Error) -> bool {
    let credentials = error.source().and_then(|source| source.downcast_ref::<CredentialError>());
    let lacks_project = error.kind() == ErrorKind::Invalid && error.attempts() == 0;
    lacks_project || credentials.is_some_and(|credentials| credentials.unusable_source().is_none())
}

/// Prints entries as text or JSON.
struct ListingPrinter<'a> {
    ls: &'a Ls,
    context: &'a Context,
    terminal: bool,
    /// Objects and bytes so far.
    total: (u64, u64),
}

impl ListingPrinter<'_> {
    fn print(&mut self, at: Provider, entry: &Entry) -> io::Result<()> {
        let output = &self.context.output;
        let json = self.context.options.json;
        let scheme = at.scheme();
        match entry {
            Entry::Object(meta) => {
                if !meta.delete_marker {
                    self.total.0 += 1;
                    self.total.1 += meta.size;
                }
                let url = format!("{scheme}://{}", meta.id);
                if json {
                    return output.json(&ObjectRecord::new(&url, meta));
                }
                let url = self.shown(&url);
                if meta.delete_marker {
                    return output.line(&match self.ls.long {
                        true => line::delete_marker(meta.updated, &url),
                        false => format!("{url}{}", line::DELETE_MARKER),
                    });
                }
                if self.ls.long {
                    let line = line::object(meta.size, meta.updated, &url, self.ls.readable_sizes);
                    return output.line(&format!("{line}{}", line::archive_status(meta)));
                }
                output.line(&url)
            }
            Entry::Prefix(url) if json => output.json(&PlaceRecord::prefix(url)),
            Entry::Prefix(url) if self.ls.long => output.line(&line::prefix(&self.shown(url))),
            Entry::Prefix(url) => output.line(&self.shown(url)),
            Entry::Bucket(name) => {
                let url = format!("{scheme}://{name}/");
                if json { output.json(&PlaceRecord::bucket(&url)) } else { output.line(&self.shown(&url)) }
            }
            _ => Ok(()),
        }
    }

    fn shown<'a>(&self, url: &'a str) -> Cow<'a, str> {
        if self.terminal { printable(url).into() } else { url.into() }
    }
}

/// Show the metadata of objects: size, checksums, times, headers
#[derive(Args, Debug)]
pub(crate) struct Stat {
    /// Objects, versions or patterns
    ///
    /// A version is gs://bucket/key#generation or s3://bucket/key#id.
    #[arg(value_name = "URL", required = true)]
    urls: Vec<OsString>,
    /// Show the tags too, on S3
    ///
    /// This takes one more request for each object.
    ///
    /// Example: laneway stat --tags s3://my-bucket/key
    #[arg(long)]
    tags: bool,
    /// Show the grants of the access control list too
    ///
    /// This takes one more request for each object.
    ///
    /// Example: laneway stat --acl gs://my-bucket/key
    #[arg(long)]
    acl: bool,
}

impl Stat {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let places = locations::versioned(&self.urls)?;
        let client = context.client()?;
        let mut tally = OutcomeTally::default();
        let mut objects = Vec::new();
        for at in &places {
            match locations::objects(&client, at) {
                Ok(found) => objects.extend(found),
                Err(error) => context.fail(at, &error, &mut tally)?,
            }
        }
        let mut stats = client.stats(objects);
        while let Some((at, known)) = stats.next_blocking() {
            match known {
                Ok(meta) => {
                    let url = at.to_string();
                    let mut record = ObjectRecord::new(&url, &meta);
                    match self.access(&client, &at) {
                        Ok(access) => record = record.with(access),
                        Err(error) => {
                            context.fail(&at, &error, &mut tally)?;
                            continue;
                        }
                    }
                    tally.done();
                    if context.options.json {
                        context.output.json(&record)?;
                    } else {
                        context.output.line(&record.details())?;
                    }
                }
                Err(error) => context.fail(&at, &error, &mut tally)?,
            }
        }
        context.print_stats(&client)?;
        Ok(tally.exit())
    }

    /// Requests the tags and the grants of an object if the options ask for them.
    fn access(&self, client: &Client, at: &Location) -> Result<ObjectAccess, Error> {
        match self.tags || self.acl {
            true => client.access(at, self.tags, self.acl),
            false => Ok(ObjectAccess::default()),
        }
    }
}
