//! Fetches the temporary credentials of an EC2 instance's role from its metadata service, version 2
//! (<https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-metadata-security-credentials.html>).

use http::Method;
use laneway_lanes::Lanes;

use super::super::deadline::explained_when_slow;
use super::super::failure::CredentialFailure;
use super::super::presence::{Cloud, first_answer, is_there};
use super::super::request::CredentialRequest;
use super::source::InstanceRole;
use super::temporary::answered;
use crate::ExpiringKey;

/// The lifetime of a session with the metadata service, in seconds. It is the maximum that the service permits.
const SESSION_S: &str = "21600";

/// The hint for a metadata service that accepts connections but never answers the request for a session. By default the
/// service's answers can travel only one network hop, and a container is two hops away
/// (<https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html>).
const HOPS: &str = "in a container it needs a hop limit of 2 (aws ec2 modify-instance-metadata-options \
                    --http-put-response-hop-limit 2); AWS_EC2_METADATA_DISABLED=true turns it off";

const ROLES: &str = "latest/meta-data/iam/security-credentials/";

/// Fetches the temporary credentials of the instance's role. Laneway treats the source as absent if no setting names
/// the metadata service and the service is unreachable, turned off or without a role. Any other failure is an error.
///
/// # Errors
/// Returns the reason why there are none.
pub(super) async fn keys(
    name: &str,
    instance: &InstanceRole,
    lanes: &Lanes,
) -> Result<ExpiringKey, CredentialFailure> {
    let unusable = |cause: String| CredentialFailure::unusable(name, cause);
    let nothing = |cause: &str| {
        if instance.is_asked_for {
            return CredentialFailure::unusable(name, format!("{}: {cause}", instance.endpoint));
        }
        let last = format!("{name} ({cause})");
        CredentialFailure::Nothing(instance.tried.iter().cloned().chain([last]).collect())
    };
    let session = CredentialRequest::new(Method::PUT, &format!("{}/latest/api/token", instance.endpoint))
        .map_err(unusable)?;
    let session = session.header("x-aws-ec2-metadata-token-ttl-seconds", SESSION_S).map_err(unusable)?;
    let (host, port) = session.host();
    let begun = if instance.is_asked_for {
        explained_when_slow(name, HOPS, session.send(lanes)).await
    } else if is_there(host, port, Cloud::Aws).await {
        let begun = explained_when_slow(name, HOPS, first_answer(&session, lanes)).await;
        begun.ok_or_else(|| nothing("nothing answers in time"))?
    } else {
        return Err(nothing("nothing answers"));
    };
    let begun = begun.map_err(unusable)?;
    match begun.status.as_u16() {
        200..=299 => {}
        403 => return Err(nothing("it is turned off")),
        404 | 405 => return Err(nothing("it doesn't support sessions (IMDSv2)")),
        // On another cloud, a different server may answer at this address. So this answer means only that EC2's service
        // is absent.
        status @ 400..=499 => return Err(nothing(&format!("it answered {status}"))),
        status => return Err(unusable(format!("{} answered {status}", session.place()))),
    }
    let token = String::from_utf8_lossy(&begun.body).trim().to_owned();
    let asked = |path: &str| {
        let ask = CredentialRequest::get(&format!("{}/{path}", instance.endpoint))?;
        ask.header("x-aws-ec2-metadata-token", &token)
    };
    let roles = asked(ROLES).map_err(unusable)?;
    let listed = roles.send(lanes).await.map_err(unusable)?;
    if listed.status.as_u16() == 404 {
        return Err(nothing("the instance has no role"));
    }
    if !listed.status.is_success() {
        return Err(unusable(format!("{} answered {}", roles.place(), listed.status.as_u16())));
    }
    let role = listed.text().split_whitespace().next().map(str::to_owned);
    let role = role.ok_or_else(|| nothing("the instance has no role"))?;
    let keys = asked(&format!("{ROLES}{}", crate::encode::path(&role))).map_err(unusable)?;
    let answer = keys.send(lanes).await.map_err(unusable)?;
    answered(&answer, &keys.place()).map_err(unusable)
}
