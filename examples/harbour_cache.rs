//! The cache alone, without any controller: pods of some namespaces are mirrored, found, heard of and waited for, beside kinds known at run time and Secrets.
//!
//! The API server is simulated in the process. What one sees: a line or two for each thing done, and at the end the informers and what all of it cost the server. It takes
//! about a second.

use std::{error::Error, time::Duration};

use boatswain_apisim::ApiSim;
use boatswain_cache::{
    IndexSpec, InformerOptions, Key, Kind, Live, Predicate, Query, Reference, Scope, Selection,
    SharedInformers, StoreOptions, Subscription, Transform,
};
use boatswain_supervision::{Clock, Tree, TreeOptions, actix::System};
use k8s_openapi::api::{
    apps::v1::ReplicaSet,
    core::v1::{Pod, Secret},
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams},
    core::{DynamicObject, Expression, PartialObjectMeta},
};
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(10);

/// Three namespaces with three pods each, which a ReplicaSet owns.
fn populate(server: &ApiSim) -> Result<(), Box<dyn Error>> {
    for namespace in ["dock", "quay", "yard"] {
        server.create(
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        )?;
        for n in 0..3 {
            server.create(json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {
                    "name": format!("crane-{n}"), "namespace": namespace, "labels": {"app": if n == 0 { "lamp" } else { "crane" }},
                    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "cranes", "uid": "c1", "controller": true}],
                },
                "spec": {"nodeName": format!("node-{n}"), "containers": [{"name": "hook", "image": "hook", "env": [{"name": "TONS", "value": "40"}]}]},
            }))?;
        }
    }
    server.create(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "quay"}, "stringData": {"gate": "open sesame"},
    }))?;
    Ok(())
}

fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "ships.harbour.example.com"},
        "spec": {
            "group": "harbour.example.com", "scope": "Namespaced", "names": {"plural": "ships", "singular": "ship", "kind": "Ship", "listKind": "ShipList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            }}}],
        },
    })
}

/// Handles what waits: prints which owners the changes that matter concern.
async fn hear(heard: &Subscription, matters: &Predicate, owner: &Reference) {
    let batch = heard.next(64).await;
    for (change, cause) in batch.changes() {
        if matters.passes(change) {
            let owners = owner.keys_of(change);
            println!("heard ({cause:?}): {change:?} concerns {owners:?}");
        }
    }
    // what is not acknowledged would be told again
    batch.ack();
}

async fn program() -> Result<(), Box<dyn Error>> {
    let (server, clock) = (ApiSim::default(), Clock::system());
    populate(&server)?;
    let client = Client::new(server.service(), "default");
    let informers = SharedInformers::new(client.clone(), InformerOptions::default());
    let tree = Tree::start(informers.supervisor("informers"), TreeOptions::default()).await?;

    // two namespaces as one, then three; of every pod the environment is left out
    let pods = Selection::of::<Pod>();
    let small = StoreOptions {
        transform: Transform::default().without("spec.containers[*].env"),
        ..StoreOptions::default()
    };
    let scopes = [Scope::namespace("dock"), Scope::namespace("quay")];
    let view = informers.view_with(&pods, scopes, &small)?;
    view.add_index(IndexSpec::path("spec.nodeName"));
    let lister = view.lister::<Pod>();
    if let Err(refused) = lister.list() {
        println!("too early: {refused}");
    }
    view.wait_synced().await;
    println!("pods in two namespaces: {}", lister.list()?.len());
    let yard = informers.informer_with(pods.clone().in_namespace("yard"), small)?;
    yard.synced_within(&clock, LIMIT).await?;
    view.add(yard)?;
    println!("pods in three namespaces: {}", lister.list()?.len());

    let neighbours = lister.by_index("spec.nodeName", "node-1")?;
    println!("pods on node-1: {}", neighbours.len());
    let cranes = Query::all()
        .namespace("quay")
        .labels(Expression::Equal("app".into(), "crane".into()));
    for pod in lister.snapshot(&cranes)? {
        let pod = pod?;
        let env = pod.spec.iter().flat_map(|spec| &spec.containers);
        let env = env.filter_map(|container| container.env.as_ref()).count();
        println!(
            "a crane on the quay: {}, environments: {env}",
            pod.name_any()
        );
    }

    // who hears of a change of labels looks after the owner; creations pass, too
    let matters = Predicate::labels_changed().and(Predicate::namespace_in(["quay"]));
    let owner = Reference::to_controller(Kind::of::<ReplicaSet>());
    let heard = view.subscribe("harbour master", || {});
    hear(&heard, &matters, &owner).await;
    let api = Api::<Pod>::namespaced(client.clone(), "quay");
    let patch = Patch::Merge(json!({"metadata": {"labels": {"app": "lamp"}}}));
    let written = api
        .patch("crane-1", &PatchParams::default(), &patch)
        .await?;
    hear(&heard, &matters, &owner).await;

    // what was written is read from memory, and at the server itself
    let key = Key::of(&written);
    let quay = informers.informer(Selection::of::<Pod>().in_namespace("quay"));
    quay.within(&clock, LIMIT, quay.wait_written(&written))
        .await?;
    let cached = lister.get(&key)?.and_then(|pod| pod.resource_version());
    let live = Live::<Pod>::of(client, clock.clone())
        .get_live(&key)
        .await?;
    let live = live.and_then(|pod| pod.resource_version());
    println!("{key} cached at {cached:?}, live at {live:?}");

    // names of all pods without their insides; a kind whose definition comes late; Secrets, which no output shows
    let names = informers.informer(Selection::of::<Pod>().metadata_only());
    names.synced_within(&clock, LIMIT).await?;
    let metadata = names.lister::<PartialObjectMeta<Pod>>().list()?;
    println!("metadata only: {}", metadata.len());
    let ships = informers.informer(Kind::new("harbour.example.com", "v1", "Ship", "ships"));
    let early = Duration::from_millis(200);
    if let Err(why) = ships.synced_within(&clock, early).await {
        println!("ships: {why}");
    }
    server.create(crd())?;
    server.create(json!({
        "apiVersion": "harbour.example.com/v1", "kind": "Ship", "metadata": {"name": "argo", "namespace": "quay"}, "spec": {"crew": 50},
    }))?;
    ships.synced_within(&clock, LIMIT).await?;
    for ship in ships.lister::<DynamicObject>().list_objects()? {
        println!("{ship:?} has a crew of {:?}", ship.path("spec.crew"));
    }
    let secrets = informers.informer(Selection::of::<Secret>());
    secrets.synced_within(&clock, LIMIT).await?;
    println!("secrets: {:?}", secrets.lister::<Secret>().list_objects()?);

    // ten more users of a selection cost nothing
    let users: Vec<_> = (0..10).map(|_| informers.informer(&pods)).collect();
    for user in &users {
        user.synced_within(&clock, LIMIT).await?;
    }
    println!("INFORMER                     SCOPE  SELECTOR  OBJECTS  FRESH");
    for status in informers.status(clock.now()) {
        println!(
            "{:<28} {:<6} {:<9} {:>7}  {}",
            status.resource, status.scope, status.selector, status.objects, status.fresh
        );
    }
    let audit = server.audit();
    let of = |verb: &str| audit.iter().filter(|one| one.request.verb == verb).count();
    println!(
        "the server was asked for {} lists and {} watches",
        of("list"),
        of("watch")
    );
    tree.stop(LIMIT).await?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let about =
        "Mirrors pods and other kinds from a simulated API server, and shows what its cache knows";
    clap::Command::new("harbour_cache")
        .about(about)
        .get_matches();
    System::new().block_on(program())
}
