//! The sources of AWS credentials, with all settings that are known before a request is made.

use std::path::PathBuf;
use std::time::Duration;

use super::temporary::UnparsedKey;

/// A source, with its name for error messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct NamedSource {
    pub(super) name: String,
    pub(super) source: AwsSource,
}

/// The source of the credentials.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum AwsSource {
    /// A key from a file or from variables.
    Keys(UnparsedKey),
    Role {
        role: IamRole,
        base: Box<NamedSource>,
    },
    WebIdentity {
        token_file: PathBuf,
        role: IamRole,
    },
    Sso(SsoRole),
    Process {
        command: String,
    },
    /// A login from `aws login`, which the AWS CLI turns into keys.
    Login {
        profile: String,
    },
    Container {
        url: String,
        token: Option<ContainerToken>,
    },
    Instance(InstanceRole),
}

/// A role to assume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct IamRole {
    pub(super) arn: String,
    pub(super) session_name: Option<String>,
    pub(super) external_id: Option<String>,
    pub(super) duration: Option<Duration>,
    pub(super) policy: Option<String>,
    pub(super) mfa_serial: Option<String>,
    pub(super) sts: StsEndpoint,
}

/// An AWS service that issues credentials.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct StsEndpoint {
    pub(super) url: String,
    pub(super) region: String,
}

/// A role in an AWS account, whose temporary credentials are fetched with the login that `aws sso login` saved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct SsoRole {
    pub(super) profile: String,
    pub(super) session: Option<String>,
    pub(super) start_url: String,
    pub(super) account_id: String,
    pub(super) role_name: String,
    pub(super) portal: String,
    pub(super) oidc: String,
    /// The folder of the login's cache file.
    pub(super) logins: PathBuf,
}

/// The token that Laneway sends to a container's endpoint.
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

/// The role of an EC2 instance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct InstanceRole {
    pub(super) endpoint: String,
    /// True if a setting names the metadata service. If false, Laneway tries the service last, after it has found no
    /// configured source.
    pub(super) is_asked_for: bool,
    /// The places that were searched before.
    pub(super) tried: Vec<String>,
}
