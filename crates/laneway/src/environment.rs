//! What the environment's variables set.

use std::path::PathBuf;
use std::time::Duration;

use laneway_store::{CustomerKey, Environment};

use crate::Error;
use crate::engine::Network;
use crate::settings::Settings;

const RETRY_FOR: &str = "LANEWAY_RETRY_FOR";
const CUSTOMER_KEY: &str = "LANEWAY_CUSTOMER_KEY";
const SOURCE_CUSTOMER_KEY: &str = "LANEWAY_SOURCE_CUSTOMER_KEY";

/// The settings that these variables hold.
///
/// # Errors
/// `ErrorKind::Usage` for a variable of our own that can't be read.
pub(crate) fn settings(environment: Environment) -> Result<Settings, Error> {
    let mut settings = Settings::default();
    let variable = |name: &str| environment.get(name);
    let proxies = laneway_lanes::Config::from_variables(variable);
    settings.network = Network {
        ca_files: variable("AWS_CA_BUNDLE").map(PathBuf::from).into_iter().collect(),
        https_proxy: proxies.https_proxy,
        http_proxy: proxies.http_proxy,
        no_proxy: proxies.no_proxy,
        ..settings.network
    };
    if let Some(text) = variable(RETRY_FOR) {
        let wrong = || Error::usage(RETRY_FOR, "is no time: a number with ms, s, m or h, as in 90s, or 0");
        settings.retry_for = duration(&text).ok_or_else(wrong)?;
    }
    let key = |name: &str| -> Result<Option<CustomerKey>, Error> {
        let Some(value) = variable(name) else { return Ok(None) };
        CustomerKey::parse(value.as_bytes()).map(Some).map_err(|e| Error::usage(name, e.to_string()))
    };
    let (customer_key, source_customer_key) = (key(CUSTOMER_KEY)?, key(SOURCE_CUSTOMER_KEY)?);
    settings.upload_journals = state_folder(&environment).map(|state| state.join("laneway/uploads"));
    settings.store = laneway_store::Settings::from_environment(environment);
    settings.store.encryption.customer_key = customer_key;
    settings.store.encryption.source_customer_key = source_customer_key;
    Ok(settings)
}

/// Where programs keep what should outlive a run, by the XDG base directory specification
/// (<https://specifications.freedesktop.org/basedir-spec/latest/>): relative paths don't count.
fn state_folder(environment: &Environment) -> Option<PathBuf> {
    let absolute = |name: &str| environment.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))
}

/// Reads a time.
fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let unit = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    let number: f64 = number.trim().parse().ok()?;
    let scale = match unit {
        "" if number == 0.0 => 1.0,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number * scale).ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::ErrorKind;

    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    fn of<const N: usize>(variables: [(&str, &str); N]) -> Result<Settings, Error> {
        settings(Environment::of(variables))
    }

    #[test]
    fn every_variable_sets_what_it_names() {
        let settings = of([
            ("AWS_CA_BUNDLE", "/ca.pem"),
            ("HTTPS_PROXY", "http://p:1"),
            ("http_proxy", "http://q:2"),
            ("NO_PROXY", "A.example, 10.0.0.0/8,"),
            ("STORAGE_EMULATOR_HOST", "localhost:4443"),
            ("GCLOUD_PROJECT", "project"),
            (RETRY_FOR, "1.5m"),
            (CUSTOMER_KEY, KEY),
            ("XDG_STATE_HOME", "/state"),
            ("HOME", "/home/u"),
        ])
        .unwrap();
        let Network { ca_files, https_proxy, http_proxy, no_proxy, .. } = settings.network;
        assert_eq!(ca_files, [Path::new("/ca.pem")]);
        assert_eq!((https_proxy.as_deref(), http_proxy.as_deref()), (Some("http://p:1"), Some("http://q:2")));
        assert_eq!(no_proxy, ["a.example", "10.0.0.0/8"]);
        assert_eq!(settings.store.gcs_endpoint.as_deref(), Some("localhost:4443"));
        assert_eq!(settings.store.project.as_deref(), Some("project"));
        assert_eq!(settings.retry_for, Duration::from_secs(90));
        assert_eq!(settings.store.encryption.customer_key, CustomerKey::parse(KEY.as_bytes()).ok());
        assert_eq!(settings.store.encryption.source_customer_key, None);
        assert_eq!(settings.upload_journals.as_deref(), Some(Path::new("/state/laneway/uploads")));
    }

    #[test]
    fn what_is_unset_or_empty_leaves_the_defaults() {
        let usual = Settings::default();
        for settings in
            [of([]).unwrap(), of([(RETRY_FOR, ""), (CUSTOMER_KEY, ""), ("AWS_CA_BUNDLE", "")]).unwrap()]
        {
            assert_eq!((settings.retry_for, settings.network), (usual.retry_for, usual.network.clone()));
            assert_eq!((settings.store.gcs_endpoint, settings.upload_journals), (None, None));
            assert_eq!(settings.store.encryption.customer_key, None);
        }
    }

    #[test]
    fn journals_lie_below_the_users_folder_where_nothing_else_is_said() {
        let at = |variables: [(&str, &str); 2]| of(variables).unwrap().upload_journals;
        let below = Some(Path::new("/home/u/.local/state/laneway/uploads"));
        assert_eq!(at([("HOME", "/home/u"), ("XDG_STATE_HOME", "")]).as_deref(), below);
        assert_eq!(at([("HOME", "/home/u"), ("XDG_STATE_HOME", "relative")]).as_deref(), below);
    }

    #[test]
    fn what_can_t_be_read_is_named_and_its_value_is_not_repeated() {
        for (name, value) in
            [(RETRY_FOR, "soon"), (CUSTOMER_KEY, "hunter2"), (SOURCE_CUSTOMER_KEY, "hunter2")]
        {
            let error = of([(name, value)]).unwrap_err();
            assert_eq!((error.kind(), error.url()), (ErrorKind::Usage, Some(name)));
            assert!(!error.to_string().contains(value), "{error}");
        }
    }

    #[test]
    fn times_have_a_unit_unless_they_are_none() {
        let seconds = |text| duration(text).map(|time| time.as_secs_f64());
        for (text, time) in
            [("0", 0.0), ("500ms", 0.5), ("90s", 90.0), ("2m", 120.0), ("2min", 120.0), ("1.5h", 5400.0)]
        {
            assert_eq!(seconds(text), Some(time), "{text}");
        }
        for text in ["", "soon", "90", "-1s", "1d", "s", "infs"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
