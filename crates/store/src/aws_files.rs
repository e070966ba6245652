//! AWS's shared files: `~/.aws/config` and `~/.aws/credentials`, read into one set of profiles.
//!
//! If both files set the same setting of a profile, the credentials file wins, as in botocore.

mod ini;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use self::ini::Section;
use crate::Environment;

/// The profiles, SSO sessions and services of both files.
#[derive(Clone, Default, Debug)]
pub(crate) struct AwsFiles {
    profiles: BTreeMap<String, Profile>,
    sessions: BTreeMap<String, Section>,
    services: BTreeMap<String, Section>,
    /// The files in which we looked for profiles. Errors name them.
    looked_in: Vec<PathBuf>,
    /// Files that an environment variable names and that don't exist.
    missing: Vec<(&'static str, PathBuf)>,
}

/// The settings of a profile.
#[derive(Clone, Default)]
pub(crate) struct Profile {
    /// Its name.
    pub(crate) name: String,
    values: BTreeMap<String, ProfileValue>,
    nested: BTreeMap<String, BTreeMap<String, String>>,
}

#[derive(Clone)]
struct ProfileValue {
    text: String,
    file: PathBuf,
}

/// An error in AWS's files: a file that can't be read or parsed, or a chosen profile that neither file contains.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum FilesError {
    #[error("{path}: {cause}", path = .0.display(), cause = .1)]
    Unreadable(PathBuf, String),
    #[error("{path}, line {line}: neither a section, a setting nor a comment", path = .0.display(), line = .1)]
    Malformed(PathBuf, usize),
    #[error("{by} names the profile {name:?}, which is not in {}", places(.looked_in))]
    NoProfile { by: &'static str, name: String, looked_in: Vec<PathBuf> },
}

fn places(paths: &[PathBuf]) -> String {
    let names: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    names.join(" or ")
}

/// The name of the profile in use, and the flag or variable that chose it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ProfileChoice {
    pub(crate) name: String,
    /// `--profile` or the variable's name. `None` means the default profile.
    pub(crate) by: Option<&'static str>,
}

impl ProfileChoice {
    /// Returns the profile that the caller names, or else the one that the environment names.
    pub(crate) fn of(asked: Option<&str>, environment: &Environment) -> Self {
        let named = |by: &'static str, name: &str| Self { name: name.to_owned(), by: Some(by) };
        if let Some(name) = asked.filter(|name| !name.is_empty()) {
            return named("--profile", name);
        }
        for by in ["AWS_PROFILE", "AWS_DEFAULT_PROFILE"] {
            if let Some(name) = environment.get(by) {
                return named(by, &name);
            }
        }
        Self { name: "default".to_owned(), by: None }
    }
}

