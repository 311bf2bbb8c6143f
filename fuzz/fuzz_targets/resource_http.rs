//! Gives the target `resource_http` to libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::run(targets::resource_http::run, data));
