//! Compiles the kernels to modules of Rust. `TILEC` is the command to compile with.
use std::env;
use std::process::Command;

const KERNELS: [&str; 2] = ["../c/axpy.tile", "../c/unit.tile"];

fn main() {
    for kernel in KERNELS {
        println!("cargo::rerun-if-changed={kernel}");
    }
    println!("cargo::rerun-if-env-changed=TILEC");
    let tilec = env::var("TILEC").unwrap_or_else(|_| String::from("tilec"));
    let mut words = tilec.split_whitespace();
    let folder = env::var("OUT_DIR").expect("cargo sets it");
    let mut command = Command::new(words.next().expect("TILEC names a command"));
    command
        .args(words)
        .args(["build", "-q", "--emit", "rust", "-o"])
        .arg(folder)
        .args(KERNELS);
    let status = command
        .status()
        .unwrap_or_else(|error| panic!("{tilec}: {error}"));
    assert!(status.success(), "{tilec} does not compile {KERNELS:?}");
}
