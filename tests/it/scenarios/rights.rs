//! What one is told when rights are missing.

use boatswain_tests::{Crew, Space, World, eventually};

pub(crate) async fn a_user_without_rights_is_told_which_verb_and_resource_is_forbidden(
    world: &World,
) {
    let space = Space::create(&world.client().await, "viewer").await;
    let crew = Crew::start(
        world.viewer_kubeconfig(),
        Some(&space),
        vec![podautoscaler::controller()],
    )
    .await;
    for resource in ["deployments", "podautoscalers"] {
        eventually("readiness names what is forbidden", async || {
            let (ready, page) = crew.observer().ready();
            assert!(!ready, "{page}");
            let named = page.lines().any(|line| {
                line.starts_with("[-]informer/")
                    && line.contains("forbidden")
                    && line.contains("list")
                    && line.contains(resource)
            });
            if named { Ok(()) } else { Err(page) }
        })
        .await;
    }
    let (_, page) = crew.observer().ready();
    let degraded = page
        .lines()
        .find(|line| line.starts_with("[-]controller/podautoscaler failed"));
    assert!(
        degraded.is_some_and(|line| line.contains("forbidden")),
        "{page}"
    );
    // the manager goes on: nothing has escalated
    assert!(
        crew.observer()
            .snapshot()
            .find("root/informers")
            .is_some_and(|node| node.restarts == 0)
    );
    crew.stop().await;
}
