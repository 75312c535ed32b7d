//! The controllers of a manager that runs, as they come and go.

use std::{
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use boatswain_supervision::{
    ChildSpec, Children, Clock, Dynamic, Intensity, SpecError, StartError as TreeError, StopError,
    Strategy, SupervisorSpec,
};

use crate::{
    assemble::{Branch, Runnable, Yard},
    dispatch::ControllerHandle,
    error::{RemoveError, StartError},
    leader::{Leadership, LeaseStatus, Role},
    manager::{Commission, Commissions},
    running::wait_offloaded,
    sync::lock,
};

/// The controllers that there are, for those who look after them. It keeps nothing of them.
#[derive(Clone, Default)]
pub(crate) struct Muster(Arc<Mutex<Vec<Mustered>>>);

struct Mustered {
    controller: ControllerHandle,
    /// Its own, if it has one.
    lease: Option<Leadership>,
}

impl Muster {
    pub(crate) fn all(&self) -> Vec<ControllerHandle> {
        let all = lock(&self.0);
        all.iter().map(|one| one.controller.clone()).collect()
    }

    pub(crate) fn find(&self, name: &str) -> Option<ControllerHandle> {
        let all = lock(&self.0);
        let mut all = all.iter().map(|one| &one.controller);
        all.find(|controller| controller.name() == name).cloned()
    }

    /// The leases that controllers have of their own, with these.
    fn leases(&self) -> Vec<(String, Leadership)> {
        let all = lock(&self.0);
        let own = all.iter().filter_map(|Mustered { controller, lease }| {
            Some((controller.name().to_owned(), lease.clone()?))
        });
        own.collect()
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.all().iter().any(ControllerHandle::is_busy)
    }

    pub(crate) fn play(&self, role: Role) {
        self.all()
            .iter()
            .for_each(|controller| controller.play(role));
    }

    /// How each of them is, for readiness.
    pub(crate) fn check(&self) -> Vec<(String, Result<(), String>)> {
        let all = self.all();
        let checked = all.iter().map(|controller| {
            let checked = controller.degraded().map_or(Ok(()), Err);
            (format!("controller/{}", controller.name()), checked)
        });
        checked.collect()
    }

    fn push(&self, controller: ControllerHandle, lease: Option<Leadership>) {
        lock(&self.0).push(Mustered { controller, lease });
    }

    fn strike(&self, name: &str) {
        lock(&self.0).retain(|one| one.controller.name() != name);
    }
}

/// The leases that there are: one for all controllers, one for each, or none.
#[derive(Clone)]
pub(crate) struct Leases {
    shared: Option<Leadership>,
    muster: Muster,
}

impl Leases {
    pub(crate) fn new(commissions: &Commissions, muster: &Muster) -> Self {
        let shared = commissions.shared().and_then(Commission::leadership);
        Self {
            shared: shared.cloned(),
            muster: muster.clone(),
        }
    }

    pub(crate) fn status(&self) -> Vec<LeaseStatus> {
        let own = self.muster.leases().into_iter();
        let own = own.map(|(controller, lease)| LeaseStatus {
            controller: Some(controller),
            ..lease.status()
        });
        let shared = self.shared.iter().map(Leadership::status);
        shared.chain(own).collect()
    }

    /// Which of them are stuck, for liveness.
    pub(crate) fn check(&self, now: Duration) -> Vec<(String, Result<(), String>)> {
        let own = self.muster.leases().into_iter();
        let own = own.map(|(name, lease)| (format!("lease/{name}"), lease.check(now)));
        let shared = self.shared.iter();
        let shared = shared.map(|lease| ("lease".to_owned(), lease.check(now)));
        shared.chain(own).collect()
    }
}

/// The branches that the tree is to have, and the way to give it more; shared with the tree.
#[derive(Clone, Default)]
pub(crate) struct Berths(Arc<Wanted>);

#[derive(Default)]
struct Wanted {
    branches: Mutex<Vec<(String, Branch)>>,
    /// Of the supervisor that there is.
    added: Mutex<Option<Dynamic<Branch>>>,
}

impl Berths {
    /// The supervisor of all controllers: those that are wanted when it begins, and those that will be.
    pub(crate) fn supervisor(&self, intensity: Intensity) -> SupervisorSpec {
        let spec = SupervisorSpec::new("controllers", Strategy::OneForOne).intensity(intensity);
        let added = spec.dynamic_children(|branch: Branch| ChildSpec::supervisor(branch()));
        *lock(&self.0.added) = Some(added);
        let berths = self.clone();
        spec.children(move |children: &mut Children| {
            for (_, branch) in lock(&berths.0.branches).iter() {
                children.add(ChildSpec::supervisor(branch()));
            }
        })
    }

    pub(crate) fn put(&self, name: &str, branch: Branch) {
        lock(&self.0.branches).push((name.to_owned(), branch));
    }

    /// False if there is none of that name.
    fn take(&self, name: &str) -> bool {
        let mut branches = lock(&self.0.branches);
        let place = branches.iter().position(|(other, _)| other == name);
        let taken = place.map(|place| branches.swap_remove(place));
        // it holds everything that is left of a controller: not under the lock
        drop(branches);
        taken.is_some()
    }

    fn added(&self) -> Option<Dynamic<Branch>> {
        lock(&self.0.added).clone()
    }
}

/// What controllers are put together from while the manager runs; it ends with the manager.
pub(crate) struct Deck {
    pub(crate) yard: Mutex<Yard>,
    pub(crate) berths: Berths,
    pub(crate) muster: Muster,
    pub(crate) commissions: Commissions,
    pub(crate) clock: Clock,
}

impl Deck {
    /// Puts a controller together, without starting it.
    fn assemble(
        &self,
        controller: Runnable,
        commission: &Commission,
    ) -> Result<Branch, StartError> {
        let name = controller.name().to_owned();
        let mut yard = lock(&self.yard);
        if self.muster.find(&name).is_some() {
            return Err(StartError::DuplicateName(name));
        }
        let assembled = controller
            .declare(&mut yard)
            .and_then(|()| controller.assemble(&mut yard, commission));
        let (handle, branch) = match assembled {
            Ok(assembled) => assembled,
            Err(error) => {
                yard.informers.release(&name);
                return Err(error);
            }
        };
        self.berths.put(&name, branch.clone());
        match commission.leadership() {
            Some(lease) if commission.is_own => {
                let (led, recorder) = (handle.clone(), commission.recorder.clone());
                lease.follow(move |role| {
                    led.play(role);
                    recorder.play(role);
                });
                self.muster.push(handle, Some(lease.clone()));
            }
            Some(lease) => lease.join(|role| {
                handle.play(role);
                self.muster.push(handle, None);
            }),
            None => self.muster.push(handle, None),
        }
        Ok(branch)
    }

    /// Lets go of everything that was kept for a controller.
    fn strike(&self, name: &str) {
        self.berths.take(name);
        lock(&self.yard).informers.release(name);
        self.muster.strike(name);
    }

    /// Puts all of them together that there are from the start.
    pub(crate) async fn assemble_all(&self, controllers: Vec<Runnable>) -> Result<(), StartError> {
        {
            // all of them first, so that their order does not matter
            let mut yard = lock(&self.yard);
            for controller in &controllers {
                controller.declare(&mut yard)?;
            }
        }
        for controller in controllers {
            let commission = self.commissions.of(controller.name()).await?;
            self.assemble(controller, &commission)?;
        }
        Ok(())
    }
}

/// The controllers of a manager that runs: they can be added and removed. Cheap to clone, usable from any thread, also from a reconciler.
///
/// # Guarantees
///
/// - Others are not disturbed: informers that are in use go on, and the watch of a kind that nobody reads any more ends.
/// - What was removed leaves nothing behind: no actor, no task, no series of metrics. One of its name can follow.
#[derive(Clone)]
pub struct Controllers {
    pub(crate) deck: Weak<Deck>,
}

impl Controllers {
    /// Starts `controller`; returns when its actors have. Its keys run as soon as what it reads has synced, and this process leads, if one of several is to.
    /// Where each controller has a lease of its own it campaigns for one.
    ///
    /// # Errors
    ///
    /// When it has the name of another or one that its own lease cannot have, contradicts the others, or the manager has ended; nothing of it is left then.
    ///
    /// # Cancellation safety
    ///
    /// When dropped after the first poll the controller may be started all the same.
    pub async fn add(&self, controller: Runnable) -> Result<(), StartError> {
        let name = controller.name().to_owned();
        let commissions = {
            let deck = self.deck.upgrade().ok_or(StartError::Ended)?;
            deck.commissions.clone()
        };
        let commission = commissions.of(&name).await?;
        let (tree, started) = {
            let deck = self.deck.upgrade().ok_or(StartError::Ended)?;
            let tree = deck.berths.added().ok_or(StartError::Ended)?;
            let branch = deck.assemble(controller, &commission)?;
            let started = tree.start(branch);
            (tree, started)
        };
        match started.await {
            // of the latter the supervisor has begun anew in between, with all that is wanted
            Ok(()) | Err(TreeError::Spec(SpecError::Duplicate { .. })) => {
                tracing::info!(controller = %name, "added");
                Ok(())
            }
            Err(error) => {
                if let Some(deck) = self.deck.upgrade() {
                    deck.strike(&name);
                }
                // nothing, unless the supervisor has begun anew in between
                let _ = tree.stop(&name).await;
                Err(StartError::Tree(error))
            }
        }
    }

    /// Stops the controller called `name`, and lets go of everything that was kept for it. Running reconciles may finish within the manager's grace
    /// period; then they are cancelled. Keys that wait are forgotten. A lease of its own is given back when the last of its runs has ended.
    ///
    /// # Errors
    ///
    /// When there is none of that name, or a reconcile blocks its thread and still runs.
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future does not take the stop back.
    pub async fn remove(&self, name: &str) -> Result<(), RemoveError> {
        let unknown = || RemoveError::Unknown(name.to_owned());
        let (leaving, stopped) = {
            let deck = self.deck.upgrade().ok_or_else(unknown)?;
            let controller = deck.muster.find(name).ok_or_else(unknown)?;
            // from here on a supervisor that begins anew begins without it
            if !deck.berths.take(name) {
                return Err(unknown());
            }
            controller.close(deck.clock.now() + lock(&deck.yard).grace);
            let stopped = deck.berths.added().map(|added| added.stop(name));
            let leaving = Leaving {
                deck: self.deck.clone(),
                controller,
                clock: deck.clock.clone(),
            };
            (leaving, stopped)
        };
        let stopped = match stopped {
            Some(stopped) => stopped.await,
            None => Ok(()),
        };
        if let Err(StopError::StillRunning(paths)) = stopped {
            return Err(paths.into());
        }
        wait_offloaded(std::slice::from_ref(&leaving.controller), &leaving.clock).await?;
        tracing::info!(controller = %name, "removed");
        Ok(())
    }

    /// What they are called.
    pub fn names(&self) -> Vec<String> {
        let all = self.deck.upgrade().map(|deck| deck.muster.all());
        let all = all.unwrap_or_default();
        all.iter().map(|c| c.name().to_owned()).collect()
    }
}

/// A controller that is being removed; its name is free when this is dropped.
struct Leaving {
    deck: Weak<Deck>,
    controller: ControllerHandle,
    clock: Clock,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if let Some(deck) = self.deck.upgrade() {
            deck.strike(self.controller.name());
        }
    }
}
