use super::*;

/// Returns the plan for these files and variables.
fn planned(config: &str, variables: &[(&str, &str)]) -> Result<NamedSource, CredentialFailure> {
    asked(None, config, variables)
}

fn asked(
    profile: Option<&str>,
    config: &str,
    variables: &[(&str, &str)],
) -> Result<NamedSource, CredentialFailure> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config");
    std::fs::write(&path, config).expect("a file");
    let path = path.display().to_string();
    let own = [("AWS_CONFIG_FILE", path.as_str()), ("HOME", "/nowhere")];
    let environment = Environment::of(own.into_iter().chain(variables.iter().copied()));
    let files = AwsFiles::load(&environment).expect("files");
    let chosen = ProfileChoice::of(profile, &environment);
    let active = files.chosen(&chosen).expect("a profile");
    plan(&PlanInput {
        environment: &environment,
        files: &files,
        active: &active,
        chosen: &chosen,
        region: None,
    })
}

fn cause(outcome: Result<NamedSource, CredentialFailure>) -> String {
    match outcome {
        Err(CredentialFailure::Unusable { source, cause }) => format!("{source}: {cause}"),
        other => panic!("expected an unusable source, got {other:?}"),
    }
}

const KEYS: &str = "aws_access_key_id = A\naws_secret_access_key = S\n";

#[test]
fn a_chain_of_roles_ends_at_keys() {
    let config = format!(
        "[default]\nrole_arn = arn:1\nsource_profile = middle\nexternal_id = e\nduration_seconds = 900\n\
         [profile middle]\nrole_arn = arn:2\nsource_profile = keys\n[profile keys]\nregion = eu-west-1\n{KEYS}"
    );
    let AwsSource::Role { role, base } = planned(&config, &[]).expect("a plan").source else {
        panic!("no role")
    };
    assert_eq!((role.arn.as_str(), role.external_id.as_deref()), ("arn:1", Some("e")));
    assert_eq!(role.duration, Some(Duration::from_secs(900)));
    let AwsSource::Role { role, base } = base.source else { panic!("no role") };
    assert_eq!((role.arn.as_str(), role.sts.url.as_str()), ("arn:2", "https://sts.eu-west-1.amazonaws.com"));
    assert!(matches!(base.source, AwsSource::Keys(UnparsedKey { id, .. }) if id == "A"));
}

#[test]
fn a_profile_may_be_its_own_source_and_no_other_circle_is_followed() {
    let own = format!("[default]\nrole_arn = arn:1\nsource_profile = default\n{KEYS}");
    assert!(matches!(planned(&own, &[]).expect("a plan").source, AwsSource::Role { .. }));
    let circle = "[default]\nrole_arn = arn:1\nsource_profile = b\n[profile b]\nrole_arn = arn:2\nsource_profile = default\n";
    assert!(cause(planned(circle, &[])).contains("circle"));
}

