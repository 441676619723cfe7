#[path = "sample.rs"] pub mod sample;
