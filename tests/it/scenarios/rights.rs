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
    // the manager goes on: nothing has escalated
    assert!(
        crew.observer()
            .snapshot()
            .find("root/informers")
            .is_some_and(|node| node.restarts == 0)
    );
    crew.stop().await;
}

pub(crate) async fn what_is_asked_for_while_rights_are_missing_is_done_when_they_return(
    world: &World,
) {
    let space = Space::create(&world.client().await, "rights").await;
    world.let_work(&space).await;
    space.deploy("web", 1).await;
    space.autoscale("web", 2).await;
    let controllers = vec![podautoscaler::controller()];
    let crew = Crew::start(world.viewer_kubeconfig(), Some(&space), controllers).await;
    space.has_replicas("web", 2).await;
    space.is_synced("web", 2).await;

    world.let_no_more(&space).await;
    let failed = || crew.metric("controller_reconcile_total", &["result=\"error\""]);
    eventually("a run is refused", async || {
        if failed() > 0.0 {
            return Ok(());
        }
        // servers learn of rights a moment late
        let other = if space.replicas("web").await == Some(3) {
            4
        } else {
            3
        };
        space.ask_for("web", other).await;
        Err("everything is allowed still")
    })
    .await;
    space.ask_for("web", 5).await;
    world.let_work(&space).await;
    space.has_replicas("web", 5).await;
    space.is_synced("web", 5).await;
    assert_eq!(crew.observer().parked("podautoscaler").len(), 0);
    crew.ready().await;
    crew.stop().await;
}
