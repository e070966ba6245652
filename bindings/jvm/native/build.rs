//! Keeps the library in the process once a JVM has loaded it. The JVM closes it when the last class loader
//! that used it is garbage collected. But the engine's threads may still run its code then.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
