//! A list body.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| boatswain_cache::fuzzing::list(data));
