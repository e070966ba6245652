//! URLs for those who have no credentials.

use std::time::{Duration, SystemTime};

use laneway_store::{Method, SignOptions, SignedUrl};

use super::call::{callable, within};
use crate::{Bucket, Error};

/// How long a URL lasts when nobody says, as `aws s3 presign` and `gcloud storage sign-url` have it.
const EXPIRES: Duration = Duration::from_secs(3600);

/// Signs a URL of an object; made by [`Bucket::sign`].
#[derive(Clone, Debug)]
#[must_use = "a call does nothing until it is awaited"]
pub struct Sign {
    pub(super) bucket: Bucket,
    pub(super) deadline: Option<Duration>,
    key: String,
    options: SignOptions,
    now: Option<SystemTime>,
}

impl Bucket {
    /// A URL by which whoever holds it may make one kind of request for the object until it ends: a read for an hour, unless
    /// [`method`](Sign::method) and [`expires`](Sign::expires) say otherwise. The store isn't asked: a URL may be signed of an
    /// object that isn't there yet, and allows nothing that the credentials don't.
    ///
    /// S3's are signed by the credentials in use (Signature Version 4), and end with them where they are temporary. GCS's are signed by a service
    /// account's key, or by IAM for the account of this machine or one that is impersonated (`roles/iam.serviceAccountTokenCreator`);
    /// a person's login signs none.
    ///
    /// ```
    /// # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
    /// # server.create_bucket("lake").expect("a bucket");
    /// # let key = laneway::AccessKey::new("laneway", "lanewaysecret");
    /// # let client = laneway::Client::builder().access_key(key).s3_endpoint(server.url()).build()?;
    /// # pollster::block_on(async {
    /// # let bucket = client.bucket("s3://lake/")?;
    /// use std::time::Duration;
    ///
    /// bucket.put("notes.txt", "one line\n").await?;
    /// let signed = bucket.sign("notes.txt").expires(Duration::from_secs(600)).await?;
    /// assert!(signed.url.contains("/lake/notes.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&"));
    /// assert_eq!(signed.ends_early, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sign(&self, key: &str) -> Sign {
        let options = SignOptions { expires: EXPIRES, ..SignOptions::default() };
        Sign { bucket: self.clone(), deadline: None, key: key.to_owned(), options, now: None }
    }
}

callable!(Sign, SignedUrl);

impl Sign {
    /// What the URL may be asked with; [`Method::Get`] unless it is set.
    pub fn method(mut self, method: Method) -> Self {
        self.options.method = method;
        self
    }

    /// For how long, 1 s to 7 days; parts of seconds are cut off. An hour unless it is set.
    pub fn expires(mut self, time: Duration) -> Self {
        self.options.expires = time;
        self
    }

    /// A header that whoever uses the URL has to send exactly so; may be called several times.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.options.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A name of the query, such as `versionId`, `generation` or `response-content-disposition`; may be called several times.
    pub fn query(mut self, name: &str, value: &str) -> Self {
        self.options.query.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Signs as if it were this time, instead of when the call runs: the same URL comes out for the same time, where keys sign.
    pub fn at(mut self, time: SystemTime) -> Self {
        self.now = Some(time);
        self
    }

    async fn run(self) -> Result<SignedUrl, Error> {
        let (store, id) = (self.bucket.store()?, self.bucket.id(&self.key)?);
        within(self.deadline, &self.bucket.url_of(&self.key), async {
            let now = self.now.unwrap_or_else(SystemTime::now);
            Ok(store.sign(&id, &self.options, now).await?)
        })
        .await
    }
}
