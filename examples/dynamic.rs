//! Kinds that nobody knew when this was compiled: every object of those that are named on the command line gets the label `example.io/marked`.
//!
//! `cargo run -p boatswain-examples --example dynamic -- apps/v1/Deployment/deployments v1/ConfigMap/configmaps`

use std::{process::ExitCode, sync::Arc};

use boatswain::{Kind, ManagerArgs, Right, Runnable, Verb, prelude::*};
use clap::Parser;
use kube::{
    Api,
    api::{Patch, PatchParams},
    core::{ApiResource, DynamicObject},
};
use serde_json::json;

const LABEL: &str = "example.io/marked";

struct Marker {
    resource: ApiResource,
}

impl Reconciler<DynamicObject> for Marker {
    type Error = kube::Error;

    async fn reconcile(
        &self,
        object: Arc<DynamicObject>,
        cx: &Context,
    ) -> Result<Outcome, kube::Error> {
        if object.labels().contains_key(LABEL) || object.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::Done);
        }
        // what is written through this client is waited for before the key's next run
        let (client, resource) = (cx.client().clone(), &self.resource);
        let objects: Api<DynamicObject> = match object.namespace() {
            Some(namespace) => Api::namespaced_with(client, &namespace, resource),
            None => Api::all_with(client, resource),
        };
        let patch = Patch::Merge(json!({ "metadata": {
            "resourceVersion": object.resource_version(),
            "labels": { LABEL: "true" },
        } }));
        objects
            .patch(&object.name_any(), &PatchParams::default(), &patch)
            .await
            .map(Outcome::done)
    }
}

/// The controller of one kind, to be handed to a manager.
pub fn marker(kind: Kind) -> Runnable {
    let resource = ApiResource {
        group: kind.group.clone(),
        version: kind.version.clone(),
        api_version: kind.api_version(),
        kind: kind.kind.clone(),
        plural: kind.plural.clone(),
    };
    let name = format!("mark-{}", kind.resource());
    Controller::of_kind(kind.clone(), name)
        .needs(Right::on_kind(kind, [Verb::Patch]))
        .reconciler(|_| Marker { resource })
}

/// Reads `GROUP/VERSION/KIND/PLURAL`; kinds of the core group go without the first.
fn kind(text: &str) -> Result<Kind, String> {
    match *text.split('/').collect::<Vec<_>>() {
        [version, kind, plural] => Ok(Kind::new("", version, kind, plural)),
        [group, version, kind, plural] => Ok(Kind::new(group, version, kind, plural)),
        _ => Err("write it as apps/v1/Deployment/deployments".to_owned()),
    }
}

/// Marks every object of some kinds
#[derive(Parser)]
struct Cli {
    /// Kinds of objects in namespaces, such as apps/v1/Deployment/deployments
    #[arg(required = true, value_name = "GROUP/VERSION/KIND/PLURAL", value_parser = kind)]
    kinds: Vec<Kind>,
    #[command(flatten)]
    manager: ManagerArgs,
}

fn main() -> ExitCode {
    let Cli { kinds, manager } = Cli::parse();
    let manager = Manager::new(manager.options_or_exit());
    kinds
        .into_iter()
        .map(marker)
        .fold(manager, Manager::with)
        .run()
}
