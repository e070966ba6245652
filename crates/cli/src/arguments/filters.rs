//! Options that select sources. Filters such as `--include` and `--exclude` apply in the order of the command line. An
//! inventory or a file of names replaces the listing, and ranges select bytes of an object.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use laneway::{ByteRange, Filter, Location, Retention};
use laneway_quantity as quantity;

use crate::exit::BadUsage;

/// The heading of these options in help.
const HEADING: &str = "Filters";

/// The options. The rules keep the order of the command line, because the first match wins.
#[derive(Clone, Default, Debug)]
pub(crate) struct FilterOptions {
    rules: Vec<FilterRule>,
    min_size: Option<u64>,
    max_size: Option<u64>,
    newer: Option<TimeOrAge>,
    older: Option<TimeOrAge>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum FilterRule {
    Include(String),
    Exclude(String),
    ExcludeFrom(PathBuf),
}

/// A point in time, or an age.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TimeOrAge {
    At(SystemTime),
    Ago(Duration),
}

impl TimeOrAge {
    fn read(text: &str) -> Result<Self, String> {
        if let Ok(ago) = quantity::parse_duration(text) {
            return Ok(Self::Ago(ago));
        }
        Retention::time(text).map(Self::At).ok_or_else(|| {
            "write a time as 2027-01-31 or 2027-01-31T12:00:00Z, or an age as 36h or 7d".to_owned()
        })
    }

    fn time(self, now: SystemTime) -> SystemTime {
        match self {
            Self::At(time) => time,
            Self::Ago(ago) => now.checked_sub(ago).unwrap_or(SystemTime::UNIX_EPOCH),
        }
    }
}

impl FilterOptions {
    pub(crate) fn is_empty(&self) -> bool {
        let Self { rules, min_size, max_size, newer, older } = self;
        rules.is_empty() && min_size.is_none() && max_size.is_none() && newer.is_none() && older.is_none()
    }

    /// Returns whether a time is given as an age, so that it depends on the present time.
    pub(crate) fn has_age(&self) -> bool {
        [self.newer, self.older].into_iter().flatten().any(|time| matches!(time, TimeOrAge::Ago(_)))
    }

    /// Returns the filter. Reads files of rules, and counts ages back from `now`.
    ///
    /// # Errors
    /// Fails if a pattern is invalid, a file can't be read, or a line of it is invalid.
    pub(crate) fn filter(&self, now: SystemTime) -> anyhow::Result<Filter> {
        let mut filter = Filter::default();
        for rule in &self.rules {
            filter = match rule {
                FilterRule::Include(glob) => filter.include(glob)?,
                FilterRule::Exclude(glob) => filter.exclude(glob)?,
                FilterRule::ExcludeFrom(path) => {
                    let named = || path.display().to_string();
                    let text = std::fs::read_to_string(path)
                        .map_err(|e| BadUsage::of(named(), format!("--exclude-from: {e}")))?;
                    filter.lines(&text).map_err(|e| BadUsage::of(named(), format!("--exclude-from: {e}")))?
                }
            };
        }
        if let Some(bytes) = self.min_size {
            filter = filter.min_size(bytes);
        }
        if let Some(bytes) = self.max_size {
            filter = filter.max_size(bytes);
        }
        if let Some(newer) = self.newer {
            filter = filter.newer(newer.time(now));
        }
        if let Some(older) = self.older {
            filter = filter.older(older.time(now));
        }
        Ok(filter)
    }
}

/// For each option: its name, the name of its value, the short help, and the text that the long help adds.
const OPTIONS: [(&str, &str, &str, &str); 7] = [
    (
        "include",
        "GLOB",
        "Include matching names; if all rules are --include, skip all other names",
        "Rules apply in order and the first match wins. If all rules are --include, Laneway skips names that match none of them. Repeat for more. `laneway help patterns` explains patterns. \
         Example: --include '*.jpg'",
    ),
    (
        "exclude",
        "GLOB",
        "Skip matching names, such as '*.tmp', /only-at-the-top or folder/",
        "Rules apply in order and the first match wins. Repeat for more. Example: --include keep.tmp --exclude '*.tmp'",
    ),
    (
        "exclude-from",
        "FILE",
        "Read rules from FILE, one per line",
        "Each line is an --exclude rule, or an --include rule if it begins with '+ '. Lines that begin with # or ; are comments. \
         Example: --exclude-from .laneway-ignore",
    ),
    ("min-size", "SIZE", "Skip everything smaller than SIZE, such as 1MiB", "Example: --min-size 1k"),
    ("max-size", "SIZE", "Skip everything larger than SIZE, such as 1MiB", "Example: --max-size 10G"),
    (
        "newer",
        "TIME",
        "Skip everything changed before TIME, a date or an age, such as 2027-01-31 or 7d",
        "TIME is a date, a time in UTC (2027-01-31T12:00:00Z) or an age (36h). Example: --newer 7d",
    ),
    (
        "older",
        "TIME",
        "Skip everything changed at or after TIME, a date or an age, such as 2027-01-31 or 7d",
        "TIME is a date, a time in UTC (2027-01-31T12:00:00Z) or an age (36h). Example: --older 2027-01-31",
    ),
];

