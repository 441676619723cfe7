//! Compiles the kernel to a module of Rust. `TILEC` is the command to compile with.
use std::env;
use std::process::Command;

const KERNEL: &str = "../c/axpy.tile";

fn main() {
    println!("cargo::rerun-if-changed={KERNEL}");
    println!("cargo::rerun-if-env-changed=TILEC");
    let tilec = env::var("TILEC").unwrap_or_else(|_| String::from("tilec"));
    let mut words = tilec.split_whitespace();
    let folder = env::var("OUT_DIR").expect("cargo sets it");
    let mut command = Command::new(words.next().expect("TILEC names a command"));
    command.args(words).args(["build", "-q", KERNEL, "--emit", "rust", "-o"]).arg(folder);
    let status = command.status().unwrap_or_else(|error| panic!("{tilec}: {error}"));
    assert!(status.success(), "{tilec} does not compile {KERNEL}");
}
