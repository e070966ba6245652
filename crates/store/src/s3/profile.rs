//! The region that a profile names.

use std::path::PathBuf;

/// The region of a profile in the AWS configuration file; the credential sources read the rest of it themselves.
pub(super) fn region(profile: Option<&str>) -> Option<String> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let path = match set("AWS_CONFIG_FILE") {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(set("HOME")?).join(".aws/config"),
    };
    let text = std::fs::read_to_string(path).ok()?;
    let from_env = || set("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
    region_in(&text, &profile.map_or_else(from_env, str::to_owned))
}

fn region_in(text: &str, profile: &str) -> Option<String> {
    let mut inside = false;
    for line in text.lines() {
        let nested = line.starts_with([' ', '\t']);
        let line = line.trim();
        if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let name = section.trim().strip_prefix("profile ").unwrap_or(section).trim();
            inside = name == profile;
        } else if inside
            && !nested
            && let Some((name, value)) = line.split_once('=')
            && name.trim() == "region"
        {
            return Some(value.trim().to_owned()).filter(|value| !value.is_empty());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "[default]\nregion = eu-west-1\n\n[profile a b]\ns3 =\n  region = nested\nregion=us-west-2\n\
                          [services x]\nregion = no\n";

    #[test]
    fn a_profiles_region_is_found_in_its_section() {
        assert_eq!(region_in(CONFIG, "default").as_deref(), Some("eu-west-1"));
        assert_eq!(region_in(CONFIG, "a b").as_deref(), Some("us-west-2"));
        assert_eq!(region_in(CONFIG, "other"), None);
    }
}
