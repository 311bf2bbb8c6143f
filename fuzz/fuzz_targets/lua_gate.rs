//! Gives the target `lua_gate` to libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::run(targets::lua_gate::run, data));
