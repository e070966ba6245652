//! Measures a DataFusion query that reads 8 of the 50 columns of a table of 64 Parquet files. It reads them over
//! Laneway's store, over object_store's own S3 client, and from local files, which show the time of the query itself.
//! The benchmark runs against any S3 store:
//!
//! ```text
//! laneway serve --bucket lake --rtt 20ms &
//! export AWS_ACCESS_KEY_ID=laneway AWS_SECRET_ACCESS_KEY=lanewaysecret CARGO_TARGET_DIR=$PWD/target/datafusion
//! cargo bench --manifest-path bindings/object-store/datafusion/Cargo.toml -- http://127.0.0.1:9010 lake [MIB] [ROUNDS]
//! ```
//!
//! `MIB` is the size of all files together (1024 by default). The benchmark writes the files to memory and uploads them
//! first. In each of `ROUNDS` rounds (3 by default), each reader runs once, in a new process that knows only the
//! table's URL. The measured time includes the listing of the table.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use laneway::{Bucket, Client};
use laneway_object_store::v0_13::LanewayStore;
use object_store::ObjectStore;
use object_store::aws::AmazonS3Builder;

const REGION: &str = "us-east-1";
const PREFIX: &str = "datafusion-bench/";
const FILES: u64 = 64;
const COLUMNS: u64 = 50;
const QUERY: &str =
    "SELECT sum(c03), sum(c09), sum(c15), sum(c21), sum(c27), sum(c33), sum(c39), sum(c45) FROM t";
const READINGS: [&str; 3] = ["local", "laneway", "object_store"];

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["read", name, endpoint, bucket, folder] => read(name, endpoint, bucket, folder),
        [endpoint, bucket] => compare(endpoint, bucket, 1024, 3),
        [endpoint, bucket, mib] => compare(endpoint, bucket, mib.parse()?, 3),
        [endpoint, bucket, mib, rounds] => compare(endpoint, bucket, mib.parse()?, rounds.parse()?),
        _ => Err("ENDPOINT BUCKET [MIB] [ROUNDS]".into()),
    }
}

/// The time and the number of connections of one run.
struct Row {
    seconds: f64,
    processor_s: f64,
    connections: f64,
}

fn compare(endpoint: &str, bucket: &str, mib: u64, rounds: usize) -> Outcome<()> {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let folder = parent.join(format!("laneway-datafusion-{}", std::process::id()));
    fs::create_dir(&folder)?;
    let measured = write(&folder, mib)
        .and_then(|()| put(endpoint, bucket, &folder))
        .and_then(|()| take_turns(endpoint, bucket, &folder, rounds));
    fs::remove_dir_all(&folder)?;
    println!("{:14}{:>10}{:>8}{:>8}{:>8}{:>8}", "", "median s", "min", "max", "CPU s", "conns");
    for (name, rows) in READINGS.iter().zip(measured?) {
        let sorted = |of: fn(&Row) -> f64| {
            let mut values: Vec<f64> = rows.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let (seconds, middle) = (sorted(|row| row.seconds), rows.len() / 2);
        println!(
            "{name:14}{:10.3}{:8.3}{:8.3}{:8.2}{:8}",
            seconds[middle],
            seconds[0],
            seconds[rows.len() - 1],
            sorted(|row| row.processor_s)[middle],
            sorted(|row| row.connections)[middle],
        );
    }
    Ok(())
}

/// Writes files of numbers that don't compress, each with one row group.
fn write(folder: &Path, mib: u64) -> Outcome<()> {
    let rows = (mib << 20) / (FILES * COLUMNS * 8);
    let properties = WriterProperties::builder().set_dictionary_enabled(false).build();
    let mut state = 7_u64;
    let mut number = || {
        // The linear congruential generator of Knuth's MMIX. Only the upper 32 bits are used, so sums over all rows
        // stay far below 2^63.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as i64
    };
    for file in 0..FILES {
        let columns = (0..COLUMNS).map(|column| {
            let numbers = Int64Array::from_iter_values((0..rows).map(|_| number()));
            (format!("c{column:02}"), Arc::new(numbers) as ArrayRef)
        });
        let batch = RecordBatch::try_from_iter(columns)?;
        let file = File::create(folder.join(format!("{file:02}.parquet")))?;
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties.clone()))?;
        writer.write(&batch)?;
        writer.close()?;
    }
    Ok(())
}

fn lake(endpoint: &str, bucket: &str) -> Outcome<Bucket> {
    let client = Client::builder().s3_endpoint(endpoint).region(REGION).build()?;
    Ok(client.bucket(&format!("s3://{bucket}/"))?)
}

