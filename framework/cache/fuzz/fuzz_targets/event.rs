//! A line of a watch.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| boatswain_cache::fuzzing::event(data));
