//! Conditions of writes and deletes, at services that keep them, ignore them or refuse them.

use super::*;

/// Runs a scenario against a server with the habits of each service. It gets a store for the existing objects, and a
/// new one for the writes under test.
fn with_habits(scenario: impl AsyncFn(&str, Store, Store)) {
    for name in Habits::NAMES {
        let habits = Habits::named(name).expect("a service");
        let endpoint = Endpoint::start_with(Wire::Plain, Config { habits, ..Config::default() });
        let fresh = || {
            let lanes = Lanes::start(LanesConfig::default()).expect("lanes");
            Store::new(Provider::S3, &settings(&endpoint), lanes).expect("a store")
        };
        run(scenario(name, fresh(), fresh()));
    }
}

#[test]
fn what_exists_is_never_replaced_whatever_a_store_makes_of_conditions() {
    with_habits(async |name, there, store| {
        let id = |key: &str| ObjectId::new(Endpoint::BUCKET, key);
        for key in ["put", "parts", "copy", "from"] {
            write(&there, &id(key), b"theirs", Condition::None)
                .await
                .unwrap_or_else(|e| panic!("{name}: {e}"));
        }
        let put = write(&store, &id("put"), b"ours", Condition::Absent).await;
        let parts = in_parts(&store, &id("parts"), b"ours", Condition::Absent).await;
        let options = PutOptions::default().condition(Condition::Absent);
        let copy = store.copy(&id("from"), &id("copy"), &options, &Condition::None).await;
        for (key, outcome) in [("put", put), ("parts", parts), ("copy", copy)] {
            let error = outcome.expect_err(key);
            assert!(error.is_precondition(), "{name}, {key}: {error}");
            assert_eq!(content(&there, &id(key)).await, b"theirs", "{name}, {key}");
        }
        // The same writes succeed if the object doesn't exist.
        write(&store, &id("new"), b"ours", Condition::Absent).await.unwrap_or_else(|e| panic!("{name}: {e}"));
        in_parts(&store, &id("new parts"), b"ours", Condition::Absent)
            .await
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        let copy = store.copy(&id("from"), &id("new copy"), &options, &Condition::None).await;
        copy.unwrap_or_else(|e| panic!("{name}: {e}"));
    });
}

/// A copy that is refused because of its source doesn't show if the store enforces the condition on the destination.
#[test]
fn a_source_that_was_replaced_does_not_show_that_destinations_are_kept() {
    with_habits(async |name, there, store| {
        let id = |key: &str| ObjectId::new(Endpoint::BUCKET, key);
        for key in ["from", "to"] {
            write(&there, &id(key), b"theirs", Condition::None)
                .await
                .unwrap_or_else(|e| panic!("{name}: {e}"));
        }
        let options = PutOptions::default().condition(Condition::Absent);
        let gone = Condition::Matches(Version::ETag("gone".into()));
        let error = store.copy(&id("from"), &id("new"), &options, &gone).await.expect_err("it was replaced");
        assert!(error.is_precondition(), "{name}: {error}");
        let error =
            store.copy(&id("from"), &id("to"), &options, &Condition::None).await.expect_err("it exists");
        assert!(error.is_precondition(), "{name}: {error}");
        assert_eq!(content(&there, &id("to")).await, b"theirs", "{name}");
    });
}

