//! `laneway du`: shows the size of objects and folders.

use std::ffi::OsString;
use std::io;
use std::time::SystemTime;

use clap::Args;
use laneway::{Client, Entry, ErrorKind, Filter, ListRequest, Location, ObjectMeta};

use crate::arguments::filters::{FilterOptions, InventoryOption};
use crate::context::{Context, complain};
use crate::exit::{BadUsage, Exit, OutcomeTally};
use crate::report::line;
use crate::report::line::printable;
use crate::report::object::{ObjectRecord, UsageRecord};
use crate::{arguments, locations};

/// Show the size of objects and folders
///
/// du prints a line for each object and each folder. A folder's line follows the lines of its contents. -s prints one line per URL. Sizes
/// come from the listing, so they don't include noncurrent versions and unfinished uploads. With an inventory that isn't sorted by key (S3
/// allows this), use -s. Laneway then reads the inventory once for all URLs.
///
/// -h without a URL prints help; with a URL it means --readable-sizes, so `du -sh` works as usual.
#[derive(Args, Debug)]
// The flag `short_h` below prints help if there is no URL. With a URL, it means --readable-sizes.
#[command(disable_help_flag = true)]
pub(crate) struct Du {
    /// Bucket, prefix, object or pattern
    #[arg(value_name = "URL", required_unless_present = "short_h")]
    urls: Vec<OsString>,
    /// Print only the total of each URL
    ///
    /// Example: laneway du -s gs://my-bucket/photos
    #[arg(long, short)]
    summarize: bool,
    /// Print the sum of all URLs at the end
    ///
    /// Example: laneway du -sc gs://my-bucket/photos gs://my-bucket/films
    #[arg(long, short = 'c')]
    total: bool,
    /// Print only folders down to N levels below each URL
    ///
    /// Example: laneway du -d 1 gs://my-bucket
    #[arg(long, short = 'd', value_name = "N", conflicts_with = "summarize")]
    max_depth: Option<usize>,
    /// Print sizes like 4.59KiB
    ///
    /// Example: laneway du -s --readable-sizes gs://my-bucket
    #[arg(long, alias = "human-readable")]
    readable_sizes: bool,
    #[command(flatten)]
    filters: FilterOptions,
    #[command(flatten)]
    inventory: InventoryOption,
    /// Print help; with a URL, print sizes like 4.59KiB
    #[arg(short = 'h', id = "short_h")]
    short_h: bool,
    /// Print help with details and examples
    #[arg(long, action = clap::ArgAction::HelpLong)]
    help: Option<bool>,
}

/// A number of objects, and their total size.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Sum {
    objects: u64,
    bytes: u64,
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.objects += other.objects;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// The folders around the current position of an ordered listing, innermost last, with their sums so far.
#[derive(Debug)]
struct FolderSums {
    /// The length in bytes of the prefix above the counted folders. All keys begin with this prefix.
    base: usize,
    open: Vec<(String, Sum)>,
    last: String,
}

impl FolderSums {
    /// Returns empty sums for a listing below `key`. The folder that `key` names is counted, and folders above it aren't.
    fn of(key: &str) -> Self {
        let literal = key.split(['*', '?', '[']).next().unwrap_or_default();
        let named = if literal.len() == key.len() { literal.trim_end_matches('/') } else { literal };
        Self { base: named.rfind('/').map_or(0, |slash| slash + 1), open: Vec::new(), last: String::new() }
    }

    /// Adds the next object. Returns the folders that ended before this object, innermost first, or `None` if
    /// the object is out of order.
    fn add(&mut self, key: &str, bytes: u64) -> Option<Vec<(String, Sum)>> {
        if key < self.last.as_str() {
            return None;
        }
        key.clone_into(&mut self.last);
        let mut ended = Vec::new();
        while self.open.last().is_some_and(|(folder, _)| !key.starts_with(folder)) {
            ended.extend(self.close());
        }
        let begun = self.open.last().map_or(self.base, |(folder, _)| folder.len());
        let below = key.get(begun..).unwrap_or_default();
        for (slash, _) in below.match_indices('/') {
            self.open.push((key[..=begun + slash].to_owned(), Sum::default()));
        }
        if let Some((_, sum)) = self.open.last_mut() {
            sum.add(Sum { objects: 1, bytes });
        }
        Some(ended)
    }

    /// Ends the innermost folder, and adds its sum to the folder around it.
    fn close(&mut self) -> Option<(String, Sum)> {
        let (folder, sum) = self.open.pop()?;
        if let Some((_, outer)) = self.open.last_mut() {
            outer.add(sum);
        }
        Some((folder, sum))
    }
}

