//! `laneway ls`: buckets, prefixes and objects.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io;
use std::time::SystemTime;

use clap::Args;
use laneway::{Entry, Filter, ListRequest, Location, Provider};

use crate::arguments;
use crate::arguments::filters::Filters;
use crate::context::{Context, complain};
use crate::exit::{BadUsage, Exit, Tally};
use crate::locations;
use crate::report::listing::{self, printable};
use crate::report::object::{ObjectRecord, PlaceRecord, UsageRecord};

/// List buckets, prefixes and objects
///
/// Without -r one level is listed, with prefixes as gs://bucket/prefix/. With -r every object below is listed, one URL
/// a line. gs:// and s3:// alone list buckets.
///
/// -h is help, as everywhere; beside -l it means --readable-sizes, so that `ls -lh` does what it does elsewhere.
#[derive(Args, Debug)]
// `short_h` below is help or --readable-sizes, by whether -l is given too.
#[command(disable_help_flag = true)]
pub(crate) struct Ls {
    /// What to list: gs://bucket/prefix/, a pattern, or gs:// for all buckets
    #[arg(value_name = "URL", required_unless_present = "short_h")]
    urls: Vec<OsString>,
    /// Size, time of the last change (UTC) and URL of each object, and their total
    #[arg(long, short)]
    long: bool,
    /// Every object below, however deep
    #[arg(long, short, short_alias = 'R')]
    recursive: bool,
    /// Every version that the bucket keeps, as gs://bucket/key#generation or s3://bucket/key#id; delete markers say that they are
    ///
    /// Of each key GCS lists the oldest version first, S3 the newest. `cp`, `cat`, `stat` and `rm` take such URLs.
    #[arg(long, short)]
    all_versions: bool,
    /// How many objects and bytes were listed, at the end
    #[arg(long)]
    summarize: bool,
    /// List no more than so many
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Sizes like 4.59KiB, with -l
    #[arg(long, alias = "human-readable")]
    readable_sizes: bool,
    /// Print help; with -l, sizes like 4.59KiB
    #[arg(short = 'h', id = "short_h")]
    short_h: bool,
    /// Print help with details
    #[arg(long, action = clap::ArgAction::HelpLong)]
    help: Option<bool>,
    #[command(flatten)]
    filters: Filters,
}

impl Ls {
    pub(crate) fn run(mut self, context: &Context) -> anyhow::Result<Exit> {
        if self.short_h && (!self.long || self.urls.is_empty()) {
            context.output.bytes(arguments::short_help("ls").as_bytes())?;
            return Ok(Exit::Done);
        }
        self.readable_sizes |= self.short_h;
        let places = locations::remote(&self.urls)?;
        let filter = self.filters.filter(SystemTime::now())?;
        if !filter.is_empty() && !self.recursive {
            return Err(BadUsage::new("filters choose among what -r lists").into());
        }
        let client = context.client()?;
        let mut printer =
            Printer { ls: &self, context, terminal: context.output.is_terminal(), total: (0, 0) };
        let mut tally = Tally::default();
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
                        complain(&format!("{at}: the filters leave nothing of it"));
                        tally.done();
                        break;
                    }
                    // An empty bucket and an account without buckets are no mistake of the caller's.
                    None if !found && !bucket.is_empty() && !key.is_empty() => {
                        tally.failed(false);
                        let (url, class) = (at.to_string(), laneway::ErrorKind::NotFound.name());
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
                context.output.line(&listing::total(objects, bytes))?;
            }
            _ => {}
        }
        context.print_stats(&client)?;
        Ok(tally.exit())
    }

    fn request(&self, at: &Location, filter: &Filter) -> ListRequest {
        let request = ListRequest::new(at.clone()).recursive(self.recursive);
        request.all_versions(self.all_versions).filter(filter.clone())
    }
}

/// Prints entries in the form that was asked for.
struct Printer<'a> {
    ls: &'a Ls,
    context: &'a Context,
    terminal: bool,
    /// Objects and bytes so far.
    total: (u64, u64),
}

impl Printer<'_> {
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
                        true => listing::delete_marker(meta.updated, &url),
                        false => format!("{url}{}", listing::DELETE_MARKER),
                    });
                }
                if self.ls.long {
                    return output.line(&listing::object(
                        meta.size,
                        meta.updated,
                        &url,
                        self.ls.readable_sizes,
                    ));
                }
                output.line(&url)
            }
            Entry::Prefix(url) if json => output.json(&PlaceRecord::prefix(url)),
            Entry::Prefix(url) if self.ls.long => output.line(&listing::prefix(&self.shown(url))),
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