/// R2's own host name, which resolves to the embedded server.
#[test]
fn a_copy_at_r2_takes_its_destinations_condition_by_r2s_headers() {
    let config = Config { habits: Habits::r2(), ..Config::default() };
    let endpoint = Endpoint::start_with(Wire::Plain, config);
    let host = "account.r2.cloudflarestorage.com";
    let address = endpoint.server().addr();
    let mut lanes = LanesConfig::default();
    lanes.resolve.insert(host.to_owned(), vec![address.ip()]);
    let settings = Settings {
        s3_endpoint: Some(format!("http://{host}:{}", address.port())),
        s3_path_style: Some(true),
        ..settings(&endpoint)
    };
    let store = Store::new(Provider::S3, &settings, Lanes::start(lanes).expect("lanes")).expect("a store");
    run(async {
        let id = |key| ObjectId::new(Endpoint::BUCKET, key);
        put(&store, &id("from")).await.unwrap_or_else(|e| panic!("{e}"));
        let copy = async |condition: Condition| {
            let options = PutOptions::default().condition(condition);
            let before = store.lanes().counters().requests;
            let copied = store.copy(&id("from"), &id("to"), &options, &Condition::None).await;
            (copied, store.lanes().counters().requests - before)
        };
        assert!(store.keeps(Operation::Copy, &Condition::Absent));
        let (copied, requests) = copy(Condition::Absent).await;
        // Laneway sends the copy and then a HEAD for its size. It sends no HEAD for the destination before the copy.
        assert_eq!(requests, 2);
        let state = |meta: Result<ObjectMeta, Error>| {
            Condition::Matches(meta.unwrap_or_else(|e| panic!("{e}")).version.expect("an ETag"))
        };
        let there = state(copied);
        let (refused, requests) = copy(Condition::Absent).await;
        assert!(refused.is_err_and(|e| e.is_precondition()));
        assert_eq!(requests, 1);
        assert!(copy(there).await.0.is_ok());
        let other = Condition::Matches(Version::ETag("0".repeat(32)));
        assert!(copy(other).await.0.is_err_and(|e| e.is_precondition()));
    });
}

#[test]
fn a_store_is_known_by_whether_it_keeps_conditions() {
    with_habits(async |name, _, store| {
        write(&store, &ObjectId::new(Endpoint::BUCKET, "k"), b"ours", Condition::Absent)
            .await
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        let keeps = |operation| store.keeps(operation, &Condition::Absent);
        let seen = [Operation::Put, Operation::Complete, Operation::Copy].map(keeps);
        let expected = match name {
            "minio" => [true, true, false],
            // A server at another host that calls itself AmazonS3 isn't trusted.
            "s3" | "r2" | "storj" => [true, false, false],
            // Azurite's habits are those of another dialect. In S3's, the server is laneway serve.
            "azurite" | "azurite-3.35" => [true, true, true],
            _ => [false, false, false],
        };
        assert_eq!(seen, expected, "{name}");
    });
}

/// Runs a scenario against a server with these habits. It gets a store, and a count of the requests since the last count.
fn counting(config: Config, scenario: impl AsyncFn(&Store, &dyn Fn() -> u64)) {
    let endpoint = Endpoint::start_with(Wire::Plain, config);
    let lanes = Lanes::start(LanesConfig::default()).expect("lanes");
    let store = Store::new(Provider::S3, &settings(&endpoint), lanes).expect("a store");
    let before = std::cell::Cell::new(0);
    let count = || {
        let now = store.lanes().counters().requests;
        now - before.replace(now)
    };
    run(scenario(&store, &count));
}

fn like(habits: Habits) -> Config {
    Config { habits, ..Config::default() }
}

#[test]
fn an_unknown_service_is_probed_by_its_first_conditional_put() {
    // Both call themselves `AmazonS3`.
    for (habits, is_kept) in [(Habits::s3(), true), (Habits::sia(), false)] {
        counting(like(habits), async |store, count| {
            let id = |key: &str| ObjectId::new(Endpoint::BUCKET, key);
            let kept = || store.keeps(Operation::Put, &Condition::Absent);
            write(store, &id("plain"), b"ours", Condition::None).await.unwrap_or_else(|e| panic!("{e}"));
            assert!(!kept() && count() > 0, "nothing is proven yet");
            let made = write(store, &id("a"), b"ours", Condition::Absent).await;
            let made = made.unwrap_or_else(|e| panic!("{e}"));
            // Laneway sends a HEAD, the put and the probe. If the service ignored the condition, another HEAD follows.
            assert_eq!((kept(), count()), (is_kept, if is_kept { 3 } else { 4 }));
            assert_eq!(made.version, store.head(&id("a"), None).await.expect("it is there").version);
            count();
            write(store, &id("b"), b"ours", Condition::Absent).await.unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(count(), if is_kept { 1 } else { 3 }, "there is one probe");
            let error = write(store, &id("b"), b"theirs", Condition::Absent).await.expect_err("it exists");
            assert!(error.is_precondition() && content(store, &id("b")).await == b"ours", "{error}");
            assert_eq!(kept(), is_kept);
        });
    }
}