impl AwsFiles {
    /// Reads both files. A missing file counts as empty.
    ///
    /// # Errors
    /// Fails if a file can't be read or is malformed.
    pub(crate) fn load(environment: &Environment) -> Result<Self, FilesError> {
        let mut files = Self::default();
        for (variable, usual) in
            [("AWS_CONFIG_FILE", "~/.aws/config"), ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials")]
        {
            let named = environment.get(variable);
            let path = environment.path(named.as_deref().unwrap_or(usual));
            files.looked_in.push(path.clone());
            match std::fs::read(&path) {
                Ok(bytes) => {
                    let text = String::from_utf8(bytes).map_err(|_| {
                        FilesError::Unreadable(path.clone(), "it isn't UTF-8 text".to_owned())
                    })?;
                    files.add(&path, &text, variable == "AWS_CONFIG_FILE")?;
                }
                Err(e) if is_absent(&e) && named.is_some() => files.missing.push((variable, path)),
                Err(e) if is_absent(&e) => {}
                Err(e) => return Err(FilesError::Unreadable(path, e.to_string())),
            }
        }
        Ok(files)
    }

    fn add(&mut self, path: &Path, text: &str, is_config: bool) -> Result<(), FilesError> {
        let sections = ini::parse(text).map_err(|line| FilesError::Malformed(path.to_owned(), line))?;
        for (title, section) in sections {
            match ini::kind_and_name(&title) {
                (None, name) if !is_config || name == "default" => self.add_profile(name, section, path),
                (Some("profile"), name) if is_config => self.add_profile(name, section, path),
                (Some("sso-session"), name) if is_config => {
                    self.sessions.insert(name.to_owned(), section);
                }
                (Some("services"), name) if is_config => {
                    self.services.insert(name.to_owned(), section);
                }
                // In the credentials file the whole title is the profile's name, even if it contains spaces: there is
                // no keyword `profile`.
                _ if !is_config => self.add_profile(&title, section, path),
                _ => {}
            }
        }
        Ok(())
    }

    fn add_profile(&mut self, name: &str, section: Section, path: &Path) {
        let profile = self.profiles.entry(name.to_owned()).or_default();
        profile.name = name.to_owned();
        for (name, text) in section.values {
            profile.values.insert(name, ProfileValue { text, file: path.to_owned() });
        }
        for (name, values) in section.nested {
            profile.nested.entry(name).or_default().extend(values);
        }
    }

    /// Returns the profile in use. It has no settings if neither a flag nor a variable names one and no profile
    /// `default` exists.
    ///
    /// # Errors
    /// Fails if a flag or variable names a profile that no file has.
    pub(crate) fn chosen(&self, chosen: &ProfileChoice) -> Result<Profile, FilesError> {
        match (self.profiles.get(&chosen.name), chosen.by) {
            (Some(profile), _) => Ok(profile.clone()),
            (None, None) => Ok(Profile { name: chosen.name.clone(), ..Profile::default() }),
            (None, Some(by)) => {
                let looked_in = self.looked_in.clone();
                Err(FilesError::NoProfile { by, name: chosen.name.clone(), looked_in })
            }
        }
    }

    /// Returns the profile of this name, to which another profile refers (`source_profile`).
    pub(crate) fn profile(&self, name: &str) -> Option<&Profile> {
        self.profiles.get(name)
    }

    /// Returns the settings of an SSO session.
    pub(crate) fn session(&self, name: &str) -> Option<&BTreeMap<String, String>> {
        self.sessions.get(name).map(|section| &section.values)
    }

    /// Returns a profile and the chain of its `source_profile`s: the second profile's keys assume the first one's role,
    /// and so on.
    pub(crate) fn with_bases<'a>(&'a self, profile: &'a Profile) -> Vec<&'a Profile> {
        let mut all = vec![profile];
        while let Some(last) = all.last().filter(|last| last.value("role_arn").is_some())
            && let Some(base) = last.value("source_profile").and_then(|name| self.profiles.get(name))
            && all.iter().all(|known| known.name != base.name)
        {
            all.push(base);
        }
        all
    }

    /// Returns the endpoint that this profile sets for a service. If it sets none, Laneway looks in its
    /// `source_profile`, and so on. So a role's temporary keys go to the same endpoint as the keys that assumed the
    /// role.
    pub(crate) fn endpoint(&self, profile: &Profile, service: &str) -> Option<String> {
        self.with_bases(profile).into_iter().find_map(|profile| self.own_endpoint(profile, service))
    }

    /// Returns the endpoint that a profile itself sets for a service. The `services` section that the profile names
    /// comes first, and then the profile's `endpoint_url` for all services.
    fn own_endpoint(&self, profile: &Profile, service: &str) -> Option<String> {
        let section = profile.value("services").and_then(|name| self.services.get(name));
        let own = section.and_then(|section| section.nested.get(service)?.get("endpoint_url").cloned());
        own.filter(|url| !url.is_empty()).or_else(|| profile.value("endpoint_url").map(str::to_owned))
    }

    /// Returns a line for an error message if a variable names a file that doesn't exist. The line names the first such
    /// variable and its file.
    pub(crate) fn missing(&self) -> Option<String> {
        let (variable, path) = self.missing.first()?;
        Some(format!("{variable} names {}, which doesn't exist", path.display()))
    }
}

impl Profile {
    /// Returns a setting's value, or `None` if the profile doesn't set it.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(|value| value.text.as_str()).filter(|text| !text.is_empty())
    }

    /// Returns the value of a nested setting, such as `addressing_style` under `s3`.
    pub(crate) fn nested(&self, above: &str, name: &str) -> Option<&str> {
        self.nested.get(above)?.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// Returns a setting as a boolean: true only if its value is `true`. Returns `None` if the profile doesn't have it.
    pub(crate) fn switch(&self, name: &str) -> Option<bool> {
        self.value(name).map(|value| value.eq_ignore_ascii_case("true"))
    }

    /// Returns the profile's name for error messages, and the file in which the profile has `setting`.
    pub(crate) fn named(&self, setting: &str) -> String {
        match self.values.get(setting) {
            Some(value) => format!("profile {:?} in {}", self.name, value.file.display()),
            None => format!("profile {:?}", self.name),
        }
    }
}

impl std::fmt::Debug for Profile {
    /// Leaves out the values, because some of them are secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} with {:?}", self.name, self.values.keys())
    }
}

