//! Keeps the label `example.io/keys` of every ConfigMap at its number of keys. A whole controller.

use std::{collections::BTreeMap, process::ExitCode, sync::Arc};

use boatswain::prelude::*;
use k8s_openapi::api::core::v1::ConfigMap;

const LABEL: &str = "example.io/keys";

struct Labeller;

impl Reconciler<ConfigMap> for Labeller {
    type Error = ClientError;

    async fn reconcile(&self, map: Arc<ConfigMap>, cx: &Context) -> Result<Outcome, ClientError> {
        let keys = map.data.as_ref().map_or(0, BTreeMap::len).to_string();
        if map.labels().get(LABEL) == Some(&keys) {
            return Ok(Outcome::Done);
        }
        let mut labelled = ConfigMap::clone(&map);
        labelled.labels_mut().insert(LABEL.into(), keys);
        cx.replace(&labelled).await.map(Outcome::done)
    }
}

fn main() -> ExitCode {
    Manager::from_args()
        .with(Controller::<ConfigMap>::named("size-label").reconciler(|_| Labeller))
        .run()
}