#[test]
fn the_condition_on_a_version_is_probed_on_its_own() {
    for (habits, is_kept) in [(Habits::s3(), true), (Habits::sia(), false)] {
        counting(like(habits), async |store, _| {
            let id = ObjectId::new(Endpoint::BUCKET, "k");
            let onto = |meta: &ObjectMeta| Condition::Matches(meta.version.clone().expect("an ETag"));
            let old = write(store, &id, b"old", Condition::Absent).await.unwrap_or_else(|e| panic!("{e}"));
            // A put of the same bytes leaves the ETag unchanged, so the condition still holds after the put. Sending the put
            // again would therefore not show whether the store enforces the condition.
            let same = write(store, &id, b"old", onto(&old)).await.unwrap_or_else(|e| panic!("{e}"));
            assert!(!store.keeps(Operation::Put, &onto(&same)));
            let new = write(store, &id, b"newer", onto(&same)).await.unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(store.keeps(Operation::Put, &onto(&new)), is_kept);
            assert!(write(store, &id, b"older", onto(&old)).await.expect_err("gone").is_precondition());
            assert_eq!(content(store, &id).await, b"newer");
        });
    }
}

#[test]
fn a_put_that_might_leave_a_version_or_costs_much_is_not_sent_again() {
    const LARGE: &[u8] = &[0; (1 << 20) + 1];
    for (versions, bytes) in [(true, &b"ours"[..]), (false, LARGE)] {
        let config = Config { versions, ..like(Habits::sia()) };
        counting(config, async |store, count| {
            for key in ["a", "b"] {
                count();
                let id = ObjectId::new(Endpoint::BUCKET, key);
                write(store, &id, bytes, Condition::Absent).await.unwrap_or_else(|e| panic!("{e}"));
                assert_eq!(count(), 3, "a look, the put, a look");
                assert!(!store.keeps(Operation::Put, &Condition::Absent));
            }
        });
    }
}

/// The faults' answers name no service.
#[test]
fn credentials_that_only_write_have_the_word_of_an_unknown_service() {
    let config = Config { habits: Habits::s3(), ..faulty(&["head status 403"]) };
    counting(config, async |store, _| {
        let id = ObjectId::new(Endpoint::BUCKET, "k");
        write(store, &id, b"ours", Condition::Absent).await.unwrap_or_else(|e| panic!("{e}"));
        assert!(store.keeps(Operation::Put, &Condition::Absent), "the probe needs no HEAD");
        let error = write(store, &id, b"theirs", Condition::Absent).await.expect_err("it exists");
        assert!(error.is_precondition(), "{error}");
    });
}

#[test]
fn a_probe_that_tells_nothing_is_no_failure_and_proves_nothing() {
    let config = Config { habits: Habits::s3(), ..faulty(&["put:2 status 403"]) };
    counting(config, async |store, count| {
        for (key, requests, is_kept) in [("a", 4, false), ("b", 3, true), ("c", 1, true)] {
            let id = ObjectId::new(Endpoint::BUCKET, key);
            write(store, &id, b"ours", Condition::Absent).await.unwrap_or_else(|e| panic!("{key}: {e}"));
            assert_eq!(count(), requests, "{key}");
            assert_eq!(store.keeps(Operation::Put, &Condition::Absent), is_kept, "{key}");
        }
    });
}

