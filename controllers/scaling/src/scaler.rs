//! One run towards the wanted number, and what is remembered of those before it.

use std::{fmt, sync::Arc, time::Duration};

use boatswain::{Context, Key, ReconcileError, key_of};
use dashmap::DashMap;
use k8s_openapi::api::apps::v1::Deployment;

use crate::{
    policy::{Decision, Rivalry, Wanted},
    rival::rival_of,
};

/// How often a write is tried again within one run after a conflict; the next run goes on from there.
const CONFLICTS: usize = 5;

/// Scales for one controller: its reconciler keeps one. It remembers of each key of the controller what was written and who undid it.
pub struct Scaler {
    controller: &'static str,
    memory: DashMap<Key, Memory>,
}

/// What is remembered of one key.
#[derive(Default)]
struct Memory {
    rivalry: Rivalry,
    /// When the first write of the replicas was begun: a rival wrote after that. Servers before 1.22 do not renew the time of who writes the same again.
    wrote_at: Option<jiff::Timestamp>,
    /// Who disagrees, as far as it is known.
    rival: Rival,
}

#[derive(Clone, Default)]
struct Rival {
    manager: Option<String>,
    /// What it wants.
    replicas: i32,
}

/// What is wanted of a Deployment.
#[derive(Clone, Debug)]
pub struct Goal {
    /// How many replicas it is to ask for.
    pub replicas: i32,
    /// The generation of the object that says so; absent where the number alone is the wish.
    pub generation: Option<i64>,
    /// Who says so, for Events on the Deployment: `PodAutoscaler shop/web`.
    pub wisher: String,
}

/// What a run came to.
#[derive(Debug)]
pub struct Converged {
    /// The Deployment as last seen.
    pub target: Option<Arc<Deployment>>,
    /// How it stands.
    pub state: State,
    /// The write that was made, if one was accepted.
    pub scaled: Option<Scaled>,
    /// When to run again though nothing changes.
    pub again: Option<Duration>,
}

/// How a Deployment stands to what is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It asks for the wanted number.
    InSync,
    /// There is none, or it is being deleted.
    Missing {
        /// Whether it is still there.
        deleting: bool,
    },
    /// Someone else wants another number.
    Contended(Contended),
}

/// For whoever asks what a run decided.
impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InSync => f.write_str("InSync: the Deployment asks for the wanted number"),
            Self::Missing { deleting: false } => f.write_str("Missing: there is no Deployment"),
            Self::Missing { deleting: true } => {
                f.write_str("Missing: the Deployment is being deleted")
            }
            Self::Contended(contended) => write!(f, "Contended: {contended}"),
        }
    }
}

/// Someone else keeps setting another number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contended {
    /// The Deployment's name.
    pub deployment: String,
    /// The field manager of the other one's writes, where the server told it.
    pub rival: Option<String>,
    /// What it sets.
    pub theirs: i32,
    /// What is wanted.
    pub ours: i32,
    /// Whether the Deployment is left to the rival for now; otherwise it is the rival that has stepped back.
    pub stepped_back: bool,
    /// Whether this is news, which was told by a warning on the Deployment and is worth one on other objects.
    pub begins: bool,
}

/// A write of the replicas that was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scaled {
    /// What the Deployment asked for.
    pub from: i32,
    /// What it asks for now.
    pub to: i32,
    /// When.
    pub at: jiff::Timestamp,
}

/// For conditions and Events.
impl fmt::Display for Contended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            deployment,
            rival,
            theirs,
            ours,
            stepped_back,
            ..
        } = self;
        let rival = rival
            .as_deref()
            .unwrap_or("someone whose writes carry no field manager");
        write!(
            f,
            "{rival} keeps setting Deployment {deployment} to {theirs} replicas where {ours} are wanted; "
        )?;
        f.write_str(match stepped_back {
            true => "this controller has stepped back",
            false => "this controller keeps setting it back",
        })?;
        f.write_str(": let only one of them scale it")
    }
}

impl Scaler {
    /// For the controller of this name, which is the field manager of its writes.
    pub fn new(controller: &'static str) -> Self {
        Self {
            controller,
            memory: DashMap::new(),
        }
    }

    /// Nothing is wanted by `key` any more: what comes after this starts with a clean slate.
    pub fn forget(&self, key: &Key) {
        self.memory.remove(key);
    }

    /// Brings the Deployment called `name`, of which the cache has `seen`, to what `goal` says. Who disagrees is told by a warning on it; of what was written
    /// the caller tells, who knows why.
    ///
    /// # Errors
    ///
    /// When the server refuses, cannot be reached, or the Deployment changes faster than it can be written.
    ///
    /// # Cancellation safety
    ///
    /// When dropped a write may have happened; the next run starts from what is there.
    pub async fn converge(
        &self,
        cx: &Context,
        name: &Key,
        seen: Option<Arc<Deployment>>,
        goal: &Goal,
    ) -> Result<Converged, ReconcileError> {
        let run = Run {
            scaler: self,
            cx,
            name,
            goal,
        };
        run.converge(seen).await
    }
}

