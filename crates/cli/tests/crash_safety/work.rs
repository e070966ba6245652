//! The kinds of work that are stopped in the middle.

use std::rc::Rc;

use laneway_testkit::{Wire, random_bytes};

use crate::scene::{Bytes, Scene};

/// Moves in several requests, downwards and upwards.
const LARGE: usize = (17 << 20) + 5;
/// Files of a tree beside its large one.
const FILES: usize = 24;

pub(crate) fn bytes(seed: u64, len: usize) -> Bytes {
    Rc::new(random_bytes(seed, len))
}

/// A large object into a file that is there already.
pub(crate) fn large_download(wire: Wire, scheme: &str, options: &[&str]) -> Scene {
    let url = format!("{scheme}://bucket/large");
    let new = bytes(1, LARGE);
    Scene::new(wire, &[&["cp", &url, "out/large"][..], options].concat()).object("large", &new).changed_file(
        "out/large",
        Some(&bytes(2, 777)),
        Some(&new),
    )
}

/// A small object into a new folder's folder.
pub(crate) fn small_download(options: &[&str]) -> Scene {
    let new = bytes(1, 5000);
    Scene::new(Wire::Plain, &[&["cp", "-r", "s3://bucket/tree", "out/"][..], options].concat())
        .object("tree/a/b/small", &new)
        .file("out/beside", &bytes(3, 10))
        .changed_file("out/tree/a/b/small", None, Some(&new))
}

/// A large file into an object that is there already.
pub(crate) fn large_upload(wire: Wire, scheme: &str) -> Scene {
    let url = format!("{scheme}://bucket/large");
    let new = bytes(1, LARGE);
    Scene::new(wire, &["cp", "large", &url]).file("large", &new).changed_object(
        "large",
        Some(&bytes(2, 777)),
        Some(&new),
    )
}

/// A large file through a resumable session.
pub(crate) fn session() -> Scene {
    let new = bytes(1, LARGE);
    Scene::new(Wire::TlsH2, &["cp", "-n", "large", "gs://bucket/large"]).file("large", &new).changed_object(
        "large",
        None,
        Some(&new),
    )
}

/// What the files of a tree are before and after it has been made equal to another: changed, new, gone and the same, and a large one.
fn tree() -> Vec<(String, Option<Bytes>, Option<Bytes>)> {
    let file = |n: usize| {
        let (old, new) = (bytes(n as u64, 100 + n), bytes(1000 + n as u64, 2000 + n));
        let name = format!("d{}/f{n}", n % 5);
        match n % 4 {
            0 => (name, Some(old), Some(new)),
            1 => (name, None, Some(new)),
            2 => (name, Some(old), None),
            _ => (name, Some(old.clone()), Some(old)),
        }
    };
    let mut tree: Vec<_> = (0..FILES).map(file).collect();
    tree.push(("large".to_owned(), None, Some(bytes(1, LARGE))));
    tree
}

/// A prefix into a folder.
pub(crate) fn sync_down() -> Scene {
    let scene = Scene::new(Wire::TlsH2, &["sync", "--delete", "gs://bucket/tree", "tree"]);
    tree().iter().fold(scene, |scene, (name, old, new)| {
        let scene = match new {
            Some(new) => scene.object(&format!("tree/{name}"), new),
            None => scene,
        };
        scene.changed_file(&format!("tree/{name}"), old.as_ref(), new.as_ref())
    })
}

/// A folder into a prefix.
pub(crate) fn sync_up() -> Scene {
    let scene = Scene::new(Wire::Plain, &["sync", "--delete", "tree", "s3://bucket/tree"]);
    tree().iter().fold(scene, |scene, (name, old, new)| {
        let scene = match new {
            Some(new) => scene.file(&format!("tree/{name}"), new),
            None => scene,
        };
        scene.changed_object(&format!("tree/{name}"), old.as_ref(), new.as_ref())
    })
}

/// A prefix of one large object into a folder.
pub(crate) fn large_sync() -> Scene {
    let new = bytes(1, LARGE);
    Scene::new(Wire::Plain, &["sync", "--durable", "s3://bucket/tree", "tree"])
        .object("tree/large", &new)
        .changed_file("tree/large", None, Some(&new))
}

/// Commands of a file: downloads, uploads and copies, large and small.
pub(crate) fn commands() -> Scene {
    let large = bytes(1, LARGE);
    let mut lines = String::from("cp s3://bucket/large down/large\ncp up/large s3://bucket/up/large\n");
    let mut scene = Scene::new(Wire::Plain, &["run", "commands"])
        .object("large", &large)
        .changed_file("down/large", None, Some(&large))
        .file("up/large", &large)
        .changed_object("up/large", Some(&bytes(2, 9)), Some(&large));
    for n in 0..FILES {
        let (old, new) = (bytes(n as u64, 50), bytes(1000 + n as u64, 3000));
        lines += &format!(
            "cp s3://bucket/from/{n} down/{n}\ncp up/{n} gs://bucket/up/{n}\ncp s3://bucket/from/{n} s3://bucket/to/{n}\n"
        );
        scene = scene
            .object(&format!("from/{n}"), &new)
            .changed_file(&format!("down/{n}"), Some(&old), Some(&new))
            .file(&format!("up/{n}"), &new)
            .changed_object(&format!("up/{n}"), None, Some(&new))
            .changed_object(&format!("to/{n}"), Some(&old), Some(&new));
    }
    scene.file("commands", &Rc::new(lines.into_bytes()))
}
