//! Objects a controller owns.

use boatswain_tests::{Crew, Space, World, eventually, install};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

// the lesson itself is what is tested
#[path = "../../../examples/owned_configmap.rs"]
#[allow(dead_code, unreachable_pub, reason = "its main is not called here")]
mod lesson;
use lesson::{Greeting, GreetingSpec};

pub(crate) async fn an_owned_configmap_is_repaired_and_collected_with_its_owner(world: &World) {
    let client = world.client().await;
    install::<Greeting>(&client).await;
    let space = Space::create(&client, "owned").await;
    let crew = Crew::start(world.kubeconfig(), Some(&space), vec![lesson::controller()]).await;
    crew.ready().await;

    let greetings = Api::<Greeting>::namespaced(client, &space.name);
    let greeting = Greeting::new(
        "hello",
        GreetingSpec {
            name: "World".into(),
        },
    );
    greetings
        .create(&PostParams::default(), &greeting)
        .await
        .expect("a Greeting");
    says(&space, "Hello, World!").await;

    let vandal = Patch::Merge(json!({ "data": { "text": "rubbish" } }));
    space
        .config_maps()
        .patch("hello", &PatchParams::default(), &vandal)
        .await
        .expect("patched");
    says(&space, "Hello, World!").await;
    space
        .config_maps()
        .delete("hello", &DeleteParams::default())
        .await
        .expect("deleted");
    says(&space, "Hello, World!").await;

    greetings
        .delete("hello", &DeleteParams::background())
        .await
        .expect("deleted");
    eventually("the garbage collector removes what was owned", async || {
        let left: Option<ConfigMap> = space
            .config_maps()
            .get_opt("hello")
            .await
            .map_err(|e| e.to_string())?;
        left.map_or(Ok(()), |map| Err(format!("{:?}", map.metadata)))
    })
    .await;
    crew.stop().await;
}

async fn says(space: &Space, text: &str) {
    eventually("the ConfigMap says it", async || {
        let map = space
            .config_maps()
            .get_opt("hello")
            .await
            .map_err(|e| e.to_string())?;
        let data = map.and_then(|map| map.data).unwrap_or_default();
        if data.get("text").map(String::as_str) == Some(text) {
            Ok(())
        } else {
            Err(format!("{data:?}"))
        }
    })
    .await;
}
