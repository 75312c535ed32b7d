use std::time::Duration;

use boatswain_supervision::Clock;

use super::StreamLists;

#[test]
fn a_refusal_is_remembered_for_an_hour_by_server_version_and_resource_and_by_every_clone() {
    let (memory, now) = (StreamLists::new(), Clock::system().now());
    assert!(!memory.concern("pods", now));
    memory
        .clone()
        .refuse("v1.20.2", "pods", "the server refuses it with 422", now);
    let later = now + Duration::from_secs(3599);
    assert!(memory.concern("pods", later) && !memory.concern("nodes", later));
    let reason = memory.refused("v1.20.2", "pods", later);
    assert_eq!(reason.as_deref(), Some("the server refuses it with 422"));
    assert_eq!(memory.refused("v1.33.0", "pods", later), None);
    assert_eq!(memory.refused("v1.20.2", "nodes", later), None);
    let after = now + Duration::from_secs(3600);
    assert_eq!(memory.refused("v1.20.2", "pods", after), None);
    assert!(!memory.concern("pods", after));
}

#[test]
fn it_forgets_the_oldest_of_many_servers() {
    let (memory, now) = (StreamLists::new(), Clock::system().now());
    for minor in 0..20 {
        let later = now + Duration::from_secs(minor);
        memory.refuse(&format!("v1.{minor}"), "pods", "no", later);
    }
    let known = |minor: u64| {
        memory
            .refused(&format!("v1.{minor}"), "pods", now)
            .is_some()
    };
    assert_eq!((0..20).filter(|minor| known(*minor)).count(), 8);
    assert!(!known(11) && known(12) && known(19));
}
