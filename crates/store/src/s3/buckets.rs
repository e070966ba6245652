//! CreateBucket (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateBucket.html>) and DeleteBucket
//! (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucket.html>).

use bytes::Bytes;
use http::Method;
use laneway_lanes::Body;

use super::S3;
use crate::encode::xml_text;
use crate::exchange::{Exchange, Outgoing};
use crate::{Error, ErrorKind, NewBucket, Operation};

/// The region in which S3 creates a bucket if the request has no location constraint.
const WITHOUT_CONSTRAINT: &str = "us-east-1";

fn create(region: &str) -> Result<Outgoing, String> {
    let mut outgoing = Outgoing::new(Method::PUT, "");
    if region != WITHOUT_CONSTRAINT {
        let region = xml_text(region).ok_or("the location contains control characters")?;
        let document = format!(
            "<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
             <LocationConstraint>{region}</LocationConstraint></CreateBucketConfiguration>"
        );
        outgoing = outgoing.header("content-type", "application/xml").map_err(|e| e.to_string())?;
        outgoing.body = Body::from(Bytes::from(document));
    }
    Ok(outgoing)
}

impl S3 {
    pub(crate) async fn make_bucket(&self, bucket: &str, new: &NewBucket) -> Result<(), Error> {
        let exchange = Exchange::bucket(self, Operation::CreateBucket, bucket);
        let invalid = |e: &str| exchange.error(ErrorKind::Invalid, e);
        if new.storage_class.is_some() {
            return Err(invalid(
                "on S3 a bucket has no storage class; give the storage class when you write objects",
            ));
        }
        // Requests go to the endpoint of the configured region, and that endpoint can create buckets only in its own
        // region.
        let region = self.regions.of(bucket);
        if new.location.as_deref().is_some_and(|location| location != &*region) {
            return Err(invalid(&format!(
                "requests go to {region}, and its endpoint can't create buckets in other regions"
            )));
        }
        let outgoing = create(&region).map_err(|e| invalid(&e))?;
        exchange.send(&outgoing).await?;
        Ok(())
    }

    pub(crate) async fn remove_bucket(&self, bucket: &str) -> Result<(), Error> {
        let exchange = Exchange::bucket(self, Operation::DeleteBucket, bucket);
        exchange.send(&Outgoing::new(Method::DELETE, "")).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_of_another_region_than_the_first_names_it() {
        let first = create(WITHOUT_CONSTRAINT).expect("a request");
        assert!(first.body.is_empty() && first.method == Method::PUT && first.target.is_empty());
        let other = create("eu-west-1").expect("a request");
        assert!(!other.body.is_empty() && other.headers["content-type"] == "application/xml");
        assert!(create("\u{1}").is_err());
    }
}