fn parser(id: &str) -> ValueParser {
    match id {
        "exclude-from" => value_parser!(PathBuf),
        "min-size" | "max-size" => ValueParser::new(quantity::parse_size),
        "newer" | "older" => ValueParser::new(TimeOrAge::read),
        _ => value_parser!(String),
    }
}

impl Args for FilterOptions {
    fn augment_args(command: Command) -> Command {
        command.args(OPTIONS.map(|(id, value, help, more)| {
            let is_rule = matches!(id, "include" | "exclude" | "exclude-from");
            let action = if is_rule { ArgAction::Append } else { ArgAction::Set };
            let arg = Arg::new(id).long(id).value_name(value).help(help).action(action);
            let arg = arg.long_help(format!("{help}\n\n{}", more.replace(" Example: ", "\n\nExample: ")));
            let is_frequent = matches!(id, "include" | "exclude");
            let arg = arg.value_parser(parser(id)).help_heading(HEADING).hide_short_help(!is_frequent);
            match id {
                "newer" => arg.visible_alias("newer-than"),
                "older" => arg.visible_alias("older-than"),
                _ => arg,
            }
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for FilterOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut rules = Vec::new();
        let mut rule = |id: &str, rule: fn(String) -> FilterRule| {
            let values = matches.get_many::<String>(id).into_iter().flatten().cloned();
            rules.extend(matches.indices_of(id).into_iter().flatten().zip(values.map(rule)));
        };
        rule("include", FilterRule::Include);
        rule("exclude", FilterRule::Exclude);
        let files = matches.get_many::<PathBuf>("exclude-from").into_iter().flatten().cloned();
        rules.extend(
            matches.indices_of("exclude-from").into_iter().flatten().zip(files.map(FilterRule::ExcludeFrom)),
        );
        rules.sort_by_key(|(index, _)| *index);
        Ok(Self {
            rules: rules.into_iter().map(|(_, rule)| rule).collect(),
            min_size: matches.get_one("min-size").copied(),
            max_size: matches.get_one("max-size").copied(),
            newer: matches.get_one("newer").copied(),
            older: matches.get_one("older").copied(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The inventory that replaces a listing.
#[derive(Args, Clone, Default, Debug)]
pub(crate) struct InventoryOption {
    /// Read names from an inventory instead of listing the source
    ///
    /// FILE|URL is the manifest.json of S3 Inventory or of a Storage Insights report, or the output of `ls -r --json`.
    /// If manifest.json is a local file, its data files (CSV or Parquet) must be in the same folder or in ../data. If
    /// it is in a store, Laneway reads the data files from the keys that the manifest lists.
    ///
    /// Example: laneway cp -r --inventory manifest.json s3://my-bucket/data data
    #[arg(hide_short_help = true, long, value_name = "FILE|URL")]
    inventory: Option<OsString>,
}

impl InventoryOption {
    /// # Errors
    /// Fails if the option names neither a file nor an object.
    pub(crate) fn location(&self) -> Result<Option<Location>, laneway::Error> {
        self.inventory.as_deref().map(Location::parse).transpose()
    }
}

/// The option for a file of names.
#[derive(Args, Clone, Default, Debug)]
pub(crate) struct NamesFromOption {
    /// Read names from FILE (- for stdin), one per line, instead of listing the source
    ///
    /// The names are relative to SRC. For rm, the names are relative to URL. If no URL is given, each line is a whole URL. Laneway skips
    /// empty lines and lines that begin with # or ;. cp and rm accept no filters together with this option. sync applies its filters to the
    /// names.
    ///
    /// Example: laneway cp --files-from names.txt photos gs://my-bucket/photos
    #[arg(hide_short_help = true, long = "files-from", value_name = "FILE")]
    files_from: Option<OsString>,
}

impl NamesFromOption {
    pub(crate) fn is_some(&self) -> bool {
        self.files_from.is_some()
    }

    /// # Errors
    /// Fails if the option names neither a file nor `-`.
    pub(crate) fn location(&self) -> Result<Option<Location>, laneway::Error> {
        self.files_from.as_deref().map(Location::parse).transpose()
    }
}

/// One or more ranges in the order of the command line. They may overlap or repeat. A range that is named
/// twice is printed twice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RangeOptions(Vec<ByteRange>);

impl RangeOptions {
    /// Returns the ranges. There is at least one.
    pub(crate) fn as_slice(&self) -> &[ByteRange] {
        &self.0
    }
}

impl FromStr for RangeOptions {
    type Err = String;

    /// Parses `A-B,C-D`. A range may also be `A-` or `-N`. Spaces may follow commas (RFC 9110, section
    /// 14.1.1).
    fn from_str(text: &str) -> Result<Self, String> {
        let one = |part: &str| match part.trim() {
            "" => {
                Err("a range is missing: write ranges as A-B, A- or -N, with commas between them".to_owned())
            }
            part => part.parse().map_err(|error: laneway::Error| error.to_string()),
        };
        text.split(',').map(one).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn filters(line: &[&str]) -> Result<FilterOptions, clap::Error> {
        let command = FilterOptions::augment_args(Command::new("x").no_binary_name(true));
        command
            .try_get_matches_from(line)
            .map(|matches| FilterOptions::from_arg_matches(&matches).expect("they are there"))
    }

    fn filter(line: &[&str]) -> Filter {
        filters(line)
            .expect("it parses")
            .filter(UNIX_EPOCH + Duration::from_secs(1000))
            .expect("they make sense")
    }

    #[test]
    fn rules_keep_the_order_in_which_they_are_written() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("rules");
        std::fs::write(&file, "# none\n*.b\n").expect("written");
        let line = [
            "--include",
            "x.b",
            "--exclude-from",
            file.to_str().expect("UTF-8"),
            "--include=*.b",
            "--exclude=*",
        ];
        let filter = filter(&line);
        assert!(filter.takes("x.b", 0, None) && !filter.takes("y.b", 0, None) && !filter.takes("z", 0, None));
    }

    #[test]
    fn times_are_moments_or_so_long_ago() {
        let at = |s| Some(UNIX_EPOCH + Duration::from_secs(s));
        let (newer, older) = (filter(&["--newer", "100s"]), filter(&["--older-than", "1970-01-02"]));
        assert!(newer.takes("a", 0, at(900)) && !newer.takes("a", 0, at(899)));
        assert!(older.takes("a", 0, at(86_399)) && !older.takes("a", 0, at(86_400)));
        assert!(filters(&["--newer", "yesterday"]).is_err() && filters(&["--min-size", "big"]).is_err());
    }

    #[test]
    fn a_file_that_cannot_be_read_and_a_line_without_a_pattern_are_named() {
        let now = SystemTime::now();
        let missing = filters(&["--exclude-from", "/nonexistent/rules"]).expect("it parses").filter(now);
        assert!(missing.expect_err("it is missing").to_string().contains("/nonexistent/rules"));
        assert!(filters(&["--exclude", ""]).expect("it parses").filter(now).is_err());
    }

    fn read(text: &str) -> Result<Vec<String>, String> {
        text.parse::<RangeOptions>().map(|ranges| ranges.as_slice().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn ranges_stay_as_and_in_the_order_they_were_written() {
        for (text, expected) in [
            ("0-9", &["0-9"][..]),
            ("0-0,5-,-7", &["0-0", "5-", "-7"]),
            ("90-99, 0-9", &["90-99", "0-9"]),
            // A repeated range, a range inside another, and a range that overlaps another.
            ("0-9,0-9,3-4,5-20", &["0-9", "0-9", "3-4", "5-20"]),
        ] {
            assert_eq!(read(text).expect(text), expected);
        }
    }

    #[test]
    fn what_is_missing_reversed_or_no_range_is_refused() {
        for text in ["", ",", "0-9,", ",0-9", "0-9,,5-6"] {
            assert!(read(text).is_err_and(|why| why.contains("missing")), "{text:?}");
        }
        assert!(read("0-9,9-5").is_err_and(|why| why.contains("9-5") && why.contains("before it begins")));
        for text in ["5", "-", "0-9;3-4", "a-b", "0-9,x"] {
            assert!(read(text).is_err_and(|why| why.contains("A-B, A- or -N")), "{text:?}");
        }
    }
}
