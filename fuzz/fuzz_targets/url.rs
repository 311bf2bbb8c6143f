//! Gives the target `url` to libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::run(targets::url::run, data));
