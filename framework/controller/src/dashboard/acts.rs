//! What people ask for through the dashboard.

use std::time::Duration;

use boatswain_cache::Key;
use boatswain_dashboard::{Action, Refused};
use boatswain_supervision::{NodeSnapshot, NodeSort, Strategy};
use boatswain_workqueue::Lane;
use futures::{FutureExt as _, future::BoxFuture};

use super::Lookout;
use crate::{
    dispatch::{ControllerHandle, Pause, Shut},
    explain::Doing,
    logging::{self, FilterError},
};

/// How long somebody who asks for a restart waits for its end; it goes on beyond that.
const WAIT: Duration = Duration::from_secs(10);
/// Objects that are told by an Event what was asked for all of them at once.
const TOLD: usize = 100;

pub(super) fn act(lookout: Lookout, action: Action) -> BoxFuture<'static, Result<String, Refused>> {
    match action {
        Action::Restart { path } => restart(lookout, path).boxed(),
        action => std::future::ready(at_once(&lookout, action)).boxed(),
    }
}

fn at_once(lookout: &Lookout, action: Action) -> Result<String, Refused> {
    let find = |name: &str| lookout.controller(name);
    match action {
        Action::Requeue { controller, key } => {
            let (controller, key) = (find(&controller)?, super::key(&key)?);
            if let Doing::Unknown { why } = controller.explain(&key).now {
                let why = format!("{key} of {} cannot run: {why}", controller.name());
                return Err(Refused::Unknown(why));
            }
            // ends its wait, and runs it if it had none
            controller.promote(&key, Lane::User);
            controller.enqueue(&key);
            controller.tell(&key, "Requeued", "Asked to run now, through the dashboard");
            let name = controller.name();
            Ok(match controller.shut() {
                Some(shut) => format!("{key} of {name} is ready to run, but no run begins: {shut}"),
                None => format!("{key} of {name} runs now"),
            })
        }
        Action::Unpark {
            controller, key, q, ..
        } => unpark(&find(&controller)?, key.as_deref(), q.as_deref()),
        Action::Pause { controller, reason } => {
            let controller = find(&controller)?;
            let by = match reason.trim() {
                "" => "the dashboard".to_owned(),
                reason => format!("the dashboard: {reason}"),
            };
            let name = controller.name();
            let stands_by = matches!(controller.shut(), Some(Shut::Standby));
            Ok(match controller.pause(by.clone()) {
                None if stands_by => format!(
                    "{name} is paused here, but this process stands by: whoever leads goes on"
                ),
                None => format!("{name} is paused"),
                Some(Pause { by: before, since }) if before == by => {
                    format!("{name} is paused already, since {since:.0} by {by}")
                }
                Some(Pause { by: before, since }) => format!(
                    "{name} is paused already, since {since:.0} by {before}; from now on it says: by {by}"
                ),
            })
        }
        Action::Resume { controller } => {
            let controller = find(&controller)?;
            let name = controller.name();
            if controller.paused().is_none() {
                return Err(Refused::Impossible(format!("{name} is not paused")));
            }
            controller.resume();
            Ok(match controller.shut() {
                Some(shut) => format!("{name} is no longer paused, but no run begins: {shut}"),
                None => format!("{name} goes on"),
            })
        }
        Action::LogLevel { filter } => {
            let set = logging::set_filter(&filter);
            set.map_err(|error| match error {
                FilterError::Nonsense { .. } => Refused::Invalid(error.to_string()),
                FilterError::Own => Refused::Impossible(error.to_string()),
            })?;
            Ok(format!("what is logged now: {filter}"))
        }
        Action::Restart { path } => Err(Refused::Unknown(path)),
    }
}

fn unpark(
    controller: &ControllerHandle,
    key: Option<&str>,
    q: Option<&str>,
) -> Result<String, Refused> {
    let parked = controller.parked().into_iter().map(|parked| parked.key);
    let meant: Vec<Key> = match (key, q) {
        (Some(key), _) => parked.filter(|parked| parked.as_str() == key).collect(),
        (None, Some(q)) => {
            let q = super::keys::part(q);
            let meant = parked.filter(|parked| parked.as_str().contains(&q));
            meant.collect()
        }
        (None, None) => parked.collect(),
    };
    if let (Some(key), true) = (key, meant.is_empty()) {
        let why = format!("{key} of {} is not parked", controller.name());
        return Err(Refused::Impossible(why));
    }
    for key in &meant {
        controller.unpark(key);
    }
    for key in meant.iter().take(TOLD) {
        controller.tell(key, "Unparked", "Unparked through the dashboard");
    }
    Ok(match &meant[..] {
        [key] => format!("{key} of {} is unparked", controller.name()),
        keys => format!("{} keys of {} are unparked", keys.len(), controller.name()),
    })
}

/// Stops the actor in good order and starts it again. One whose siblings depend on it is restarted with all of them.
async fn restart(lookout: Lookout, path: String) -> Result<String, Refused> {
    let tree = lookout.observer().snapshot();
    let Some(root) = &tree.root else {
        return Err(Refused::Impossible("the manager has ended".into()));
    };
    let path = meant(root, &path)?;
    let (operator, target) = (lookout.0.operator.clone(), path.clone());
    // whoever asked may go away in between
    let restarted = tokio::spawn(async move {
        let stopped = operator.terminate_child(&target).await;
        stopped.map_err(|error| Refused::Impossible(error.to_string()))?;
        let started = operator.restart_child(&target).await;
        started.map_err(|error| Refused::Impossible(error.to_string()))
    });
    let clock = lookout.observer().clock.clone();
    tokio::select! {
        restarted = restarted => match restarted {
            Ok(restarted) => restarted.map(|()| format!("{path} was restarted")),
            Err(error) => Err(Refused::Impossible(error.to_string())),
        },
        () = clock.sleep(WAIT) => Ok(format!("{path} is being stopped, and is started again then")),
    }
}

/// What has to be restarted so that the node at `path` is: itself where its supervisor restarts one for one, else the group it belongs to.
fn meant(root: &NodeSnapshot, path: &str) -> Result<String, Refused> {
    if root.find(path).is_none() {
        return Err(Refused::Unknown(format!("there is nothing at {path}")));
    }
    let mut path = path;
    loop {
        let Some((above, _)) = path.rsplit_once('/') else {
            let why = "the root is restarted by restarting the process";
            return Err(Refused::Impossible(why.into()));
        };
        let strategy = root.find(above).map(|above| above.kind);
        match strategy {
            Some(NodeSort::Supervisor { strategy, .. }) if strategy != Strategy::OneForOne => {
                path = above;
            }
            _ => return Ok(path.to_owned()),
        }
    }
}
