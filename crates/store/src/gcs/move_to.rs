//! `rename`: moves an object within its bucket by one request, which GCS carries out in one step
//! (<https://cloud.google.com/storage/docs/json_api/v1/objects/move>).
//!
//! A copy can be repeated, but a move can't: if the answer to the first attempt is lost, the second attempt finds no
//! source. So every request names the source's generation. After an uncertain failure, Laneway looks at both names
//! before it returns.

use std::time::Instant;

use http::Method;

use super::Gcs;
use super::get::{object_path, read_resource};
use super::put::precondition;
use super::resource::FIELDS;
use crate::checksum::Comparison;
use crate::encode::{QueryString, component};
use crate::exchange::{Exchange, Outgoing};
use crate::{Condition, Error, ErrorKind, ObjectId, ObjectMeta, Operation, Provider, Version};

/// The words of GCS for a missing object. A server that lacks this request answers 404 with other words.
const NO_OBJECT: &str = "No such object";

/// The reason with which GCS refuses to remove an object that a retention protects.
const RETAINED: &str = "retentionPolicyNotMet";

fn request(from: &ObjectId, generation: u64, to: &ObjectId, onto: &Condition) -> Result<Outgoing, String> {
    let query = QueryString::new().and("ifSourceGenerationMatch", &generation.to_string());
    let query = precondition(query, onto)?.and("fields", FIELDS);
    let target = format!("{}/moveTo/o/{}{query}", object_path(from), component(&to.key));
    Ok(Outgoing::new(Method::POST, target))
}

/// The state of a move whose answer was lost.
enum LostMove {
    Made(Box<ObjectMeta>),
    NotMade,
    /// Laneway can't find out if the move was made. The text says what it found.
    Unknown(String),
}

/// Returns true if `now`, the object under the new name, is the result of moving `source`. It must have the same bytes
/// and the same description, and must have been written after the source. GCS numbers generations in the order of
/// writes, so a destination that is older than the source can't be the result.
fn is_result(source: &ObjectMeta, now: &ObjectMeta, onto: &Condition) -> bool {
    let (Some(Version::Generation(before)), Some(Version::Generation(after))) =
        (&source.version, &now.version)
    else {
        return false;
    };
    // The condition demanded this generation under the new name, so the object was there before.
    let was_there = matches!(onto, Condition::Matches(version) if now.version.as_ref() == Some(version));
    after > before
        && !was_there
        && now.size == source.size
        && now.checksums.compare(&source.checksums) == Comparison::Equal
        && description(now) == description(source)
}

/// Returns the metadata that a writer chooses and that a move keeps.
fn description(meta: &ObjectMeta) -> impl PartialEq {
    let ObjectMeta { content_type, content_encoding, cache_control, content_disposition, .. } = meta;
    let ObjectMeta { content_language, custom_time, metadata, .. } = meta;
    let headers = [content_type, content_encoding, cache_control, content_disposition, content_language];
    (headers, custom_time, metadata)
}

/// Returns true if the store refuses because a retention or a hold protects the object, and not because of the caller's
/// role.
fn is_about_protection(error: &Error) -> bool {
    error.code() == Some(RETAINED) || error.message().contains(" hold ")
}

impl Gcs {
    /// Moves an object in the generation that `source` names. Returns `None` if the caller must copy the object and
    /// remove the source instead. This is necessary between buckets, with a key for new objects, and if `source` has no
    /// generation or checksum. It is also necessary if the server or the caller's role doesn't permit this request.
    pub(crate) async fn move_object(
        &self,
        source: &ObjectMeta,
        to: &ObjectId,
        onto: &Condition,
    ) -> Result<Option<ObjectMeta>, Error> {
        let from = &source.id;
        let has_own_key = self.kms_key.is_some()
            || self.encryption.customer_key.is_some()
            || self.encryption.source_customer_key.is_some();
        let is_plain = from.bucket == to.bucket && from.key != to.key && from.version.is_none();
        let (Some(Version::Generation(generation)), Some(_)) = (&source.version, source.checksums.crc32c)
        else {
            return Ok(None);
        };
        if !is_plain || has_own_key || self.is_move_refused(&from.bucket) {
            return Ok(None);
        }
        let exchange = Exchange::object(self, Operation::Copy, to);
        let outgoing =
            request(from, *generation, to, onto).map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        let moved = match exchange.send(&outgoing).await {
            // Treat an unreadable answer as a lost one.
            Ok(sent) => {
                read_resource(&exchange, &sent, to, source.size).map_err(|error| error.uncertain(true))
            }
            Err(error) => Err(error),
        };
        let error = match moved {
            Ok(meta) => return Ok(Some(meta)),
            Err(error) => error,
        };
        if error.is_uncertain() {
            match Box::pin(self.lost_move(source, to, onto)).await {
                LostMove::Made(meta) => return Ok(Some(*meta)),
                LostMove::NotMade => {}
                LostMove::Unknown(found) => {
                    // A caller may skip an object after a failed precondition, but this object may have been moved. So
                    // report another kind of error.
                    let kind = if error.is_precondition() { ErrorKind::NotFound } else { error.kind() };
                    let message = format!("{}; the object may have been moved: {found}", error.message());
                    return Err(error.but(kind, message));
                }
            }
        }
        self.refused_move(error, source, to, onto).await
    }

    fn is_move_refused(&self, bucket: &str) -> bool {
        let now = Instant::now();
        self.lacks_move.has(super::ENDPOINT, now) || self.lacks_move.has(bucket, now)
    }

