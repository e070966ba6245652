//! `restore`: RestoreObject, for the classes GLACIER and DEEP_ARCHIVE and the archive tiers of INTELLIGENT_TIERING
//! (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_RestoreObject.html>).

use bytes::Bytes;
use http::{Method, StatusCode};
use laneway_lanes::Body;

use super::S3;
use super::head::object_target;
use crate::checksum::{encode_md5, md5_of};
use crate::encode::{QueryString, xml_text};
use crate::exchange::{Exchange, Outgoing};
use crate::{Error, ErrorKind, ObjectId, Operation, Restoration, RestoreOptions};

const UNDER_WAY: &str = "RestoreAlreadyInProgress";

fn request(id: &ObjectId, options: &RestoreOptions) -> Result<Outgoing, String> {
    let days = options.days.map(|days| format!("<Days>{days}</Days>")).unwrap_or_default();
    let tier = match options.tier.as_deref() {
        Some(tier) => {
            let tier = xml_text(tier).ok_or("the tier holds control characters")?;
            format!("<GlacierJobParameters><Tier>{tier}</Tier></GlacierJobParameters>")
        }
        None => String::new(),
    };
    let document = format!(
        "<RestoreRequest xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">{days}{tier}</RestoreRequest>"
    );
    let mut outgoing = Outgoing::new(Method::POST, object_target(id, &QueryString::new().and("restore", "")));
    outgoing.body = Body::from(Bytes::from(document));
    let md5 = md5_of(&outgoing.body).map(encode_md5);
    outgoing
        .header("content-type", "application/xml")
        .and_then(|outgoing| outgoing.header_some("content-md5", md5.as_deref()))
        .map_err(|e| e.to_string())
}

/// Reads the outcome of a request for a restoration.
fn outcome(answered: Result<StatusCode, Error>) -> Result<Restoration, Error> {
    match answered {
        Ok(StatusCode::ACCEPTED) => Ok(Restoration::Begun),
        Ok(_) => Ok(Restoration::Readable),
        // The answer to the first attempt was lost.
        Err(error) if error.code() == Some(UNDER_WAY) && error.is_uncertain() => Ok(Restoration::Begun),
        Err(error) if error.code() == Some(UNDER_WAY) => Ok(Restoration::UnderWay),
        // For a restoration, this error code means that the object isn't in an archive. For a read, the same code means
        // that it is in one.
        Err(error) if error.kind() == ErrorKind::Archived => Ok(Restoration::NotNeeded),
        Err(error) => Err(error),
    }
}

impl S3 {
    pub(crate) async fn restore_object(
        &self,
        id: &ObjectId,
        options: &RestoreOptions,
    ) -> Result<Restoration, Error> {
        let exchange = Exchange::object(self, Operation::Restore, id);
        let outgoing = request(id, options).map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        outcome(exchange.send(&outgoing).await.map(|sent| sent.response.head.status))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restoration_names_days_and_tier_only_if_they_are_given() {
        let id = ObjectId::new("b", "k").at_version("7");
        let text = |options: RestoreOptions| {
            let outgoing = request(&id, &options).expect("a request");
            assert_eq!((outgoing.method, &*outgoing.target), (Method::POST, "/k?restore=&versionId=7"));
            assert!(outgoing.headers.contains_key("content-md5"));
            let Some(laneway_lanes::Segment::Memory(body)) = outgoing.body.segments().first().cloned() else {
                panic!("a document")
            };
            String::from_utf8(body.to_vec()).expect("a text")
        };
        let whole = text(RestoreOptions::default().days(2).tier("Bulk"));
        assert!(whole.ends_with(
            "\"><Days>2</Days><GlacierJobParameters><Tier>Bulk</Tier></GlacierJobParameters></RestoreRequest>"
        ));
        assert!(text(RestoreOptions::default()).ends_with("\"></RestoreRequest>"));
    }

    #[test]
    fn a_restoration_is_told_by_status_and_code() {
        let error = |kind, code: &str, is_uncertain| {
            let error = Error::new(kind, Operation::Restore, "").uncertain(is_uncertain);
            Err(error.answered(StatusCode::CONFLICT, Some(code.to_owned())))
        };
        for (answered, expected) in [
            (Ok(StatusCode::ACCEPTED), Restoration::Begun),
            (Ok(StatusCode::OK), Restoration::Readable),
            (error(ErrorKind::Invalid, UNDER_WAY, false), Restoration::UnderWay),
            (error(ErrorKind::Invalid, UNDER_WAY, true), Restoration::Begun),
            (error(ErrorKind::Archived, "InvalidObjectState", false), Restoration::NotNeeded),
        ] {
            assert_eq!(outcome(answered).expect("an outcome"), expected);
        }
        assert!(outcome(error(ErrorKind::Permission, "AccessDenied", false)).is_err());
    }
}
