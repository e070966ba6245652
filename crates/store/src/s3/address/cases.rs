//! Runs the test cases that AWS publishes for its endpoint rules. They are in `cases.txt`.

use super::*;

struct Case<'a> {
    region: &'a str,
    bucket: &'a str,
    settings: Settings,
    expected: &'a str,
}

fn cases() -> impl Iterator<Item = Case<'static>> {
    let lines = include_str!("cases.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let [region, bucket, flags, endpoint, expected] = fields[..] else { panic!("{line}") };
        let has = |flag: char| flags.contains(flag).then_some(true);
        let endpoint = Some(endpoint).filter(|endpoint| *endpoint != "-").map(str::to_owned);
        let settings = Settings {
            // By default, AWS's rules put the bucket into the host name of any endpoint. Laneway does so only on AWS,
            // so the cases set it.
            s3_path_style: has('p').or(endpoint.is_some().then_some(false)),
            s3_endpoint: endpoint,
            s3_dualstack: has('d'),
            s3_fips: has('f'),
            s3_accelerate: has('a'),
            ..Settings::default()
        };
        Case { region, bucket: bucket.trim_matches('*'), settings, expected }
    })
}

fn answer(case: &Case<'_>) -> Result<String, Error> {
    let place = Address::new(&case.settings)?.locate(case.bucket, case.region, "")?;
    let url = format!("{}{}", place.origin, place.target);
    let session = if is_directory(case.bucket) { " session" } else { "" };
    Ok(format!("{} {} {}{session}", url.trim_end_matches('/'), place.service, place.region))
}

#[test]
fn addresses_are_those_of_awss_endpoint_rules() {
    let (mut differ, mut run) = (Vec::new(), 0);
    for case in cases() {
        run += 1;
        let found = answer(&case);
        let same = match &found {
            Ok(found) => found == case.expected,
            Err(error) => case.expected == "-" && error.is_invalid(),
        };
        if !same {
            differ.push(format!("{} {} {:?}: {found:?}", case.region, case.bucket, case.settings));
            differ.push(format!("    not {}", case.expected));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
    assert!(run >= 150, "{run} cases");
}
