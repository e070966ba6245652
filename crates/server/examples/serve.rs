//! A server for trying clients by hand: prints its URL, writes its CA, and runs until it is killed.
//!
//! `cargo run -p laneway-server --example serve -- [--root DIR] [--listen ADDR] [--tls CA-FILE] [--bucket NAME]...
//! [--rtt 50ms] [--bandwidth 1Gbit/s] [--queue 1MiB] [--loss 0.5%] [--connection-bandwidth 90MB/s]
//! [--served-connections 4]
//! [--fault RULE]...`

use std::error::Error;

use laneway_quantity::{parse_duration, parse_loss, parse_rate, parse_size};
use laneway_server::{Config, Server, Storage, Tls, parse_fault};

fn main() -> Result<(), Box<dyn Error>> {
    let mut config = Config::default();
    let mut ca_file = None;
    let mut buckets = Vec::new();
    let mut words = std::env::args().skip(1);
    while let Some(option) = words.next() {
        let value = words.next().ok_or_else(|| format!("{option} needs a value"))?;
        match option.as_str() {
            "--root" => config.storage = Storage::Disk(value.into()),
            "--listen" => config.listen = value.parse()?,
            "--tls" => {
                config.tls = Some(Tls::Generated);
                ca_file = Some(value);
            }
            "--bucket" => buckets.push(value),
            "--rtt" => config.rtt = parse_duration(&value)?,
            "--bandwidth" => config.bandwidth = Some(parse_rate(&value)?),
            "--queue" => config.queue = Some(parse_size(&value)?),
            "--connection-bandwidth" => config.connection_bandwidth = Some(parse_rate(&value)?),
            "--served-connections" => config.served_connections = Some(value.parse()?),
            "--loss" => config.loss = parse_loss(&value)?,
            "--fault" => config.faults.rules.push(parse_fault(&value)?),
            _ => return Err(format!("unknown option {option}").into()),
        }
    }
    let server = Server::start(config)?;
    for bucket in &buckets {
        server.create_bucket(bucket)?;
    }
    if let (Some(file), Some(pem)) = (ca_file, server.ca_pem()) {
        std::fs::write(file, pem)?;
    }
    println!("{}", server.url());
    loop {
        std::thread::park();
    }
}