#[test]
fn a_role_that_is_set_up_badly_says_how() {
    for (settings, word) in [
        ("", "neither"),
        ("source_profile = gone\n", "\"gone\" doesn't exist"),
        ("source_profile = empty\n", "\"empty\" holds no credentials"),
        ("source_profile = empty\ncredential_source = Environment\n", "both"),
        ("credential_source = Elsewhere\n", "Elsewhere"),
        ("credential_source = Environment\n", "AWS_ACCESS_KEY_ID is not set"),
        ("credential_source = EcsContainer\n", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
    ] {
        let config = format!("[default]\nrole_arn = arn:1\n{settings}[profile empty]\nregion = x\n");
        let cause = cause(planned(&config, &[]));
        assert!(cause.contains(word) && cause.contains("role_arn of profile \"default\""), "{cause}");
    }
}

#[test]
fn keys_of_a_profile_with_an_endpoint_are_not_shown_to_amazons_sts() {
    let config = format!(
        "[default]\nrole_arn = arn:1\nsource_profile = minio\n[profile minio]\nendpoint_url = http://minio:9000/\n{KEYS}"
    );
    let AwsSource::Role { role, .. } = planned(&config, &[]).expect("a plan").source else {
        panic!("no role")
    };
    assert_eq!(role.sts.url, "http://minio:9000");
}

#[test]
fn variables_go_before_the_profile_unless_it_was_asked_for_by_name() {
    let config = format!("[profile p]\n{KEYS}");
    let variables = [("AWS_ACCESS_KEY_ID", "B"), ("AWS_SECRET_ACCESS_KEY", "T"), ("AWS_PROFILE", "p")];
    let id = |planned: NamedSource| match planned.source {
        AwsSource::Keys(keys) => keys.id,
        other => panic!("{other:?}"),
    };
    assert_eq!(id(planned(&config, &variables).expect("keys")), "B");
    assert_eq!(id(asked(Some("p"), &config, &variables).expect("keys")), "A");
    let empty = [("AWS_ACCESS_KEY_ID", ""), ("AWS_SECRET_ACCESS_KEY", ""), ("AWS_PROFILE", "p")];
    assert_eq!(id(planned(&config, &empty).expect("keys")), "A");
}

#[test]
fn half_of_a_key_is_no_key_and_not_passed_over() {
    assert!(cause(planned("", &[("AWS_ACCESS_KEY_ID", "A")])).contains("AWS_SECRET_ACCESS_KEY is not set"));
    assert!(cause(planned("", &[("AWS_SECRET_ACCESS_KEY", "S")])).contains("AWS_ACCESS_KEY_ID is not set"));
    let cause = cause(planned("[default]\naws_access_key_id = A\n", &[]));
    assert!(cause.contains("no aws_secret_access_key"), "{cause}");
}

#[test]
fn a_web_identity_is_that_of_variables_or_of_the_profile() {
    let variables =
        [("AWS_WEB_IDENTITY_TOKEN_FILE", "/token"), ("AWS_ROLE_ARN", "arn:1"), ("AWS_REGION", "cn-north-1")];
    let AwsSource::WebIdentity { role, token_file } =
        planned(KEYS_OF_DEFAULT, &variables).expect("a plan").source
    else {
        panic!("no web identity")
    };
    assert_eq!(
        (role.sts.url.as_str(), token_file.to_str()),
        ("https://sts.cn-north-1.amazonaws.com.cn", Some("/token"))
    );
    assert!(cause(planned("", &variables[..1])).contains("AWS_ROLE_ARN is not set"));
    let config = "[profile p]\nweb_identity_token_file = ~/t\nrole_arn = arn:2\nrole_session_name = n\n";
    let AwsSource::WebIdentity { role, token_file } =
        asked(Some("p"), config, &variables).expect("a plan").source
    else {
        panic!("no web identity")
    };
    assert_eq!((role.arn.as_str(), role.session_name.as_deref()), ("arn:2", Some("n")));
    assert_eq!(token_file.to_str(), Some("/nowhere/t"));
}

const KEYS_OF_DEFAULT: &str = "[default]\naws_access_key_id = A\naws_secret_access_key = S\n";

#[test]
fn sso_is_set_up_by_a_session_or_in_the_profile() {
    let session = "[default]\nsso_session = s\nsso_account_id = 1\nsso_role_name = r\n\
                   [sso-session s]\nsso_start_url = https://start\nsso_region = eu-west-1\n";
    let AwsSource::Sso(sso) = planned(session, &[]).expect("a plan").source else { panic!("no SSO") };
    assert_eq!(
        (sso.session.as_deref(), sso.portal.as_str()),
        (Some("s"), "https://portal.sso.eu-west-1.amazonaws.com")
    );
    let legacy = "[default]\nsso_start_url = https://start\nsso_region = eu-west-1\nsso_account_id = 1\nsso_role_name = r\n";
    let AwsSource::Sso(sso) = planned(legacy, &[]).expect("a plan").source else { panic!("no SSO") };
    assert_eq!((sso.session, sso.start_url.as_str()), (None, "https://start"));
    for (config, word) in [
        ("[default]\nsso_session = gone\nsso_account_id = 1\nsso_role_name = r\n", "[sso-session gone]"),
        ("[default]\nsso_account_id = 1\nsso_role_name = r\n", "sso_region is not set"),
        (
            "[default]\nsso_session = s\n[sso-session s]\nsso_start_url = u\nsso_region = r\n",
            "sso_account_id is not set",
        ),
        (
            "[default]\nsso_session = s\nsso_region = other\nsso_account_id = 1\nsso_role_name = r\n\
             [sso-session s]\nsso_start_url = u\nsso_region = r\n",
            "sso_region isn't the same",
        ),
    ] {
        let cause = cause(planned(config, &[]));
        assert!(cause.contains(word), "{cause}");
    }
}

#[test]
fn falls_back_to_container_and_instance_unless_a_profile_is_requested() {
    let relative = [("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/x")];
    let AwsSource::Container { url, .. } = planned("", &relative).expect("a plan").source else {
        panic!("no container")
    };
    assert_eq!(url, "http://169.254.170.2/v2/x");
    assert!(cause(asked(Some("p"), "[profile p]\nregion = x\n", &relative)).contains("holds no credentials"));
    let abroad = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://example.com/x")];
    assert!(cause(planned("", &abroad)).contains("neither this machine nor reached over TLS"));
    let AwsSource::Instance(instance) = planned("", &[]).expect("a plan").source else {
        panic!("no instance")
    };
    assert_eq!((instance.endpoint.as_str(), instance.is_asked_for), ("http://169.254.169.254", false));
    assert!(matches!(
        planned("", &[("AWS_EC2_METADATA_DISABLED", "true")]),
        Err(CredentialFailure::Nothing(_))
    ));
}

#[test]
fn a_file_that_a_variable_names_is_missed_before_the_machine_is_asked() {
    let missing = [("AWS_SHARED_CREDENTIALS_FILE", "/nowhere/credentials")];
    assert!(cause(planned("", &missing)).contains("AWS_SHARED_CREDENTIALS_FILE names /nowhere/credentials"));
    let keys = [missing[0], ("AWS_ACCESS_KEY_ID", "A"), ("AWS_SECRET_ACCESS_KEY", "S")];
    assert!(planned("", &keys).is_ok());
}