#[test]
fn deletes_only_the_named_state_even_if_a_store_ignores_conditions() {
    with_habits(async |name, there, store| {
        let id = ObjectId::new(Endpoint::BUCKET, "k");
        let old = write(&there, &id, b"old", Condition::None).await.unwrap_or_else(|e| panic!("{name}: {e}"));
        let new =
            write(&there, &id, b"newer", Condition::None).await.unwrap_or_else(|e| panic!("{name}: {e}"));
        let state = |meta: ObjectMeta| Condition::Matches(meta.version.expect("an ETag"));
        let error = store.delete(&id, &state(old)).await.expect_err("it is another");
        assert!(error.is_precondition(), "{name}: {error}");
        assert_eq!(content(&there, &id).await, b"newer", "{name}");
        store.delete(&id, &state(new)).await.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(there.head(&id, None).await.is_err_and(|e| e.is_not_found()), "{name}");
    });
}

#[test]
fn a_delete_whose_condition_is_forbidden_is_compared_first() {
    against(faulty(&["delete:1 status 403"]), async |store, id| {
        let meta = put(&store, &id).await.unwrap_or_else(|e| panic!("{e}"));
        let state = Condition::Matches(meta.version.expect("an ETag"));
        store.delete(&id, &state).await.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(store.requests().reads, 1, "one HEAD between two deletes");
    });
}

#[test]
fn a_persistent_conflict_is_no_precondition_and_ends_a_completion_at_once() {
    let rules =
        ["complete status 409 ConditionalRequestConflict", "put:1-2 status 409 ConditionalRequestConflict"];
    against(faulty(&rules), async |store, id| {
        let error = in_parts(&store, &id, b"ours", Condition::Absent).await.expect_err("a conflict");
        assert!(error.is_conflict() && !error.is_precondition() && error.attempts() == 1, "{error}");
        write(&store, &id, b"ours", Condition::Absent).await.unwrap_or_else(|e| panic!("{e}"));
    });
}

#[test]
fn who_may_write_and_not_read_writes() {
    let s3 = S3Config { checksums: false, ..S3Config::default() };
    let config = Config { s3, ..faulty(&["head key=to status 403"]) };
    against(config, async |store, id| {
        put(&store, &id).await.unwrap_or_else(|e| panic!("{e}"));
        let to = ObjectId::new(Endpoint::BUCKET, "to");
        let copied = store.copy(&id, &to, &PutOptions::default(), &Condition::None).await;
        assert_eq!(copied.unwrap_or_else(|e| panic!("{e}")).size, 5);
        let written = in_parts(&store, &to, b"ours", Condition::None).await;
        assert_eq!(written.unwrap_or_else(|e| panic!("{e}")).size, 4);
    });
}

#[test]
fn of_many_only_the_states_that_are_named_are_deleted() {
    with_habits(async |name, there, store| {
        let mut objects = Vec::new();
        for key in ["a", "b", "replaced", "any"] {
            let id = ObjectId::new(Endpoint::BUCKET, key);
            let meta =
                write(&there, &id, b"old", Condition::None).await.unwrap_or_else(|e| panic!("{name}: {e}"));
            let version = meta.version.filter(|_| key != "any");
            objects.push(Deletion { version, ..Deletion::any(key) });
        }
        let id = ObjectId::new(Endpoint::BUCKET, "replaced");
        write(&there, &id, b"newer", Condition::None).await.unwrap_or_else(|e| panic!("{name}: {e}"));
        store.head(&id, None).await.unwrap_or_else(|e| panic!("{name}: {e}"));
        let results = store.delete_many(Endpoint::BUCKET, &objects).await;
        for (object, result) in objects.iter().zip(results) {
            match object.key.as_str() {
                "replaced" => assert!(result.is_err_and(|e| e.is_precondition()), "{name}"),
                key => result.unwrap_or_else(|e| panic!("{name}, {key}: {e}")),
            }
        }
        assert_eq!(content(&there, &id).await, b"newer", "{name}");
        let gone = there.head(&ObjectId::new(Endpoint::BUCKET, "a"), None).await;
        assert!(gone.is_err_and(|e| e.is_not_found()), "{name}");
    });
}
