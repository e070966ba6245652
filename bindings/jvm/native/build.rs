//! Keeps the library in the process once a JVM has loaded it. A JVM unloads a library when the last class
//! loader that used it is garbage collected. But the engine's threads may still be running the library's code
//! at that time.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
