use super::*;

fn found(document: &str) -> Result<Adc, CredentialFailure> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("adc.json");
    std::fs::write(&path, document).expect("a file");
    find(&Environment::of([("GOOGLE_APPLICATION_CREDENTIALS", path.display().to_string())]))
}

fn cause(outcome: Result<Adc, CredentialFailure>) -> String {
    match outcome {
        Err(CredentialFailure::Unusable { source, cause }) => format!("{source}: {cause}"),
        other => panic!("{other:?}"),
    }
}

const USER: &str = r#"{"type":"authorized_user","client_id":"i","client_secret":"hush","refresh_token":"hush","quota_project_id":"q"}"#;

#[test]
fn a_login_names_its_quota_project_which_a_variable_replaces() {
    let adc = found(USER).expect("a login");
    assert!(matches!(&adc.identity, Identity::User(user) if user.token_uri == token_uri()));
    assert_eq!((adc.quota_project.as_deref(), adc.universe.as_deref()), (Some("q"), Some(GOOGLE)));
    assert!(!format!("{adc:?}").contains("hush"));
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("application_default_credentials.json"), USER).expect("a file");
    let folder = folder.path().display().to_string();
    let environment =
        Environment::of([("CLOUDSDK_CONFIG", folder.as_str()), ("GOOGLE_CLOUD_QUOTA_PROJECT", "other")]);
    assert_eq!(find(&environment).expect("a login").quota_project.as_deref(), Some("other"));
}

#[test]
fn a_file_that_is_named_must_be_there_and_be_one() {
    let gone = Environment::of([("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/adc.json")]);
    let gone = cause(find(&gone));
    assert!(gone.starts_with("GOOGLE_APPLICATION_CREDENTIALS (/nowhere/adc.json): No such file"), "{gone}");
    for (document, word) in [
        ("hush", "a JSON document"),
        ("{}", "no type"),
        (r#"{"type":"gdch_service_account"}"#, "gdch_service_account"),
        (
            r#"{"type":"authorized_user","client_id":"i","client_secret":"hush"}"#,
            "missing field `refresh_token`",
        ),
        (r#"{"type":"service_account","client_email":"e"}"#, "missing field `private_key`"),
        (
            r#"{"type":"impersonated_service_account","service_account_impersonation_url":"u","source_credentials":{"type":"x"}}"#,
            "its source_credentials",
        ),
    ] {
        let cause = cause(found(document));
        assert!(cause.contains(word) && !cause.contains("hush"), "{cause}");
    }
}

#[test]
fn a_key_that_is_given_is_that_of_a_service_account() {
    let key = r#"{"type":"service_account","client_email":"e","private_key":"hush","universe_domain":"own.example"}"#;
    let adc = given(key, &Environment::of([("GOOGLE_CLOUD_QUOTA_PROJECT", "q")])).expect("a key");
    assert!(matches!(&adc.identity, Identity::ServiceAccount(account) if account.client_email == "e"));
    assert_eq!((adc.quota_project.as_deref(), adc.universe.as_deref()), (Some("q"), Some("own.example")));
    assert!(!format!("{adc:?}").contains("hush"));
    for (key, word) in [
        ("hush", "a JSON document"),
        (USER, "isn't a service account key"),
        (r#"{"type":"service_account","client_email":"hush"}"#, "missing field `private_key`"),
    ] {
        let cause = cause(given(key, &Environment::default()));
        assert!(cause.starts_with("service_account_key: "), "{cause}");
        assert!(cause.contains(word) && !cause.contains("hush"), "{cause}");
    }
}

#[test]
fn an_external_account_has_one_source_whose_format_may_be_left_out() {
    let external = |source: &str| {
        found(&format!(
            r#"{{"type":"external_account","audience":"a","subject_token_type":"t","credential_source":{source}}}"#
        ))
    };
    for good in [
        r#"{"file":"/t"}"#,
        r#"{"url":"http://h/","headers":{"a":"b"},"format":{"type":"json","subject_token_field_name":"f"}}"#,
        r#"{"executable":{"command":"c"}}"#,
        r#"{"certificate":{"use_default_certificate_config":true}}"#,
        r#"{"certificate":{"certificate_config_location":"/c","trust_chain_path":"/t"}}"#,
        r#"{"environment_id":"aws1","url":"http://h/","regional_cred_verification_url":"https://sts"}"#,
    ] {
        assert!(matches!(external(good).expect(good).identity, Identity::External(_)));
    }
    for (bad, word) in [
        ("{}", "neither file"),
        (r#"{"file":"/t","url":"http://h/"}"#, "more than one"),
        (r#"{"certificate":{}}"#, "neither certificate_config_location"),
        (
            r#"{"certificate":{"use_default_certificate_config":true,"certificate_config_location":"/c"}}"#,
            "contradict",
        ),
        (r#"{"file":"/t","certificate":{"use_default_certificate_config":true}}"#, "more than one"),
        (r#"{"environment_id":"aws2"}"#, "\"2\""),
        (r#"{"file":"/t","format":{"type":"json"}}"#, "subject_token_field_name"),
        (r#"{"file":"/t","format":{"type":"xml"}}"#, "xml"),
    ] {
        let cause = cause(external(bad));
        assert!(cause.contains(word), "{cause}");
    }
}

#[test]
fn without_a_file_it_is_the_machine() {
    let adc = find(&Environment::of([("HOME", "/nowhere"), ("GOOGLE_APPLICATION_CREDENTIALS", "")]))
        .expect("the machine");
    assert!(
        matches!(&adc.identity, Identity::Machine(machine) if !machine.is_asked_for && machine.host == "169.254.169.254")
    );
    let named =
        find(&Environment::of([("HOME", "/nowhere"), ("GCE_METADATA_HOST", "h:1")])).expect("the machine");
    assert!(
        matches!(&named.identity, Identity::Machine(machine) if machine.is_asked_for && machine.host == "h:1")
    );
    assert!(matches!(find(&Environment::of([("NO_GCE_CHECK", "true")])), Err(CredentialFailure::Nothing(_))));
}