fn put(endpoint: &str, bucket: &str, folder: &Path) -> Outcome<()> {
    let bucket = lake(endpoint, bucket)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
    runtime.block_on(async {
        for entry in fs::read_dir(folder)? {
            let path: PathBuf = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).ok_or("a file's name isn't UTF-8")?;
            bucket.put(&format!("{PREFIX}{name}"), fs::read(&path)?).await?;
        }
        Ok(())
    })
}

fn take_turns(endpoint: &str, bucket: &str, folder: &Path, rounds: usize) -> Outcome<[Vec<Row>; 3]> {
    let folder = folder.to_str().ok_or("the folder's name isn't UTF-8")?;
    let mut rows = [const { Vec::new() }; 3];
    let mut expected: Option<String> = None;
    for _ in 0..rounds {
        for (name, rows) in READINGS.iter().zip(&mut rows) {
            let mut reading = Command::new(std::env::current_exe()?);
            reading.args(["read", name, endpoint, bucket, folder]).stderr(Stdio::inherit());
            let text = String::from_utf8(reading.output()?.stdout)?;
            let (figures, answer) = text.split_once('\n').ok_or_else(|| format!("{name} failed"))?;
            if expected.get_or_insert_with(|| answer.to_owned()) != answer {
                return Err(format!("{name} gives another result of the query:\n{answer}").into());
            }
            let figures: Vec<f64> = figures.split(' ').map(str::parse).collect::<Result<_, _>>()?;
            let &[seconds, processor_s, connections] = &figures[..] else {
                return Err(format!("{name} printed {figures:?} instead of seconds, CPU seconds and connections").into());
            };
            rows.push(Row { seconds, processor_s, connections });
        }
    }
    Ok(rows)
}

/// Runs the query, and prints its times, its number of connections and its result.
fn read(name: &str, endpoint: &str, bucket: &str, folder: &str) -> Outcome<()> {
    let context = SessionContext::new();
    let there = format!("s3://{bucket}/");
    let store: Option<Arc<dyn ObjectStore>> = match name {
        "laneway" => Some(Arc::new(LanewayStore::new(lake(endpoint, bucket)?))),
        "object_store" => {
            let store = AmazonS3Builder::from_env()
                .with_endpoint(endpoint)
                .with_allow_http(true)
                .with_region(REGION)
                .with_bucket_name(bucket);
            Some(Arc::new(store.build()?))
        }
        _ => None,
    };
    let table = match store {
        Some(store) => {
            context.register_object_store(ObjectStoreUrl::parse(&there)?.as_ref(), store);
            format!("{there}{PREFIX}")
        }
        None => format!("{folder}/"),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (opened, processor_s, began) = (connections()?, processor_s()?, Instant::now());
    let rows = runtime.block_on(async {
        context.register_parquet("t", &table, ParquetReadOptions::default()).await?;
        context.sql(QUERY).await?.collect().await
    })?;
    let seconds = began.elapsed().as_secs_f64();
    let (opened, processor_s) = (connections()? - opened, self::processor_s()? - processor_s);
    let answer = pretty_format_batches(&rows)?;
    Ok(writeln!(std::io::stdout(), "{seconds} {processor_s} {opened}\n{answer}")?)
}

/// Returns the number of TCP connections that this network namespace has opened since its start. Run the benchmark in a
/// namespace of its own, so that no other program's connections are counted.
fn connections() -> Outcome<u64> {
    let counters = fs::read_to_string("/proc/net/snmp")?;
    let mut lines = counters.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = lines.next().zip(lines.next()).ok_or("/proc/net/snmp has no counters of TCP")?;
    let of_name = names.split(' ').zip(values.split(' ')).find(|(name, _)| *name == "ActiveOpens");
    Ok(of_name.ok_or("/proc/net/snmp has no counter `ActiveOpens`")?.1.parse()?)
}

/// Returns the CPU time that this process has used, in seconds.
fn processor_s() -> Outcome<f64> {
    let ran = fs::read_to_string("/proc/self/stat")?;
    // Fields 14 and 15 are the user and system time in hundredths of a second (proc_pid_stat(5)). The split at `)`
    // skips the program's name, which may contain spaces.
    let fields: Vec<&str> = ran.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let hundredths: f64 =
        fields.get(11..13).ok_or("/proc/self/stat has too few fields")?.iter().flat_map(|n| n.parse::<f64>()).sum();
    Ok(hundredths / 100.0)
}