impl Du {
    pub(crate) fn run(mut self, context: &Context) -> anyhow::Result<Exit> {
        if self.short_h && self.urls.is_empty() {
            context.output.bytes(arguments::short_help("du").as_bytes())?;
            return Ok(Exit::Done);
        }
        self.readable_sizes |= self.short_h;
        let places = locations::remote(&self.urls)?;
        let filter = self.filters.filter(SystemTime::now())?;
        let inventory = self.inventory.location()?;
        if let Some(at) = &inventory {
            check_together(at, &places)?;
        }
        let client = context.client()?;
        let printer = UsagePrinter { du: &self, context, terminal: context.output.is_terminal() };
        let (mut tally, mut total) = (OutcomeTally::default(), Sum::default());
        if let Some(inventory) = inventory.as_ref().filter(|_| self.summarize && places.len() > 1) {
            let mut listing = client.list(bucket_of(&places[0]).inventory(inventory.clone()));
            match printer.sums(&places, &filter, || listing.next_blocking())? {
                Ok(sums) => {
                    for (at, (found, sum)) in places.iter().zip(sums) {
                        let url = at.to_string();
                        if found.objects == 0 {
                            let why = format!("{url}: the inventory lists nothing below this URL");
                            context.report_failure(Some(&url), &why, ErrorKind::NotFound.name())?;
                            tally.failed(false);
                            continue;
                        }
                        printer.sum(Some(&url), sum)?;
                        self.say_where_filtered(at, sum, &filter);
                        total.add(sum);
                        tally.done();
                    }
                }
                Err(error) => context.fail(&places[0], &error, &mut tally)?,
            }
            return self.end(context, &client, &printer, (tally, total));
        }
        for at in places {
            let mut request = ListRequest::new(at.clone()).recursive(true).filter(filter.clone());
            request.inventory.clone_from(&inventory);
            // A total needs no order, and an unordered listing is faster.
            let mut listing = client.list(request.in_order(!self.summarize));
            match printer.place(&at, || listing.next_blocking())? {
                Ok(sum) => {
                    self.say_where_filtered(&at, sum, &filter);
                    total.add(sum);
                    tally.done();
                }
                Err(error) => context.fail(&at, &error, &mut tally)?,
            }
        }
        self.end(context, &client, &printer, (tally, total))
    }

    fn say_where_filtered(&self, at: &Location, sum: Sum, filter: &Filter) {
        if sum.objects == 0 && !filter.is_empty() {
            complain(&format!("{at}: nothing passes the filters"));
        }
    }

    fn end(
        &self,
        context: &Context,
        client: &Client,
        printer: &UsagePrinter<'_>,
        (tally, total): (OutcomeTally, Sum),
    ) -> anyhow::Result<Exit> {
        if self.total {
            printer.sum(None, total)?;
        }
        context.print_stats(client)?;
        Ok(tally.exit())
    }
}

/// Checks that all URLs are in one bucket, because an inventory lists one bucket. If there are several URLs, none may be a pattern.
fn check_together(inventory: &Location, places: &[Location]) -> anyhow::Result<()> {
    let bucket = |at: &Location| match at {
        Location::Object { provider, bucket, .. } => Some((*provider, bucket.clone())),
        _ => None,
    };
    let refused = |why: &str| Err(BadUsage::of(inventory.to_string(), why.to_owned()).into());
    if places.iter().any(|at| bucket(at) != bucket(&places[0])) {
        return refused("an inventory lists one bucket, but these URLs are in several");
    }
    if places.len() > 1 && places.iter().any(Location::is_pattern) {
        return refused("an inventory can only replace the listing of a bucket or prefix");
    }
    Ok(())
}

/// Returns a request that lists the whole bucket of `at`, in any order.
fn bucket_of(at: &Location) -> ListRequest {
    let at = match at {
        Location::Object { provider, bucket, .. } => Location::object(*provider, bucket.clone(), ""),
        other => other.clone(),
    };
    ListRequest::new(at).recursive(true).in_order(false)
}

/// Returns the part of a key after `folder`, or `None` if the key isn't in that folder.
fn below<'a>(folder: &str, key: &'a str) -> Option<&'a str> {
    let rest = key.strip_prefix(folder)?;
    match folder.is_empty() || folder.ends_with('/') {
        true => Some(rest),
        false => rest.strip_prefix('/'),
    }
}

/// Prints sums and objects as text or JSON.
struct UsagePrinter<'a> {
    du: &'a Du,
    context: &'a Context,
    terminal: bool,
}

