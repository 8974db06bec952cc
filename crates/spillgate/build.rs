//! Links the binary at a fixed address.
//!
//! Every run starts it twice, as launcher and as subject. A position-independent executable has
//! its tens of thousands of addresses (the MCP types and the command line) written anew at each
//! start, page by page, before `main`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |key: &str| std::env::var(format!("CARGO_CFG_TARGET_{key}"));
    if target("OS").as_deref() == Ok("linux") && target("ENV").as_deref() == Ok("gnu") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