/// One run.
struct Run<'a> {
    scaler: &'a Scaler,
    cx: &'a Context,
    name: &'a Key,
    goal: &'a Goal,
}

impl Run<'_> {
    async fn converge(
        &self,
        mut target: Option<Arc<Deployment>>,
    ) -> Result<Converged, ReconcileError> {
        let mut conflicts = 0;
        let mut scaled = None;
        loop {
            let found = match &target {
                Some(deployment) if deployment.metadata.deletion_timestamp.is_none() => deployment,
                missing => {
                    let deleting = missing.is_some();
                    let state = State::Missing { deleting };
                    return Ok(ended(target, state, scaled, None));
                }
            };
            let wanted = Wanted {
                generation: self.goal.generation,
                target: found.metadata.uid.clone(),
                replicas: self.goal.replicas,
            };
            // the API server's default; after a write it is what was written
            let current = match scaled {
                Some(Scaled { to, .. }) => to,
                None => found.spec.replicas.unwrap_or(1),
            };
            let decision = self.memory(|m| m.rivalry.decide(&wanted, current, self.cx.now()));
            let (from, to, last) = match decision {
                Decision::InSync => return Ok(ended(target, State::InSync, scaled, None)),
                Decision::Wait { left } => {
                    return Ok(ended(target, State::InSync, scaled, Some(left)));
                }
                Decision::Upheld { left, begins } => {
                    let state = self.contended(found, false, begins);
                    return Ok(ended(target, state, scaled, Some(left)));
                }
                Decision::Hold { left, begins } => {
                    if begins {
                        self.find_rival(current).await?;
                    }
                    let state = self.contended(found, true, begins);
                    return Ok(ended(target, state, scaled, Some(left)));
                }
                Decision::Scale { from, to, last } => (from, to, last),
            };
            if last {
                // the write takes the field from the rival, and its name with it
                self.find_rival(from).await?;
            }
            // a rival may answer before the server's answer is here
            let asked_at = self.cx.wall();
            match self.cx.scale(found.as_ref(), to).await {
                Ok(()) => scaled = Some(self.scaled(&wanted, from, asked_at)),
                Err(error) if error.is_conflict() || error.is_not_found() => {
                    conflicts += 1;
                    if conflicts > CONFLICTS {
                        return Err(error.into());
                    }
                    target = self.cx.get_live::<Deployment>(self.name).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Takes note of an accepted write.
    fn scaled(&self, wanted: &Wanted, from: i32, asked_at: jiff::Timestamp) -> Scaled {
        self.memory(|memory| {
            memory.rivalry.wrote(wanted, self.cx.now());
            memory.wrote_at.get_or_insert(asked_at);
        });
        let to = wanted.replicas;
        tracing::info!(deployment = %self.name, from, to, "scaled");
        let at = self.cx.wall();
        Scaled { from, to, at }
    }

    /// Asks the server, for the cache keeps no managedFields, who set the replicas to `theirs`.
    async fn find_rival(&self, theirs: i32) -> Result<(), ReconcileError> {
        let live = self.cx.get_live::<Deployment>(self.name).await?;
        let since = self.memory(|memory| memory.wrote_at);
        let manager = live.and_then(|live| rival_of(self.scaler.controller, &live, since));
        self.memory(|memory| {
            memory.rival = Rival {
                manager,
                replicas: theirs,
            };
        });
        Ok(())
    }

    fn contended(&self, deployment: &Deployment, stepped_back: bool, begins: bool) -> State {
        let Rival { manager, replicas } = self.memory(|memory| memory.rival.clone());
        let contended = Contended {
            deployment: key_of(deployment).name().to_owned(),
            rival: manager,
            theirs: replicas,
            ours: self.goal.replicas,
            stepped_back,
            begins,
        };
        if begins {
            let rival = contended.rival.as_deref();
            tracing::warn!(deployment = %self.name, rival, stepped_back, "contended");
            let note = format!("{}: {contended}", self.goal.wisher);
            self.cx.warning(deployment, "Contended", note);
        }
        State::Contended(contended)
    }

    fn memory<T>(&self, with: impl FnOnce(&mut Memory) -> T) -> T {
        with(&mut self.scaler.memory.entry(self.cx.key().clone()).or_default())
    }
}

fn ended(
    target: Option<Arc<Deployment>>,
    state: State,
    scaled: Option<Scaled>,
    again: Option<Duration>,
) -> Converged {
    Converged {
        target,
        state,
        scaled,
        again,
    }
}
