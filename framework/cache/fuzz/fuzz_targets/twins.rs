//! An object behind one that it may be like.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| boatswain_cache::fuzzing::twins(data));
