//! A custom resource that owns a ConfigMap: `Greeting` has one called after it, which is repaired when someone changes or deletes
//! it and which Kubernetes' own garbage collector removes with the Greeting.
//!
//! `--crd` prints the CustomResourceDefinition to install first.

use std::{collections::BTreeMap, process::ExitCode, sync::Arc};

use boatswain::{own, prelude::*};
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
        let mut wanted = ConfigMap {
            metadata: ObjectMeta {
                name: Some(greeting.name_any()),
                ..ObjectMeta::default()
            },
            data: Some(data),
            ..ConfigMap::default()
        };
        own::control(greeting.as_ref(), &mut wanted)?;
        if let Some(map) = self.maps.get(&key_of(greeting.as_ref()))?
            && map.data == wanted.data
            && map.owner_references() == wanted.owner_references()
        {
            return Ok(Outcome::Done);
        }
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
