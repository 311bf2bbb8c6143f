//! Gives the target `zookeeper` to libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::run(targets::zookeeper::run, data));
