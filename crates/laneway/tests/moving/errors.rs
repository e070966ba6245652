//! The information in errors from which a caller can decide what to do next.

use laneway::{ErrorKind, Location};

use crate::stage::{DIALECTS, Stage};

#[test]
fn an_answered_error_has_its_kind_url_status_and_attempts() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        let error = stage.client.stat(&stage.url("none")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error:?}");
        assert_eq!(error.url(), Some(&*stage.url("none").to_string()), "{error:?}");
        assert_eq!((error.status(), error.attempts()), (Some(404), 1), "{error:?}");
        assert!(error.is_not_found() && !error.is_retryable(), "{error:?}");
    }
}

#[test]
fn what_may_pass_is_retryable_and_what_was_not_sent_has_no_status() {
    for kind in DIALECTS {
        let stage = Stage::with_faults(kind, &["head status 500", "get status 500"]);
        stage.object("k", b"bytes");
        let error = stage.client.stat(&stage.url("k")).unwrap_err();
        assert_eq!((error.kind(), error.status()), (ErrorKind::Server, Some(500)), "{error:?}");
        assert!(error.is_retryable() && error.attempts() > 1, "{error:?}");

        let local = stage.client.stat(&Location::Local("/k".into())).unwrap_err();
        assert_eq!((local.kind(), local.status()), (ErrorKind::Usage, None), "{local:?}");
        assert!(!local.is_retryable() && local.attempts() == 0, "{local:?}");
    }
}
