//! Azure's credentials that a program passes, in place of those of the environment.

use std::collections::BTreeMap;

use crate::value::InvalidValue;

/// The parts of the setting `azure_credentials`, each with the variable that has the same meaning.
const PARTS: [(&str, &str); 9] = [
    ("account_key", "AZURE_STORAGE_KEY"),
    ("authority_host", "AZURE_AUTHORITY_HOST"),
    ("client_id", "AZURE_CLIENT_ID"),
    ("client_secret", "AZURE_CLIENT_SECRET"),
    ("connection_string", "AZURE_STORAGE_CONNECTION_STRING"),
    ("federated_token_file", "AZURE_FEDERATED_TOKEN_FILE"),
    ("sas_token", "AZURE_STORAGE_SAS_TOKEN"),
    ("tenant_id", "AZURE_TENANT_ID"),
    ("token", "AZURE_STORAGE_TOKEN"),
];

/// The part that uses the login of the Azure CLI. Its value is `true`.
const CLI: &str = "use_azure_cli";
/// The variable that chooses one of azure-identity's sources, and its value for the Azure CLI.
const CHOICE: (&str, &str) = ("AZURE_TOKEN_CREDENTIALS", "AzureCliCredential");
/// The variable's value for the identity of the machine. The library then uses no other identity in its place.
const MANAGED: &str = "ManagedIdentityCredential";

/// The part that uses the identity of the machine. Its value is `true`.
const MACHINE: &str = "use_managed_identity";
/// The variable by which App Service tells the URL of its machines' identity.
const APP_SERVICE: &str = "IDENTITY_ENDPOINT";
/// The variable that names one of several identities of a machine, or a service principal.
const CLIENT: &str = "AZURE_CLIENT_ID";

/// The parts that are credentials by themselves. A client id without any of them chooses an identity of the machine. The
/// other parts only describe an identity, so they keep the environment's credentials.
const IDENTITIES: [&str; 8] = [
    "account_key",
    "client_secret",
    "connection_string",
    "federated_token_file",
    "sas_token",
    "token",
    CLI,
    MACHINE,
];

/// The variables with credentials, which credentials of the program replace.
const REPLACED: [&str; 12] = [
    "AZURE_CLIENT_CERTIFICATE_PATH",
    "AZURE_CLIENT_SECRET",
    "AZURE_FEDERATED_TOKEN_FILE",
    "AZURE_STORAGE_ACCESS_KEY",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_CONNECTION_STRING",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_SAS_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_TOKEN",
    "AZURE_TOKEN_CREDENTIALS",
    APP_SERVICE,
];

/// The variables with the account's name. A key and a SAS token belong to the account that these name.
const ACCOUNTS: [&str; 2] = ["AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME"];

/// Returns the name of a part that is a credential by itself, if there is one.
pub(crate) fn identity_in(parts: &BTreeMap<String, String>) -> Option<&'static str> {
    IDENTITIES.into_iter().chain(["client_id"]).find(|name| parts.contains_key(*name))
}

