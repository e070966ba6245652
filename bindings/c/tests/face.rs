//! A C program uses the library only through the core's numbers, packed bytes and tables.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn a_program_in_c_puts_its_memory_and_runs_a_job() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("face");
    // Cargo builds the library in this test's folder.
    let library = library(env::current_exe().expect("this test").parent().expect("its folder"));
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let compiled = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Werror", "-o"])
        .args([&program, &tests.join("face.c"), &library])
        .status();
    let compiled = match compiled {
        Ok(compiled) => compiled,
        Err(error) => return eprintln!("skipped a_program_in_c_puts_its_memory_and_runs_a_job: cc: {error}"),
    };
    assert!(compiled.success(), "cc: {compiled}");

    let tree = folder.path().join("tree");
    fs::create_dir(&tree).expect("a folder");
    for (name, bytes) in [("a", "first"), ("b", "second"), ("c.tmp", "left out")] {
        fs::write(tree.join(name), bytes).expect("a file");
    }
    let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
    server.create_bucket("lake").expect("a bucket");
    let run = Command::new(&program)
        .args([server.url().as_str(), "s3://lake/"])
        .arg(&tree)
        .env("LD_LIBRARY_PATH", library.parent().expect("its folder"))
        .env("DYLD_LIBRARY_PATH", library.parent().expect("its folder"))
        .output()
        .expect("the program runs");
    assert!(run.status.success(), "{}: {}", run.status, String::from_utf8_lossy(&run.stderr));

    let bytes = |key| server.store().read("lake", key).ok();
    assert_eq!(bytes("from-c").as_deref(), Some(&b"out of the memory of C"[..]));
    assert_eq!(bytes("a").as_deref(), Some(&b"first"[..]));
    assert_eq!(bytes("b").as_deref(), Some(&b"second"[..]));
    assert!(bytes("c.tmp").is_none(), "a filter left it out");
}

/// Returns the path of the C library.
fn library(folder: &Path) -> PathBuf {
    let name = format!("{}laneway_c{}", env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX);
    let library = folder.join(&name);
    assert!(library.exists(), "{} is not there", library.display());
    library
}