    /// Finds out if the store made a move whose answer was lost.
    async fn lost_move(&self, source: &ObjectMeta, to: &ObjectId, onto: &Condition) -> LostMove {
        let gone = match self.head(&source.id, None).await {
            Ok(now) if now.version == source.version => return LostMove::NotMade,
            Ok(_) => "the source was replaced",
            Err(error) if error.is_not_found() => "the source is gone",
            Err(error) => return LostMove::Unknown(format!("the source can't be looked up: {error}")),
        };
        match self.head(to, None).await {
            Ok(now) if is_result(source, &now, onto) => LostMove::Made(Box::new(now)),
            Ok(_) => LostMove::Unknown(format!("{gone}, and the destination is another object")),
            Err(error) if error.is_not_found() => {
                LostMove::Unknown(format!("{gone}, and the destination doesn't exist"))
            }
            Err(error) => {
                LostMove::Unknown(format!("{gone}, and the destination can't be looked up: {error}"))
            }
        }
    }

    /// Decides if a copy follows after a move that was certainly not made. Remembers refusals that are about the server
    /// or the caller's role, so that the next objects are copied at once.
    async fn refused_move(
        &self,
        error: Error,
        source: &ObjectMeta,
        to: &ObjectId,
        onto: &Condition,
    ) -> Result<Option<ObjectMeta>, Error> {
        let bucket = source.id.bucket.as_str();
        let lacking = match error.kind() {
            ErrorKind::NotFound if error.message().contains(NO_OBJECT) => {
                return Err(error.on_object(Provider::Gcs, &source.id));
            }
            ErrorKind::NotFound if error.is_missing_bucket() => return Err(error),
            ErrorKind::NotFound | ErrorKind::Unsupported => Some(super::ENDPOINT),
            ErrorKind::Permission => Some(bucket).filter(|_| !is_about_protection(&error)),
            ErrorKind::Invalid => None,
            ErrorKind::Precondition => {
                return Err(Box::pin(self.unmet_condition(error, source, to, onto)).await);
            }
            _ => return Err(error),
        };
        if let Some(name) = lacking {
            tracing::info!(bucket, %error, "the next objects are copied and removed instead of moved");
            self.lacks_move.add(name, Instant::now());
        }
        Ok(None)
    }

    /// Finds out which condition of a move failed, because the answer doesn't tell. The error names the source if the
    /// source isn't in the generation that was to be moved.
    async fn unmet_condition(
        &self,
        error: Error,
        source: &ObjectMeta,
        to: &ObjectId,
        onto: &Condition,
    ) -> Error {
        match self.head(&source.id, None).await {
            Ok(now) if now.version != source.version => error.on_object(Provider::Gcs, &source.id),
            Err(found) if found.is_not_found() => {
                error.but(ErrorKind::NotFound, found.message()).on_object(Provider::Gcs, &source.id)
            }
            Err(_) if onto.is_none() => error.on_object(Provider::Gcs, &source.id),
            _ => error.on_object(Provider::Gcs, to).of_write(onto),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(generation: u64, crc32c: Option<u32>) -> ObjectMeta {
        let mut meta = ObjectMeta::new(ObjectId::new("b", "k"), 3);
        meta.version = Some(Version::Generation(generation));
        meta.checksums.crc32c = crc32c;
        meta
    }

    #[test]
    fn a_move_is_bound_to_both_generations() {
        let (from, to) = (ObjectId::new("b", "a/b"), ObjectId::new("b", "c d"));
        let outgoing = request(&from, 7, &to, &Condition::Absent).expect("a request");
        assert_eq!(outgoing.method, Method::POST);
        assert!(outgoing.target.starts_with(
            "/storage/v1/b/b/o/a%2Fb/moveTo/o/c%20d?ifSourceGenerationMatch=7&ifGenerationMatch=0&fields="
        ));
    }

    #[test]
    fn only_a_newer_object_with_equal_bytes_is_the_result_of_a_move() {
        let source = meta(7, Some(1));
        let is = |now: ObjectMeta| is_result(&source, &now, &Condition::None);
        assert!(is(meta(8, Some(1))));
        assert!(!is(meta(7, Some(1))) && !is(meta(6, Some(1))), "it was there before");
        assert!(!is(meta(8, Some(2))) && !is(meta(8, None)));
        assert!(!is(ObjectMeta { size: 4, ..meta(8, Some(1)) }));
        assert!(!is(ObjectMeta { version: None, ..meta(8, Some(1)) }));
        assert!(!is(ObjectMeta { content_type: Some("a/b".into()), ..meta(8, Some(1)) }));
        let onto = Condition::Matches(Version::Generation(8));
        assert!(!is_result(&source, &meta(8, Some(1)), &onto), "the condition named it");
        assert!(is_result(&source, &meta(9, Some(1)), &onto));
    }

    #[test]
    fn tells_a_protected_object_from_a_role_that_may_not() {
        let refused = |code: &str, message: &str| {
            let error = Error::new(ErrorKind::Permission, Operation::Copy, message);
            error.answered(http::StatusCode::FORBIDDEN, Some(code.to_owned()))
        };
        assert!(is_about_protection(&refused("retentionPolicyNotMet", "")));
        assert!(is_about_protection(&refused(
            "forbidden",
            "Object 'b/k' is under active Temporary hold and ..."
        )));
        let role = "a@b does not have storage.objects.move access to the Google Cloud Storage object.";
        assert!(!is_about_protection(&refused("forbidden", role)));
    }
}
