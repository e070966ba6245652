//! Where a benchmark takes place: the embedded store, or one elsewhere.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, ValueEnum};
use laneway::{Location, Provider};
use laneway_experiments::{Imitated, Remote, Target};

use crate::context::Context;
use crate::exit::BadUsage;

/// The store that a benchmark uses.
#[derive(Args, Clone, Default, Debug)]
pub(super) struct Place {
    /// Bucket or prefix to work in, instead of a store in this process
    #[arg(value_name = "URL")]
    target: Option<OsString>,
    /// Use this server, which speaks GCS's JSON API, or S3's with an s3:// URL
    ///
    /// Without a URL of a bucket, Laneway creates a bucket there.
    ///
    /// Example: laneway bench ladder --endpoint http://localhost:4443
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// Imitate this round trip to the store in this process [default: 20ms]
    #[arg(long, value_name = "TIME", value_parser = laneway_quantity::parse_duration,
          conflicts_with_all = ["target", "endpoint"])]
    rtt: Option<Duration>,
    /// Imitate this rate in each direction, shared by all connections: 100MB/s [default: 1Gbit/s]
    #[arg(long, value_name = "RATE", value_parser = laneway_quantity::parse_rate,
          conflicts_with_all = ["target", "endpoint"])]
    bandwidth: Option<u64>,
    /// Queue at most this many bytes before that bandwidth [default: one round trip's]
    #[arg(long, value_name = "SIZE", value_parser = laneway_quantity::parse_size,
          conflicts_with_all = ["target", "endpoint"])]
    queue: Option<u64>,
    /// Lose this share of packets: 0.5%
    #[arg(long, value_name = "PERCENT", value_parser = laneway_quantity::parse_loss,
          conflicts_with_all = ["target", "endpoint"])]
    loss: Option<f64>,
    /// Limit each connection to this rate: 90MB/s
    #[arg(long, value_name = "RATE", value_parser = laneway_quantity::parse_rate,
          conflicts_with_all = ["target", "endpoint"])]
    connection_bandwidth: Option<u64>,
    /// Offer HTTP/1.1 only, as S3 does
    #[arg(long, conflicts_with_all = ["target", "endpoint"])]
    h1_only: bool,
}

/// Whose protocol is spoken with the store in this process.
#[derive(Clone, Copy, PartialEq, Eq, Default, ValueEnum, Debug)]
pub(super) enum Tongue {
    /// Google Cloud Storage's
    #[default]
    Gcs,
    /// Amazon S3's
    S3,
}

/// The protocol of the store in this process.
#[derive(Args, Clone, Copy, Default, Debug)]
pub(super) struct Spoken {
    /// Speak this protocol with the store in this process
    #[arg(long = "store", value_name = "STORE", value_enum, default_value_t)]
    pub(super) tongue: Tongue,
}

impl From<Tongue> for Provider {
    fn from(tongue: Tongue) -> Self {
        match tongue {
            Tongue::Gcs => Self::Gcs,
            Tongue::S3 => Self::S3,
        }
    }
}

impl Place {
    /// Returns whether an option says over which link the store in this process is reached.
    pub(super) fn names_a_link(&self) -> bool {
        let Self { rtt, bandwidth, queue, loss, connection_bandwidth, .. } = self;
        rtt.is_some() || bandwidth.or(*queue).or(*connection_bandwidth).is_some() || loss.is_some()
    }

    /// The store that the options and variables name.
    ///
    /// # Errors
    /// For what names no bucket of a store.
    pub(super) fn target(&self, context: &Context, tongue: Tongue) -> anyhow::Result<Target> {
        let place = self.target.as_deref().map(Location::parse).transpose()?;
        let (provider, bucket, prefix) = match place {
            None => (Provider::from(tongue), None, String::new()),
            Some(Location::Object { provider, bucket, key }) if !bucket.is_empty() => {
                (provider, Some(bucket), key)
            }
            Some(place) => {
                let why = "a benchmark works in gs://bucket/prefix or s3://bucket/prefix";
                return Err(BadUsage::of(place.to_string(), why).into());
            }
        };
        let options = &context.options;
        let region = options.region.clone().or_else(|| variable(&["AWS_REGION", "AWS_DEFAULT_REGION"]));
        let region = region.unwrap_or_else(|| Remote::REGION.to_owned());
        let (option, variables) = match provider {
            Provider::Gcs => (&options.gcs_endpoint, &["STORAGE_EMULATOR_HOST"][..]),
            _ => (&options.s3_endpoint, &["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"][..]),
        };
        let endpoint = self.endpoint.clone().or_else(|| option.clone());
        if endpoint.is_none() && bucket.is_none() {
            return Ok(Target::Embedded(Imitated {
                rtt: self.rtt.unwrap_or(Imitated::USUAL.rtt),
                bandwidth: self.bandwidth.or(Imitated::USUAL.bandwidth),
                queue: self.queue,
                loss: self.loss.unwrap_or_default(),
                connection_bandwidth: self.connection_bandwidth,
                h1_only: self.h1_only,
                provider,
            }));
        }
        if provider == Provider::S3 && bucket.is_none() {
            return Err(BadUsage::new("s3://bucket: a bucket of the endpoint has to be named").into());
        }
        let endpoint = endpoint.or_else(|| variable(variables)).unwrap_or_else(|| match provider {
            Provider::Gcs => Remote::GOOGLE.to_owned(),
            _ => format!("https://s3.{region}.amazonaws.com"),
        });
        Ok(Target::Remote(Remote {
            provider,
            bucket,
            prefix,
            region,
            anonymous: options.anonymous,
            ca_files: options.ca_certs.clone(),
            ..Remote::gcs(endpoint)
        }))
    }
}

fn variable(names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
}
