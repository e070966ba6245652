//! Where AWS credentials may come from, with all that is to be known of it before anybody is asked.

use std::path::PathBuf;
use std::time::Duration;

/// A source with the words that errors name it by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Planned {
    pub(super) name: String,
    pub(super) source: Source,
}

/// Where the credentials come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Source {
    Keys(Keys),
    Role { role: Role, base: Box<Planned> },
    WebIdentity { token_file: PathBuf, role: Role },
    Sso(Sso),
    Process { command: String },
    Container { url: String, token: Option<ContainerToken> },
    Instance(Instance),
}

/// Keys as they stand somewhere.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) id: String,
    pub(super) secret: String,
    pub(super) token: Option<String>,
    /// `AWS_CREDENTIAL_EXPIRATION`, as written.
    pub(super) ends: Option<String>,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A role to be assumed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Role {
    pub(super) arn: String,
    pub(super) session_name: Option<String>,
    pub(super) external_id: Option<String>,
    pub(super) duration: Option<Duration>,
    pub(super) mfa_serial: Option<String>,
    pub(super) sts: Service,
}

/// A service of AWS that hands out credentials.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Service {
    pub(super) url: String,
    pub(super) region: String,
}

/// An account's role, by a login that `aws sso login` has made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Sso {
    pub(super) profile: String,
    pub(super) session: Option<String>,
    pub(super) start_url: String,
    pub(super) account_id: String,
    pub(super) role_name: String,
    pub(super) portal: String,
    pub(super) oidc: String,
    /// The folder where the login lies.
    pub(super) logins: PathBuf,
}

/// What a container's endpoint is shown.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum ContainerToken {
    Value(String),
    File(PathBuf),
}

impl std::fmt::Debug for ContainerToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Value(_) => f.write_str("Value"),
            Self::File(path) => write!(f, "File({path:?})"),
        }
    }
}

/// An EC2 instance's own role.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Instance {
    pub(super) endpoint: String,
    /// Whether somebody said that it is there. Else it is what is left when nothing is set up.
    pub(super) is_asked_for: bool,
    /// Where it was looked before.
    pub(super) tried: Vec<String>,
}
