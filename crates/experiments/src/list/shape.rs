//! Keys with the skewed distribution of a data lake. Half of them are in one folder, with names in random order. A
//! quarter are in folders named after days, and the rest in many small folders.

use std::collections::BTreeSet;

/// Out of this many consecutive objects, two are in the large folder, one is in a day's folder, and one is in a user's
/// folder.
const TURN: usize = 4;
const DAYS: usize = 28;
const USERS: usize = 64;

/// Returns the name of object number `n`. Different numbers have different names.
pub(super) fn name(n: usize) -> String {
    let folder = folder(n);
    match n % TURN {
        // Multiply by an odd number, so that names are spread like hashes and no two numbers get the same name.
        0 | 1 => format!("{folder}{:016x}.json", (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        2 => format!("{folder}{n:08}.gz"),
        _ => format!("{folder}photo-{n}.jpg"),
    }
}

fn folder(n: usize) -> String {
    let turn = n / TURN;
    match n % TURN {
        0 | 1 => "events/hot/".to_owned(),
        2 => format!("logs/2026/{:02}/{:02}/", 1 + turn / DAYS % 12, 1 + turn % DAYS),
        _ => format!("users/{:02x}/", turn % USERS),
    }
}

/// Returns the folders of the first `objects` objects.
pub(super) fn folders(objects: usize) -> impl Iterator<Item = String> {
    let all = TURN * DAYS * 12 * USERS;
    let folders: BTreeSet<String> = (0..objects.min(all)).map(folder).collect();
    folders.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_one_and_lies_in_a_folder_that_is_known() {
        let names: BTreeSet<String> = (0..20_000).map(name).collect();
        assert_eq!(names.len(), 20_000);
        let folders: Vec<String> = folders(20_000).collect();
        assert_eq!(folders.len(), 1 + 12 * DAYS + USERS);
        let within = |folder: &String| names.iter().filter(|name| name.starts_with(folder)).count();
        assert_eq!(folders.iter().map(within).sum::<usize>(), 20_000);
        assert_eq!(folders.iter().map(within).max(), Some(10_000));
    }
}
