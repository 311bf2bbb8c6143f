//! Gives the target `etcd_http2` to libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::run(targets::etcd_http2::run, data));
