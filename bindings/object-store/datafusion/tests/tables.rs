//! DataFusion reads Parquet through Laneway's store, and writes tables of many files through it.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use laneway::Client;
use laneway_object_store::v0_13::LanewayStore;
use laneway_server::{Config, Server};

const BUCKETS: [&str; 2] = ["s3://lake/", "gs://lake/"];
const FILES: i64 = 5;
const ROWS: i64 = 10_000;

/// Runs a scenario in both dialects, each on its own server.
fn on_both(scenario: impl AsyncFn(&Server, &str)) {
    for bucket in BUCKETS {
        let server = Server::start(Config::default()).expect("a server");
        server.create_bucket("lake").expect("a bucket");
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
        runtime.block_on(scenario(&server, bucket));
    }
}

/// Returns a session whose store is a bucket of the server, in either dialect.
fn session(server: &Server, bucket: &str) -> SessionContext {
    let client = Client::builder().anonymous(true).s3_endpoint(server.url()).gcs_endpoint(server.url());
    let client = client.build().expect("a client");
    let store = LanewayStore::new(client.bucket(bucket).expect("a bucket"));
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(4));
    let url = ObjectStoreUrl::parse(bucket).expect("a store's URL");
    context.register_object_store(url.as_ref(), Arc::new(store));
    context
}

/// Returns the rows of one file: numbers that continue from the previous file, each with its remainder by three.
fn rows(file: i64) -> RecordBatch {
    let numbers = file * ROWS..(file + 1) * ROWS;
    let names = numbers.clone().map(|n| ["zero", "one", "two"][(n % 3) as usize]);
    let columns: [(&str, ArrayRef); 2] = [
        ("n", Arc::new(Int64Array::from_iter_values(numbers.clone()))),
        ("name", Arc::new(StringArray::from_iter_values(names))),
    ];
    RecordBatch::try_from_iter(columns).expect("rows")
}

/// Writes a table, one file at a time.
async fn write_table(context: &SessionContext, table: &str) {
    for file in 0..FILES {
        let frame = context.read_batch(rows(file)).expect("a frame");
        let options = DataFrameWriteOptions::new().with_single_file_output(true);
        let path = format!("{table}part-{file}.parquet");
        frame.write_parquet(&path, options, None).await.expect("it is written");
    }
}

async fn shown(context: &SessionContext, query: &str) -> String {
    let frame = context.sql(query).await.expect("a plan");
    pretty_format_batches(&frame.collect().await.expect("rows")).expect("text").to_string()
}

#[test]
fn a_query_reads_a_table_of_many_files_that_was_written_through_the_store() {
    on_both(async |server, bucket| {
        let context = session(server, bucket);
        let table = format!("{bucket}table/");
        write_table(&context, &table).await;
        // Another session, which knows only the store.
        let context = session(server, bucket);
        context.register_parquet("t", &table, ParquetReadOptions::default()).await.expect("a table");
        let query =
            "SELECT name, count(*) AS rows, sum(n) AS sum FROM t WHERE n >= 9999 GROUP BY name ORDER BY name";
        let expected = |rest: i64| {
            let left = (9999..FILES * ROWS).filter(|n| n % 3 == rest);
            (left.clone().count(), left.sum::<i64>())
        };
        let lines = ["one", "two", "zero"].into_iter().zip([1, 2, 0]).map(|(name, rest)| {
            let (rows, sum) = expected(rest);
            format!("| {name:<4} | {rows} | {sum} |")
        });
        let answer = shown(&context, query).await;
        let rows: Vec<_> = answer.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
        assert_eq!(rows, lines.collect::<Vec<_>>(), "{answer}");
    });
}

#[test]
fn a_table_that_a_query_writes_is_partitioned_and_read_back() {
    on_both(async |server, bucket| {
        let context = session(server, bucket);
        write_table(&context, &format!("{bucket}table/")).await;
        let of = |table: &str| format!("STORED AS PARQUET LOCATION '{bucket}{table}/'");
        shown(&context, &format!("CREATE EXTERNAL TABLE t {}", of("table"))).await;
        let copy = format!("COPY t TO '{bucket}by-name/' STORED AS PARQUET PARTITIONED BY (name)");
        let copied = shown(&context, &copy).await;
        assert!(copied.contains(&(FILES * ROWS).to_string()), "{copied}");
        let other = session(server, bucket);
        let create = format!(
            "CREATE EXTERNAL TABLE t (n BIGINT, name VARCHAR) STORED AS PARQUET PARTITIONED BY (name) LOCATION '{bucket}by-name/'"
        );
        shown(&other, &create).await;
        let answer = shown(&other, "SELECT count(*) AS c, max(n) AS m FROM t WHERE name = 'one'").await;
        let ones = (0..FILES * ROWS).filter(|n| n % 3 == 1);
        let (count, last) = (ones.clone().count(), ones.max().expect("some"));
        assert!(answer.contains(&format!("| {count} | {last} |")), "{answer}");
    });
}
