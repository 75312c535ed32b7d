use super::*;

fn list(resource: &str) -> Attributes {
    Attributes {
        verb: "list",
        resource: resource.into(),
        ..Attributes::default()
    }
}

fn code(faults: &Faults, request: &Attributes) -> Option<u16> {
    match faults.judge(request, &mut 0) {
        Fate::Refuse(failure, _) => Some(failure.code),
        _ => None,
    }
}

#[test]
fn a_rule_applies_to_what_it_matches_and_as_often_as_it_says() {
    let faults = Faults::default();
    faults.reject(
        Matcher::any().verb("list").resource("pods"),
        Rejection::new(503).times(2),
    );
    assert_eq!(code(&faults, &list("nodes")), None);
    assert_eq!(
        [(); 3].map(|()| code(&faults, &list("pods"))),
        [Some(503), Some(503), None]
    );
}

#[test]
fn a_delayed_request_meets_the_rules_behind_the_delay() {
    let faults = Faults::default();
    faults.delay(Matcher::any(), Duration::from_secs(3), 2);
    faults.reject(Matcher::any(), Rejection::new(500));
    let mut passed = 0;
    assert!(matches!(
        faults.judge(&list("pods"), &mut passed),
        Fate::Wait(_)
    ));
    assert!(matches!(
        faults.judge(&list("pods"), &mut passed),
        Fate::Refuse(..)
    ));
}

#[test]
fn a_hold_holds_until_it_is_dropped() {
    let faults = Faults::default();
    let hold = faults.hang(Matcher::any());
    assert!(matches!(faults.judge(&list("pods"), &mut 0), Fate::Hang));
    faults.clear();
    assert!(
        matches!(faults.judge(&list("pods"), &mut 0), Fate::Hang),
        "clearing leaves what is held"
    );
    drop(hold);
    assert!(matches!(faults.judge(&list("pods"), &mut 0), Fate::Pass));
}

#[test]
fn only_watches_opened_before_a_drop_are_dropped() {
    let faults = Faults::default();
    let before = faults.moment();
    faults.drop_watches_of(Matcher::any().resource("pods"));
    assert!(faults.dropped_since(before, &list("pods")));
    assert!(!faults.dropped_since(before, &list("nodes")));
    assert!(!faults.dropped_since(faults.moment(), &list("pods")));
}
