//! People who keep changing their minds: wishes for replicas that change all the time, and the last of each is known.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use boatswain::Clock;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::{Space, eventually};

/// So many replicas are wished for at most: what the pods cost is not what is tested.
const MOST: usize = 3;

/// Some Deployments and PodAutoscalers, and a task that changes what these ask for, one after the other.
pub struct Load {
    space: Space,
    count: usize,
    ending: Arc<AtomicBool>,
    task: JoinHandle<usize>,
}

impl Load {
    /// Creates `count` pairs in `space` and changes one wish per `pause`.
    pub async fn begin(space: &Space, count: usize, pause: Duration) -> Self {
        for index in 0..count {
            space.deploy(&name(index), 0).await;
            space.autoscale(&name(index), wish(index, 0)).await;
        }
        let ending = Arc::<AtomicBool>::default();
        let task = tokio::spawn(change(space.clone(), count, pause, ending.clone()));
        Self {
            space: space.clone(),
            count,
            ending,
            task,
        }
    }

    /// How many Deployments do not ask for what is wished at this moment.
    pub async fn behind(&self) -> Result<Vec<String>, kube::Error> {
        let all = kube::api::ListParams::default();
        let wishes = self.space.autoscalers().list(&all).await?;
        let found = self.space.deployments().list(&all).await?;
        let asks = |name: &Option<String>| {
            let deployment = found.items.iter().find(|d| d.metadata.name == *name);
            deployment.and_then(|d| d.spec.replicas)
        };
        let behind = wishes.items.iter().filter(|wish| {
            let target = Some(wish.spec.target_deployment.clone());
            asks(&target) != Some(wish.spec.replicas)
        });
        Ok(behind
            .filter_map(|wish| wish.metadata.name.clone())
            .collect())
    }

    /// Changes nothing more and waits until every Deployment asks for the last wish and every status says so: nothing was lost. Returns how many
    /// changes there were.
    pub async fn end(self) -> usize {
        self.ending.store(true, SeqCst);
        let rounds = self.task.await.expect("the changes were made");
        for index in 0..self.count {
            let last = wish(index, rounds);
            self.space.has_replicas(&name(index), last).await;
            self.space.is_synced(&name(index), last).await;
        }
        rounds * self.count
    }
}

fn name(index: usize) -> String {
    format!("load-{index:02}")
}

/// Never what it was in the round before.
fn wish(index: usize, round: usize) -> i32 {
    i32::try_from((index + round) % MOST).unwrap_or_default()
}

/// Changes wishes until it is told to end, and returns how many rounds it made, whole ones only.
async fn change(space: Space, count: usize, pause: Duration, ending: Arc<AtomicBool>) -> usize {
    let clock = Clock::system();
    let mut round = 0;
    while !ending.load(SeqCst) {
        round += 1;
        for index in 0..count {
            let patch = Patch::Merge(json!({ "spec": { "replicas": wish(index, round) } }));
            eventually("the wish is heard", async || {
                let patched = space
                    .autoscalers()
                    .patch(&name(index), &PatchParams::default(), &patch)
                    .await;
                patched.map_err(|error| error.to_string())
            })
            .await;
            clock.sleep(pause).await;
        }
    }
    round
}