impl UsagePrinter<'_> {
    /// Reads the entries of an inventory, only once for all URLs. Returns two sums for each URL: of all its objects, and of
    /// those that pass the filter.
    fn sums(
        &self,
        places: &[Location],
        filter: &Filter,
        mut next: impl FnMut() -> Option<Result<Entry, laneway::Error>>,
    ) -> anyhow::Result<Result<Vec<(Sum, Sum)>, laneway::Error>> {
        let mut sums = vec![(Sum::default(), Sum::default()); places.len()];
        while let Some(entry) = next() {
            let meta = match entry {
                Ok(Entry::Object(meta)) => meta,
                Ok(_) => continue,
                Err(error) => return Ok(Err(error)),
            };
            for (place, (found, sum)) in places.iter().zip(&mut sums) {
                let Location::Object { key, .. } = place else { continue };
                let Some(name) = below(key, &meta.id.key) else { continue };
                let one = Sum { objects: 1, bytes: meta.size };
                found.add(one);
                if filter.takes(name, meta.size, meta.updated) {
                    sum.add(one);
                }
            }
        }
        Ok(Ok(sums))
    }

    /// Prints the objects and folders below a URL, and returns their sum.
    fn place(
        &self,
        at: &Location,
        mut next: impl FnMut() -> Option<Result<Entry, laneway::Error>>,
    ) -> anyhow::Result<Result<Sum, laneway::Error>> {
        let Location::Object { provider, bucket, key } = at else { return Ok(Ok(Sum::default())) };
        let url = |key: &str| format!("{}://{bucket}/{key}", provider.scheme());
        let mut sum = Sum::default();
        let mut folders = FolderSums::of(key);
        while let Some(entry) = next() {
            let meta = match entry {
                Ok(Entry::Object(meta)) => meta,
                Ok(_) => continue,
                Err(error) => return Ok(Err(error)),
            };
            sum.add(Sum { objects: 1, bytes: meta.size });
            if self.du.summarize {
                continue;
            }
            let Some(ended) = folders.add(&meta.id.key, meta.size) else {
                anyhow::bail!(
                    "{at}: the store lists keys unsorted, so folders can't be counted; use -s for the total"
                );
            };
            for (folder, sum) in ended {
                if self.is_shown(key, &folder) {
                    self.sum(Some(&url(&folder)), sum)?;
                }
            }
            if self.du.max_depth.is_none() {
                self.object(&url(&meta.id.key), &meta)?;
            }
        }
        while let Some((folder, sum)) = folders.close() {
            if self.is_shown(key, &folder) {
                self.sum(Some(&url(&folder)), sum)?;
            }
        }
        if self.du.summarize || key.is_empty() {
            self.sum(Some(&url(key)), sum)?;
        }
        Ok(Ok(sum))
    }

    /// Returns whether `--max-depth` allows a line for `folder`, which lies below the key `named`.
    fn is_shown(&self, named: &str, folder: &str) -> bool {
        let levels = |key: &str| key.trim_end_matches('/').split('/').filter(|name| !name.is_empty()).count();
        self.du.max_depth.is_none_or(|max| levels(folder) <= levels(named) + max)
    }

    fn object(&self, url: &str, meta: &ObjectMeta) -> io::Result<()> {
        match self.context.options.json {
            true => self.context.output.json(&ObjectRecord::new(url, meta)),
            false => self.line(meta.size, url),
        }
    }

    /// Prints the sum for `url`, or the total of all URLs if it is `None`.
    fn sum(&self, url: Option<&str>, sum: Sum) -> io::Result<()> {
        match self.context.options.json {
            true => self.context.output.json(&UsageRecord::new(url, sum.objects, sum.bytes)),
            false => self.line(sum.bytes, url.unwrap_or("total")),
        }
    }

    fn line(&self, bytes: u64, url: &str) -> io::Result<()> {
        let shown = if self.terminal { printable(url) } else { url.to_owned() };
        self.context.output.line(&line::usage(bytes, &shown, self.du.readable_sizes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(key: &str, objects: &[(&str, u64)]) -> Vec<(String, u64, u64)> {
        let mut folders = FolderSums::of(key);
        let mut ended = Vec::new();
        for (key, bytes) in objects {
            ended.extend(folders.add(key, *bytes).expect("in order"));
        }
        ended.extend(std::iter::from_fn(|| folders.close()));
        ended.into_iter().map(|(folder, sum)| (folder, sum.objects, sum.bytes)).collect()
    }

    #[test]
    fn folders_end_with_what_is_in_them_innermost_first() {
        let objects = [("p/a", 1), ("p/b/c/d", 2), ("p/b/e", 4), ("p/f//g", 8)];
        let expected = [("p/b/c/", 1, 2), ("p/b/", 2, 6), ("p/f//", 1, 8), ("p/f/", 1, 8), ("p/", 4, 15)];
        let expected = expected.map(|(folder, objects, bytes)| (folder.to_owned(), objects, bytes));
        for key in ["", "p", "p/"] {
            assert_eq!(sums(key, &objects), expected, "{key}");
        }
        assert_eq!(sums("p/*", &objects), expected[..4]);
        assert_eq!(sums("p/b", &objects[1..3]), expected[..2]);
        assert_eq!(sums("p/b/e", &objects[2..3]), []);
    }

    #[test]
    fn what_comes_in_no_order_is_not_taken_for_whole_folders() {
        let mut folders = FolderSums::of("");
        assert!(folders.add("b/1", 1).is_some() && folders.add("a/1", 1).is_none());
    }
}