/// Changes variables so that they have the credentials of the program. `account` is the account that the program passes.
///
/// # Errors
/// Fails for an unknown or empty part, and for two parts that are both credentials.
pub(crate) fn replace_credentials(
    variables: &mut BTreeMap<String, String>,
    parts: &BTreeMap<String, String>,
    account: Option<&str>,
) -> Result<(), InvalidValue> {
    let identities: Vec<_> = IDENTITIES.into_iter().filter(|name| parts.contains_key(*name)).collect();
    if let [one, other, ..] = identities[..] {
        let why = format!("{one} and {other} are both credentials; pass only one of them");
        return Err(InvalidValue::Value(why));
    }
    let is_machine = identities == [MACHINE] || identities.is_empty() && parts.contains_key("client_id");
    if is_machine || !identities.is_empty() {
        // App Service tells its machines' identity by a variable.
        for name in REPLACED.into_iter().filter(|name| !(is_machine && *name == APP_SERVICE)) {
            variables.remove(name);
        }
        if let Some(account) = account {
            for name in ACCOUNTS {
                variables.remove(name);
            }
            variables.insert(ACCOUNTS[0].to_owned(), account.to_owned());
        }
    }
    if is_machine {
        variables.remove(CLIENT);
        variables.insert(CHOICE.0.to_owned(), MANAGED.to_owned());
    }
    for (name, value) in parts.iter().filter(|(name, _)| *name != MACHINE) {
        if value.is_empty() {
            return Err(InvalidValue::Value(format!("{name} is empty")));
        }
        let (variable, value) = match PARTS.iter().find(|(part, _)| part == name) {
            Some((_, variable)) => (*variable, value.as_str()),
            None if name == CLI => CHOICE,
            None => return Err(InvalidValue::Value(format!("Azure's credentials have no part {name}"))),
        };
        variables.insert(variable.to_owned(), value.to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(
        variables: &[(&str, &str)],
        parts: &[(&str, &str)],
        account: Option<&str>,
    ) -> Result<Vec<String>, String> {
        let owned = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let mut variables = owned(variables);
        match replace_credentials(&mut variables, &owned(parts), account) {
            Ok(()) => Ok(variables.iter().map(|(name, value)| format!("{name}={value}")).collect()),
            Err(why) => Err(why.of("azure_credentials").message),
        }
    }

    #[test]
    fn credentials_of_the_program_replace_all_of_the_environment() {
        let environment = [
            ("AZURE_STORAGE_CONNECTION_STRING", "AccountName=theirs"),
            ("AZURE_STORAGE_ACCESS_KEY", "old"),
            ("AZURE_STORAGE_ACCOUNT_NAME", "theirs"),
            ("AZURE_TENANT_ID", "tenant"),
            ("OTHER", "kept"),
        ];
        let made = replaced(&environment, &[("account_key", "new")], Some("mine"));
        let expected =
            ["AZURE_STORAGE_ACCOUNT=mine", "AZURE_STORAGE_KEY=new", "AZURE_TENANT_ID=tenant", "OTHER=kept"];
        assert_eq!(made, Ok(expected.map(str::to_owned).to_vec()));
    }

    #[test]
    fn a_tenant_keeps_the_credentials_of_the_environment() {
        let made = replaced(&[("AZURE_CLIENT_SECRET", "s")], &[("tenant_id", "t")], Some("mine"));
        let expected = ["AZURE_CLIENT_SECRET=s", "AZURE_TENANT_ID=t"];
        assert_eq!(made, Ok(expected.map(str::to_owned).to_vec()));
    }

    #[test]
    fn a_client_id_alone_chooses_an_identity_of_the_machine() {
        let environment =
            [("AZURE_STORAGE_KEY", "theirs"), ("AZURE_CLIENT_SECRET", "s"), (APP_SERVICE, "http://h")];
        let alone = replaced(&environment, &[("client_id", "c")], None);
        assert_eq!(alone, replaced(&environment, &[("client_id", "c"), (MACHINE, "true")], None));
        assert!(
            alone.is_ok_and(|made| made.iter().all(|set| !set.contains("theirs") && !set.contains("SECRET")))
        );
        let principal = replaced(&[], &[("client_id", "c"), ("client_secret", "s")], None);
        let expected = ["AZURE_CLIENT_ID=c", "AZURE_CLIENT_SECRET=s"];
        assert_eq!(principal, Ok(expected.map(str::to_owned).to_vec()));
    }

    #[test]
    fn the_login_of_the_azure_cli_goes_before_other_sources() {
        let made = replaced(&[("IDENTITY_ENDPOINT", "http://h")], &[(CLI, "true")], None);
        assert_eq!(made, Ok(vec!["AZURE_TOKEN_CREDENTIALS=AzureCliCredential".to_owned()]));
    }

    #[test]
    fn the_identity_of_the_machine_leaves_no_other_credentials() {
        let environment = [("AZURE_CLIENT_SECRET", "s"), ("AZURE_CLIENT_ID", "theirs")];
        let choice = "AZURE_TOKEN_CREDENTIALS=ManagedIdentityCredential".to_owned();
        assert_eq!(replaced(&environment, &[(MACHINE, "true")], None), Ok(vec![choice.clone()]));
        let chosen = replaced(&environment, &[(MACHINE, "true"), ("client_id", "mine")], None);
        assert_eq!(chosen, Ok(vec!["AZURE_CLIENT_ID=mine".to_owned(), choice.clone()]));
        let service = replaced(&[(APP_SERVICE, "http://h")], &[(MACHINE, "true")], None);
        assert_eq!(service, Ok(vec![choice, "IDENTITY_ENDPOINT=http://h".to_owned()]));
    }

    #[test]
    fn refuses_two_credentials_empty_ones_and_unknown_parts_by_name() {
        for (parts, says) in [
            (&[("account_key", "hush"), ("sas_token", "sig=hush")][..], "account_key and sas_token"),
            (&[("sas_token", "")], "sas_token is empty"),
            (&[("colour", "hush")], "no part colour"),
        ] {
            let why = replaced(&[], parts, None).expect_err("refused");
            assert!(why.starts_with("azure_credentials: ") && why.contains(says), "{why}");
            assert!(!why.contains("hush"), "{why}");
        }
    }
}
