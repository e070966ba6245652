//! Checks a write before it is reported as successful: against the store's answer, or against the object that the store
//! holds.

use std::future::Future;

use crate::checksum::Comparison;
use crate::exchange::{Exchange, HttpDialect};
use crate::{Checksums, Error, ErrorKind, ObjectMeta};

/// Compares the store's metadata of the new object with the size and checksums of the bytes that were sent.
///
/// # Errors
/// Returns `Integrity` if the size or a checksum differs.
pub(crate) fn compared<D: HttpDialect>(
    exchange: &Exchange<'_, D>,
    meta: ObjectMeta,
    size: u64,
    sums: &Checksums,
) -> Result<ObjectMeta, Error> {
    if meta.size != size {
        let message = format!("{size} bytes were sent, but the store has {}", meta.size);
        return Err(exchange.error(ErrorKind::Integrity, message));
    }
    match meta.checksums.compare(sums) {
        Comparison::Different(name) => {
            let message = format!("the store's {name} differs from the {name} of the bytes that were sent");
            Err(exchange.error(ErrorKind::Integrity, message))
        }
        Comparison::Equal | Comparison::Unknown => Ok(meta),
    }
}

/// Checks a write whose answer was lost, and whose second attempt was refused. If the store holds the bytes that were
/// sent, the first attempt succeeded. Otherwise the error is returned.
///
/// Callers box `head`, because its future is large and rarely needed. Otherwise it would make up half of the future of
/// a small put, and thousands of those exist at once.
pub(crate) async fn landed(
    error: Error,
    head: impl Future<Output = Result<ObjectMeta, Error>>,
    size: u64,
    sums: &Checksums,
) -> Result<ObjectMeta, Error> {
    if !error.is_uncertain() || !(error.is_precondition() || error.is_not_found()) {
        return Err(error);
    }
    unread(error, head, size, sums).await
}

/// Checks a delete whose answer was lost, and whose second attempt found no object in the required state. If no object
/// exists now, the first attempt succeeded. If one exists, another writer may have written it before or after the
/// delete, so the error is returned.
pub(crate) async fn removed(
    error: Error,
    head: impl Future<Output = Result<ObjectMeta, Error>>,
) -> Result<(), Error> {
    if !error.is_uncertain() {
        return Err(error);
    }
    match error.kind() {
        ErrorKind::NotFound => Ok(()),
        ErrorKind::Precondition => gone(error, head).await,
        _ => Err(error),
    }
}

/// Checks a delete whose answer has a success status but isn't a valid answer. The delete succeeded if no object exists
/// now.
pub(crate) async fn gone(
    error: Error,
    head: impl Future<Output = Result<ObjectMeta, Error>>,
) -> Result<(), Error> {
    match head.await {
        Err(found) if found.is_not_found() => Ok(()),
        _ => Err(error),
    }
}

/// Checks a write whose answer has a success status but can't be read. The write succeeded if the store holds the bytes
/// that were sent.
pub(crate) async fn unread(
    error: Error,
    head: impl Future<Output = Result<ObjectMeta, Error>>,
    size: u64,
    sums: &Checksums,
) -> Result<ObjectMeta, Error> {
    match head.await {
        Ok(meta) if is_ours(&meta, size, sums) => Ok(meta),
        _ => Err(error),
    }
}

/// Returns true if equal checksums prove that the object consists of the bytes that were sent.
fn is_ours(meta: &ObjectMeta, size: u64, sums: &Checksums) -> bool {
    meta.size == size && meta.checksums.compare(sums) == Comparison::Equal
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ObjectId, Operation};

    fn meta(size: u64, crc32c: Option<u32>) -> ObjectMeta {
        let mut meta = ObjectMeta::new(ObjectId::new("b", "k"), size);
        meta.checksums.crc32c = crc32c;
        meta
    }

    #[test]
    fn an_object_is_ours_only_by_an_equal_checksum() {
        let sums = Checksums::crc32c(7);
        assert!(is_ours(&meta(3, Some(7)), 3, &sums));
        assert!(!is_ours(&meta(4, Some(7)), 3, &sums));
        assert!(!is_ours(&meta(3, Some(8)), 3, &sums));
        assert!(!is_ours(&meta(3, None), 3, &sums));
    }

    #[test]
    fn only_an_uncertain_refusal_is_looked_into() {
        let refused =
            |uncertain| Error::new(ErrorKind::Precondition, Operation::Put, "").uncertain(uncertain);
        let sums = Checksums::crc32c(7);
        let outcome = |error, found| {
            let head = std::future::ready(found);
            futures_util::FutureExt::now_or_never(landed(error, head, 3, &sums)).expect("ready")
        };
        assert!(outcome(refused(true), Ok(meta(3, Some(7)))).is_ok());
        assert!(outcome(refused(true), Ok(meta(3, Some(8)))).is_err_and(|e| e.is_precondition()));
        assert!(outcome(refused(false), Ok(meta(3, Some(7)))).is_err_and(|e| e.is_precondition()));
        let transport = Error::new(ErrorKind::Transport, Operation::Put, "").uncertain(true);
        assert!(outcome(transport, Ok(meta(3, Some(7)))).is_err_and(|e| e.is_transport()));
    }

    #[test]
    fn a_delete_whose_answer_was_lost_is_done_where_nothing_is_left() {
        use ErrorKind::{NotFound, Precondition, Transport};
        let error = |kind| Error::new(kind, Operation::Delete, "");
        let outcome = |kind, uncertain, found| {
            let head = std::future::ready(found);
            futures_util::FutureExt::now_or_never(removed(error(kind).uncertain(uncertain), head))
                .expect("ready")
        };
        assert!(outcome(NotFound, true, Err(error(Transport))).is_ok(), "nothing is asked then");
        assert!(outcome(Precondition, true, Err(error(NotFound))).is_ok());
        assert!(outcome(Precondition, true, Err(error(Transport))).is_err_and(|e| e.is_precondition()));
        assert!(outcome(Precondition, true, Ok(meta(3, None))).is_err_and(|e| e.is_precondition()));
        for kind in [NotFound, Precondition] {
            assert!(outcome(kind, false, Err(error(NotFound))).is_err_and(|e| e.kind() == kind));
        }
    }
}
