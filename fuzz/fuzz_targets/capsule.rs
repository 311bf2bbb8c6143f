//! Gives the target `capsule` to libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::run(targets::capsule::run, data));
