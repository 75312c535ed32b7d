//! A controller of kinds that nobody knew when it was compiled: objects with the annotation `example.io/ttl`, such as `90s` or `2h`, are deleted when they are that
//! old. When that will be is written into `example.io/expires`.
//!
//! `cargo run -p boatswain-examples --example dynamic -- v1/ConfigMap/configmaps harbour.example.com/v1/Crane/cranes`

use std::{process::ExitCode, sync::Arc, time::Duration};

use boatswain::{Kind, ManagerArgs, Right, Runnable, Span, Verb, prelude::*};
use clap::Parser;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
    core::DynamicObject,
};
use serde_json::json;

const TTL: &str = "example.io/ttl";
const EXPIRES: &str = "example.io/expires";

struct Janitor {
    kind: Kind,
}

impl Janitor {
    /// The objects beside `object`. What is written here is waited for before the key's next run.
    fn api(&self, object: &DynamicObject, cx: &Context) -> Api<DynamicObject> {
        let (client, resource) = (cx.client().clone(), self.kind.api_resource());
        match object.namespace() {
            Some(namespace) => Api::namespaced_with(client, &namespace, &resource),
            None => Api::all_with(client, &resource),
        }
    }
}

impl Reconciler<DynamicObject> for Janitor {
    type Error = kube::Error;

    async fn reconcile(
        &self,
        object: Arc<DynamicObject>,
        cx: &Context,
    ) -> Result<Outcome, kube::Error> {
        let (Some(ttl), Some(created), None) = (
            object.annotations().get(TTL),
            object.creation_timestamp(),
            &object.metadata.deletion_timestamp,
        ) else {
            return Ok(Outcome::Done);
        };
        let ttl = ttl.parse::<Span>();
        let end = ttl.and_then(|Span(ttl)| created.0.checked_add(ttl).map_err(|e| e.to_string()));
        let end = match end {
            Ok(end) => end,
            Err(why) => {
                cx.warning(object.as_ref(), "BadTtl", why.clone());
                return Ok(Outcome::GiveUp(why));
            }
        };
        let api = self.api(&object, cx);
        // nothing where the end has passed
        let left = Duration::try_from(end.duration_since(cx.wall())).unwrap_or_default();
        if left.is_zero() {
            // this object, not another one that has its name by then
            let preconditions = Preconditions {
                uid: object.uid(),
                resource_version: None,
            };
            let params = DeleteParams::default().preconditions(preconditions);
            api.delete(&object.name_any(), &params).await?;
            cx.event(object.as_ref(), "Expired", "it was as old as it may become");
            return Ok(Outcome::Done);
        };
        let expires = end.to_string();
        if object.annotations().get(EXPIRES) != Some(&expires) {
            let patch = Patch::Merge(json!({ "metadata": {
                "resourceVersion": object.resource_version(),
                "annotations": { EXPIRES: expires },
            } }));
            api.patch(&object.name_any(), &PatchParams::default(), &patch)
                .await?;
        }
        Ok(Outcome::RequeueAfter(left))
    }
}

/// The controller of one kind, to be handed to a manager.
pub fn controller(kind: Kind) -> Runnable {
    Controller::of_kind(kind.clone(), format!("janitor-{}", kind.resource()))
        .needs(Right::on_kind(kind.clone(), [Verb::Patch, Verb::Delete]))
        .reconciler(|_| Janitor { kind })
}

/// Reads `GROUP/VERSION/KIND/PLURAL`; kinds of the core group go without the first.
fn kind(text: &str) -> Result<Kind, String> {
    let parts: Vec<_> = text.split('/').collect();
    match *parts {
        _ if parts.contains(&"") => {
            Err("write it as apps/v1/Deployment/deployments, with every part".to_owned())
        }
        [version, kind, plural] => Ok(Kind::new("", version, kind, plural)),
        [group, version, kind, plural] => Ok(Kind::new(group, version, kind, plural)),
        _ => Err("write it as apps/v1/Deployment/deployments".to_owned()),
    }
}

/// Deletes objects when they are as old as their annotation example.io/ttl says
#[derive(Parser)]
struct Cli {
    /// Kinds of objects in namespaces, such as apps/v1/Deployment/deployments; they need not exist yet
    #[arg(required_unless_present = "cluster_wide", value_name = "GROUP/VERSION/KIND/PLURAL", value_parser = kind)]
    kinds: Vec<Kind>,
    /// A kind of objects outside of namespaces; may be given several times
    #[arg(long, value_name = "GROUP/VERSION/KIND/PLURAL", value_parser = kind)]
    cluster_wide: Vec<Kind>,
    #[command(flatten)]
    manager: ManagerArgs,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let cluster_wide = cli.cluster_wide.into_iter().map(Kind::cluster_wide);
    cli.kinds
        .into_iter()
        .chain(cluster_wide)
        .map(controller)
        .fold(Manager::new(cli.manager.options_or_exit()), Manager::with)
        .run()
}
