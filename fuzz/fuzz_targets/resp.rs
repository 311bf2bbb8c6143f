//! Gives the target `resp` to libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::run(targets::resp::run, data));
