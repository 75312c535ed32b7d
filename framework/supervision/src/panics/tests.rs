use std::panic::panic_any;
use std::sync::Arc;

use super::{guard, install_hook};
use crate::exit::Exit;

fn caught(code: impl FnOnce()) -> (String, Option<String>) {
    install_hook();
    match guard(&Arc::from("root/a"), code) {
        Err(Exit::Panic { message, location }) => (message, location),
        other => panic!("expected a panic, got {other:?}"),
    }
}

#[test]
fn text_and_place_of_a_panic_are_kept() {
    let line = line!() + 1;
    let (message, location) = caught(|| panic!("{} barrels", 3));
    assert_eq!(message, "3 barrels");
    let location = location.unwrap();
    assert!(
        location.starts_with(&format!("{}:{line}:", file!())),
        "{location}"
    );
}

#[test]
fn a_panic_without_text_is_still_an_exit() {
    assert_eq!(caught(|| panic_any(42)).0, "a value that is no text");
}

#[test]
fn a_payload_whose_drop_panics_does_no_harm() {
    struct Trap;
    impl Drop for Trap {
        fn drop(&mut self) {
            panic!("sprung");
        }
    }
    assert_eq!(caught(|| panic_any(Trap)).0, "a value that is no text");
    assert_eq!(caught(|| panic!("next")).0, "next");
}

#[test]
fn what_does_not_panic_passes() {
    assert_eq!(guard(&Arc::from("root/a"), || 7), Ok(7));
}
