//! Compiles the kernels to modules of Rust. `TILEC` is the command to compile with.
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

const KERNELS: [&str; 2] = ["../c/axpy.tile", "../c/unit.tile"];

fn main() {
    println!("cargo::rerun-if-env-changed=TILEC");
    for kernel in KERNELS {
        println!("cargo::rerun-if-changed={kernel}");
    }
    let tilec = env::var("TILEC").unwrap_or_else(|_| String::from("tilec"));
    let mut words = tilec.split_whitespace();
    let folder = env::var("OUT_DIR").expect("cargo sets it");
    let mut command = Command::new(words.next().expect("TILEC names a command"));
    command
        .args(words)
        .args(["build", "-q", "--emit", "rust,dep", "-o"])
        .arg(&folder)
        .args(KERNELS);
    let status = command
        .status()
        .unwrap_or_else(|error| panic!("{tilec}: {error}"));
    assert!(status.success(), "{tilec} does not compile {KERNELS:?}");
    for kernel in KERNELS {
        tell_helpers(Path::new(&folder), kernel);
    }
}

/// What a kernel uses of other files: those of a `.d` file, one on each line but the first.
fn tell_helpers(folder: &Path, kernel: &str) {
    let stem = Path::new(kernel).file_stem().expect("a file");
    let rules = fs::read_to_string(folder.join(stem).with_extension("d")).expect("tilec wrote it");
    for rule in rules.lines().skip(1) {
        println!("cargo::rerun-if-changed={}", rule.trim_end_matches(':'));
    }
}
