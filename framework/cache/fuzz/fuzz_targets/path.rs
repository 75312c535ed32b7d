//! A path and a document.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| boatswain_cache::fuzzing::path(data));