/// Returns true if the user's settings say to ignore endpoints from variables and files.
pub(crate) fn ignores_endpoints(environment: &Environment, profile: &Profile) -> bool {
    let said = environment.switch("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
    said.or_else(|| profile.switch("ignore_configured_endpoint_urls")).unwrap_or(false)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The entry point of the fuzzer for AWS's shared files.
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing {
    use super::ini;

    /// Parses a configuration file. Panics if a section's name isn't part of its title, or if an error names a line that
    /// the file doesn't have.
    pub fn ini(input: &[u8]) {
        let Ok(text) = std::str::from_utf8(input) else { return };
        match ini::parse(text) {
            Ok(sections) => {
                for title in sections.keys() {
                    let (_, name) = ini::kind_and_name(title);
                    assert!(name.len() <= title.len());
                }
            }
            Err(line) => assert!((1..=text.lines().count()).contains(&line), "line {line}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes both files into a new folder, and returns an environment that finds them there.
    fn files(config: &str, credentials: &str) -> (tempfile::TempDir, Environment) {
        let home = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(home.path().join(".aws")).expect("a folder");
        std::fs::write(home.path().join(".aws/config"), config).expect("a file");
        std::fs::write(home.path().join(".aws/credentials"), credentials).expect("a file");
        let environment = Environment::of([("HOME", home.path().display().to_string())]);
        (home, environment)
    }

    #[test]
    fn a_profile_is_what_both_files_say_of_it() {
        let (_home, environment) = files(
            "[default]\nregion = a\n[profile p]\nregion = b\naws_access_key_id = config\n[q]\nregion = c\n",
            "[p]\naws_access_key_id = credentials\n[only here]\nx = y\n",
        );
        let files = AwsFiles::load(&environment).expect("files");
        let p = files.profile("p").expect("a profile");
        assert_eq!((p.value("region"), p.value("aws_access_key_id")), (Some("b"), Some("credentials")));
        assert!(files.profile("only here").is_some());
        assert!(files.profile("q").is_none(), "the config file's profiles say that they are");
    }

    #[test]
    fn a_services_section_goes_before_the_profiles_endpoint() {
        let (_home, environment) = files(
            "[profile p]\nservices = local\nendpoint_url = http://all\n[services local]\ns3 =\n  endpoint_url = http://s3\n",
            "",
        );
        let files = AwsFiles::load(&environment).expect("files");
        let p = files.profile("p").expect("a profile");
        assert_eq!(files.endpoint(p, "s3").as_deref(), Some("http://s3"));
        assert_eq!(files.endpoint(p, "sts").as_deref(), Some("http://all"));
    }

    #[test]
    fn what_a_role_is_had_for_goes_where_its_keys_do() {
        let (_home, environment) = files(
            "[profile role]\nrole_arn = a\nsource_profile = middle\n[profile middle]\nrole_arn = b\nsource_profile = keys\n\
             [profile keys]\nendpoint_url = http://keys\n[profile circle]\nrole_arn = c\nsource_profile = circle\n",
            "",
        );
        let files = AwsFiles::load(&environment).expect("files");
        let profile = |name: &str| files.profile(name).expect("a profile");
        assert_eq!(files.endpoint(profile("role"), "s3").as_deref(), Some("http://keys"));
        assert_eq!(files.endpoint(profile("circle"), "s3"), None);
    }

    #[test]
    fn a_profile_that_somebody_named_must_be_there() {
        let (_home, environment) = files("[profile p]\nregion = b\n", "");
        let files = AwsFiles::load(&environment).expect("files");
        let chosen = ProfileChoice::of(None, &Environment::of([("AWS_PROFILE", "typo")]));
        let error = files.chosen(&chosen).expect_err("no such profile").to_string();
        assert!(
            error.contains("AWS_PROFILE") && error.contains("typo") && error.contains(".aws/config"),
            "{error}"
        );
        assert!(files.chosen(&ProfileChoice::of(None, &environment)).is_ok(), "nobody named the default one");
        assert_eq!(ProfileChoice::of(Some("p"), &environment).by, Some("--profile"));
    }

    #[test]
    fn a_malformed_file_is_named_with_its_line_and_without_what_stands_there() {
        let (_home, environment) = files("[default]\nhush hush\n", "");
        let error = AwsFiles::load(&environment).expect_err("malformed").to_string();
        assert!(error.contains(".aws/config, line 2") && !error.contains("hush"), "{error}");
    }

    #[test]
    fn a_file_that_a_variable_names_and_that_is_missing_is_remembered() {
        let environment = Environment::of([("AWS_CONFIG_FILE", "/nowhere/config"), ("HOME", "/nowhere")]);
        let missing = AwsFiles::load(&environment).expect("no files").missing().expect("a file is missing");
        assert_eq!(missing, "AWS_CONFIG_FILE names /nowhere/config, which doesn't exist");
    }
}
