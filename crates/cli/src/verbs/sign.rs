//! `laneway sign`: creates URLs for users without credentials.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use laneway::{Client, Location, Method, SignedUrl};
use laneway_quantity::parse_duration;
use serde::Serialize;

use crate::arguments::key_value;
use crate::context::{Context, say};
use crate::exit::{Exit, OutcomeTally};
use crate::locations;
use crate::report::line::timestamp;

/// Create presigned URLs that let anyone read or write an object until they expire
#[derive(Args, Debug)]
pub(crate) struct SignVerb {
    /// Objects or patterns
    #[arg(value_name = "URL", required = true)]
    urls: Vec<OsString>,
    /// Let the URLs expire after TIME, such as 15m or 12h (at most 7d)
    ///
    /// If temporary credentials sign the URL, it expires no later than they do.
    ///
    /// Example: laneway sign --expires 15m s3://my-bucket/key
    #[arg(long, short, value_name = "TIME", value_parser = parse_duration, default_value = "1h")]
    expires: Duration,
    /// Allow this one method: GET, HEAD, PUT, POST or DELETE
    ///
    /// Example: laneway sign --method PUT s3://my-bucket/key
    #[arg(long, short, value_name = "METHOD", default_value_t = Method::Get)]
    method: Method,
    /// Add a query parameter; repeat for more
    ///
    /// Example: laneway sign --query response-content-disposition=attachment s3://my-bucket/key
    #[arg(long, value_name = "K=V", value_parser = key_value)]
    query: Vec<(String, String)>,
}

/// A signed URL, as the record of kind `signed_url`.
#[derive(Serialize, Debug)]
struct SignedUrlRecord<'a> {
    kind: &'static str,
    source: &'a str,
    method: &'static str,
    url: &'a str,
    expires_at: String,
    /// The reason why the URL may expire before the requested time.
    #[serde(skip_serializing_if = "Option::is_none")]
    ends_early: Option<&'a str>,
    /// Headers that the request must send.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<&'a str, &'a str>,
}

impl SignVerb {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let places = locations::remote(&self.urls)?;
        let client = context.client()?;
        let mut tally = OutcomeTally::default();
        for place in &places {
            let objects = match locations::objects(&client, place) {
                Ok(objects) => objects,
                Err(error) => {
                    context.fail(place, &error, &mut tally)?;
                    continue;
                }
            };
            for at in objects {
                match self.sign(&client, &at) {
                    Ok(signed) => {
                        tally.done();
                        self.print(context, &at, &signed)?;
                    }
                    Err(error) => context.fail(&at, &error, &mut tally)?,
                }
            }
        }
        context.print_stats(&client)?;
        Ok(tally.exit())
    }

    fn sign(&self, client: &Client, at: &Location) -> Result<SignedUrl, laneway::Error> {
        let (bucket, key) = match at {
            Location::Object { provider, bucket, key } => {
                (format!("{}://{bucket}", provider.scheme()), key.as_str())
            }
            // The location isn't an object. `Client::bucket` then fails, with an error that says so.
            other => (other.to_string(), ""),
        };
        let signing = client.bucket(&bucket)?.sign(key).method(self.method).expires(self.expires);
        self.query.iter().fold(signing, |signing, (name, value)| signing.query(name, value)).call()
    }

    fn print(&self, context: &Context, at: &Location, signed: &SignedUrl) -> anyhow::Result<()> {
        let source = at.to_string();
        if context.options.json {
            let headers =
                signed.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            context.output.json(&SignedUrlRecord {
                kind: "signed_url",
                source: &source,
                method: self.method.name(),
                url: &signed.url,
                expires_at: timestamp(signed.expires_at).unwrap_or_default(),
                ends_early: signed.ends_early,
                headers,
            })?;
            return Ok(());
        }
        context.output.line(&signed.url)?;
        if !context.options.quiet {
            if let Some(why) = signed.ends_early {
                say(&format!(
                    "laneway: {source}: the URL may expire at {}: {why}",
                    timestamp(signed.expires_at).unwrap_or_default()
                ));
            }
            for (name, value) in &signed.headers {
                say(&format!("laneway: {source}: send this header with the request: {name}: {value}"));
            }
        }
        Ok(())
    }
}
