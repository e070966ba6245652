//! The example commands that the long help and the manual show for each verb.

/// The examples of a verb: its name, then what each command does, and the command.
type Examples = (&'static str, &'static [(&'static str, &'static str)]);

const EXAMPLES: &[Examples] = &[
    (
        "cp",
        &[
            ("Upload a folder", "laneway cp -r photos gs://my-bucket/photos"),
            ("Download a prefix", "laneway cp -r s3://my-bucket/logs/2027 logs"),
            ("Continue after an interruption", "laneway cp -r -n photos gs://my-bucket/photos"),
            ("Copy between clouds", "laneway cp -r s3://my-bucket/data gs://other-bucket/data"),
            ("Copy matching files only", "laneway cp -r --include '*.jpg' photos gs://my-bucket/photos"),
            ("Upload what another program prints", "tar c photos | laneway cp - gs://my-bucket/photos.tar"),
        ],
    ),
    (
        "ls",
        &[
            ("List all buckets", "laneway ls"),
            ("List one level with sizes", "laneway ls -lh gs://my-bucket/photos/"),
            ("List everything as JSON", "laneway ls -r --json s3://my-bucket"),
        ],
    ),
    (
        "du",
        &[
            ("Total of a bucket", "laneway du -sh gs://my-bucket"),
            ("Totals one folder deep", "laneway du -d 1 s3://my-bucket/logs"),
        ],
    ),
    (
        "stat",
        &[
            ("Show an object's metadata", "laneway stat gs://my-bucket/photo.jpg"),
            ("The same as JSON", "laneway stat --json 's3://my-bucket/*.jpg'"),
        ],
    ),
    (
        "cat",
        &[
            ("Print an object", "laneway cat gs://my-bucket/notes.txt"),
            ("Print the last 100 bytes", "laneway cat -r -100 s3://my-bucket/server.log"),
        ],
    ),
    (
        "rm",
        &[
            ("Remove one object", "laneway rm gs://my-bucket/photo.jpg"),
            ("Show what would be removed", "laneway rm -r --dry-run s3://my-bucket/old"),
            ("Remove a prefix without asking", "laneway rm -r -y s3://my-bucket/old"),
        ],
    ),
    (
        "mv",
        &[
            ("Rename an object", "laneway mv gs://my-bucket/a.jpg gs://my-bucket/b.jpg"),
            ("Move a folder into a bucket", "laneway mv -r logs s3://my-bucket/logs"),
        ],
    ),
    (
        "sync",
        &[
            ("Upload what changed", "laneway sync site gs://my-bucket/site"),
            ("Show what a mirror would do", "laneway sync -n --delete site gs://my-bucket/site"),
            ("Mirror, with removals", "laneway sync --delete site gs://my-bucket/site"),
            (
                "Sync what git changed",
                "git diff --name-only | laneway sync --delete --files-from - . gs://my-bucket/site",
            ),
        ],
    ),
    (
        "setmeta",
        &[
            (
                "Change a header below a prefix",
                "laneway setmeta -r --cache-control no-store gs://my-bucket/site",
            ),
            (
                "Add and remove metadata",
                "laneway setmeta --metadata team=data --remove-metadata stage s3://my-bucket/key",
            ),
        ],
    ),
    (
        "verify",
        &[
            ("Compare a folder with its copy", "laneway verify photos gs://my-bucket/photos"),
            (
                "Compare two clouds, with a report",
                "laneway verify --report report.csv s3://my-bucket/data gs://other-bucket/data",
            ),
        ],
    ),
    (
        "sign",
        &[
            ("Share an object for an hour", "laneway sign gs://my-bucket/photo.jpg"),
            ("Let somebody upload one", "laneway sign --method PUT --expires 15m s3://my-bucket/photo.jpg"),
        ],
    ),
    (
        "mb",
        &[
            ("Make a bucket on GCS", "laneway mb --project my-project --location EU gs://my-bucket"),
            ("Make a bucket on S3", "laneway mb --region eu-west-1 s3://my-bucket"),
        ],
    ),
    (
        "rb",
        &[
            ("Remove an empty bucket", "laneway rb gs://my-bucket"),
            ("Remove a bucket and its objects", "laneway rb --force s3://my-bucket"),
        ],
    ),
    ("hash", &[("Print a file's checksums", "laneway hash photo.jpg")]),
    (
        "run",
        &[
            ("Run a file of commands", "laneway run commands.txt"),
            ("Run commands that another program prints", "make-commands | laneway run -"),
        ],
    ),
    (
        "serve",
        &[
            ("Serve a bucket from memory", "laneway serve --bucket demo"),
            (
                "Imitate a distant store with TLS",
                "laneway serve --tls --rtt 50ms --bandwidth 1Gbit/s --bucket demo",
            ),
        ],
    ),
    ("demo", &[("Show the demo without writing a page", "laneway demo --no-report")]),
    ("bench", &[("Run all benchmarks", "laneway bench all")]),
    (
        "completions",
        &[(
            "Install completions for bash",
            "laneway completions bash > ~/.local/share/bash-completion/completions/laneway",
        )],
    ),
    (
        "man",
        &[
            ("Read the page of a verb", "laneway man cp | man -l -"),
            ("Install all pages", "laneway man --dir ~/.local/share/man/man1"),
        ],
    ),
    ("help", &[("Explain patterns", "laneway help patterns"), ("Explain a verb", "laneway help cp")]),
];

/// Returns the examples of a verb; none for a verb below another one.
pub(crate) fn of(verb: &str) -> &'static [(&'static str, &'static str)] {
    EXAMPLES.iter().find(|(name, _)| *name == verb).map_or(&[], |(_, examples)| examples)
}

/// Returns the examples as long help prints them.
pub(crate) fn help(verb: &str) -> String {
    let lines = of(verb).iter().map(|(does, command)| format!("\n  {does}:\n    {command}"));
    format!("Examples:{}", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments;

    /// Asserts that what follows `laneway` in a line, up to a pipe or a redirection, is understood.
    fn assert_understood(line: &str) {
        let words = shlex::split(line).expect("a command");
        let command = words.iter().skip_while(|word| *word != "laneway");
        let command: Vec<_> = command.take_while(|word| !["|", ">"].contains(&word.as_str())).collect();
        assert!(command.len() > 1, "{line}");
        if let Err(error) = arguments::parsed(&command) {
            panic!("{line}: {error}");
        }
    }

    #[test]
    fn every_example_of_an_option_is_understood() {
        let mut found = 0;
        for verb in arguments::command().get_subcommands() {
            for help in verb.get_arguments().filter_map(|arg| arg.get_long_help()) {
                let help = help.to_string();
                for line in help.lines().filter_map(|line| line.strip_prefix("Example: ")) {
                    if line.contains("laneway ") {
                        assert_understood(line);
                        found += 1;
                    }
                }
            }
        }
        assert!(found > 100, "{found}");
    }

    #[test]
    fn every_verb_has_examples_and_each_is_understood() {
        for verb in arguments::command().get_subcommands() {
            let examples = of(verb.get_name());
            assert!(!examples.is_empty(), "{}", verb.get_name());
            for (_, line) in examples {
                assert_understood(line);
            }
        }
    }
}
