//! A custom resource that owns a ConfigMap: `Greeting` has one called after it, which is repaired when someone changes or deletes
//! it and which Kubernetes' own garbage collector removes with the Greeting.
//!
//! `--crd` prints the CustomResourceDefinition to install first.

use std::{collections::BTreeMap, process::ExitCode, sync::Arc};

use boatswain::prelude::*;
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{CustomResource, CustomResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What to say to whom.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.io", version = "v1", kind = "Greeting", namespaced)]
pub struct GreetingSpec {
    /// The name that is greeted.
    pub name: String,
}

struct Greeter {
    maps: Lister<ConfigMap>,
}

impl Reconciler<Greeting> for Greeter {
    type Error = ReconcileError;

    async fn reconcile(
        &self,
        greeting: Arc<Greeting>,
        cx: &Context,
    ) -> Result<Outcome, ReconcileError> {
        let data = BTreeMap::from([("text".to_owned(), format!("Hello, {}!", greeting.spec.name))]);
        let owner = greeting
            .controller_owner_ref(&())
            .into_iter()
            .collect::<Vec<_>>();
        if let Some(map) = self.maps.get(&key_of(greeting.as_ref()))?
            && map.data.as_ref() == Some(&data)
            && map.owner_references() == owner
        {
            return Ok(Outcome::Done);
        }
        let wanted = ConfigMap {
            metadata: ObjectMeta {
                name: Some(greeting.name_any()),
                namespace: greeting.namespace(),
                owner_references: Some(owner),
                ..ObjectMeta::default()
            },
            data: Some(data),
            ..ConfigMap::default()
        };
        cx.apply(&wanted).await?;
        Ok(Outcome::Done)
    }
}

/// The controller, to be handed to a manager.
pub fn controller() -> boatswain::Runnable {
    Controller::<Greeting>::named("greeter")
        .owns::<ConfigMap>()
        .reconciler(|wiring| Greeter {
            maps: wiring.lister::<ConfigMap>(),
        })
}

fn main() -> ExitCode {
    if std::env::args().any(|arg| arg == "--crd") {
        return match serde_saphyr::to_string(&Greeting::crd()) {
            Ok(yaml) => {
                print!("{yaml}");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("error: cannot print the CustomResourceDefinition: {error}");
                ExitCode::FAILURE
            }
        };
    }
    Manager::from_args().with(controller()).run()
}
