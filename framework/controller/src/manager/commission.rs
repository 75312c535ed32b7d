//! In whose name controllers write: the lease they work under, and the clients and the recorder that pass its fence.

use std::sync::Arc;

use boatswain_supervision::{ChildSpec, Children, Clock, Entropy, Link, Mailbox};

use super::Links;
use crate::{
    assemble::Yard,
    crew::Crew,
    dispatch::ControllerHandle,
    error::StartError,
    leader::{Busy, CatchUp, Election, Fence, LeaderActor, Leadership, Load, OwnLeases, catch_up},
    recorder::{Accounts, Recorder, RecorderActor},
};

/// A lease, and the client that it has for itself.
#[derive(Clone)]
pub(crate) struct Leader {
    pub(crate) leadership: Leadership,
    pub(crate) client: kube::Client,
}

/// What controllers write by. Where there is a lease, nothing but reads passes the clients while it is not surely ours.
#[derive(Clone)]
pub(crate) struct Commission {
    pub(crate) client: kube::Client,
    /// For Events alone: they neither wait for what reconcilers write nor keep it waiting.
    pub(crate) events: kube::Client,
    pub(crate) recorder: Recorder,
    pub(crate) leader: Option<Leader>,
    /// Whether it is one controller's alone, whose part of the tree keeps it then.
    pub(crate) is_own: bool,
}

impl Commission {
    pub(crate) fn leadership(&self) -> Option<&Leadership> {
        self.leader.as_ref().map(|leader| &leader.leadership)
    }

    /// Those who keep it in the part of the tree of `controller`, if it is its own.
    pub(crate) fn kept_by(&self, controller: &ControllerHandle, yard: &Yard) -> Option<Keepers> {
        let (gate, working) = (controller.gate.clone(), controller.clone());
        self.is_own.then(|| Keepers {
            commission: self.clone(),
            catch_up: catch_up(move || gate.cores(), yard.clock.clone()),
            busy: Arc::new(move || working.is_busy()),
            crew: yard.crew.clone(),
        })
    }
}

/// Makes commissions.
#[derive(Clone)]
pub(super) struct Issuer {
    pub(super) links: Links,
    pub(super) clock: Clock,
    pub(super) entropy: Entropy,
    pub(super) accounts: Accounts,
}

impl Issuer {
    async fn issue(&self, leader: Option<Leader>, is_own: bool) -> Result<Commission, StartError> {
        let fence = leader.as_ref().map(|leader| leader.leadership.fence());
        Ok(Commission {
            client: self.links.client(fence.clone()).await?,
            events: self.links.for_events(fence).await?,
            recorder: Recorder::new(self.clock.clone(), self.entropy.clone(), &self.accounts),
            leader,
            is_own,
        })
    }
}

/// Where controllers get their commissions from.
#[derive(Clone)]
pub(crate) enum Commissions {
    /// One is for all.
    Shared(Box<Commission>),
    /// Each has its own.
    Each(Arc<Each>),
}

pub(crate) struct Each {
    issuer: Issuer,
    leases: OwnLeases,
    load: Load,
    /// For all leases.
    client: kube::Client,
    /// For what all controllers share, which writes nothing: no lease would be the right one.
    reader: kube::Client,
}

impl Commissions {
    /// # Errors
    ///
    /// When there can be no client.
    pub(super) async fn begin(
        election: Option<Election>,
        issuer: Issuer,
    ) -> Result<Self, StartError> {
        let lease = match election {
            None => None,
            Some(Election::ForAll(lease)) => Some(Leader {
                leadership: Leadership::new(lease, Load::default()),
                client: issuer.links.for_leases().await?,
            }),
            Some(Election::ForEach(leases)) => {
                return Ok(Self::Each(Arc::new(Each {
                    leases,
                    load: Load::default(),
                    client: issuer.links.for_leases().await?,
                    reader: issuer.links.client(Some(Fence::default())).await?,
                    issuer,
                })));
            }
        };
        Ok(Self::Shared(Box::new(issuer.issue(lease, false).await?)))
    }

    /// That of the controller called so; one of its own is a new one each time.
    ///
    /// # Errors
    ///
    /// When its lease could not be called after it, or there can be no client.
    pub(crate) async fn of(&self, controller: &str) -> Result<Commission, StartError> {
        match self {
            Self::Shared(commission) => Ok(Commission::clone(commission)),
            Self::Each(each) => {
                let lease = each.leases.of(controller, &each.issuer.entropy)?;
                let leader = Leader {
                    leadership: Leadership::new(lease, each.load.clone()),
                    client: each.client.clone(),
                };
                each.issuer.issue(Some(leader), true).await
            }
        }
    }

    pub(crate) fn shared(&self) -> Option<&Commission> {
        match self {
            Self::Shared(commission) => Some(commission),
            Self::Each(_) => None,
        }
    }

    /// A client for what all controllers share.
    pub(super) fn reader(&self) -> &kube::Client {
        match self {
            Self::Shared(commission) => &commission.client,
            Self::Each(each) => &each.reader,
        }
    }
}

/// Those who keep a commission: they campaign for its lease, and write its Events.
#[derive(Clone)]
pub(crate) struct Keepers {
    pub(crate) commission: Commission,
    pub(crate) catch_up: CatchUp,
    pub(crate) busy: Busy,
    pub(crate) crew: Crew,
}

impl Keepers {
    /// Before all that work under it: the lease is given back when nothing works any more and what was said is written.
    pub(crate) fn add_to(&self, children: &mut Children) {
        let Self {
            commission,
            catch_up,
            busy,
            crew,
        } = self.clone();
        let Commission {
            events,
            recorder,
            leader,
            ..
        } = commission;
        if let Some(leader) = leader {
            let told = recorder.clone();
            let make = move |link: &Link| {
                let (leader, recorder) = (leader.clone(), told.clone());
                LeaderActor::new(leader, recorder, catch_up.clone(), busy.clone(), link)
            };
            let lease = ChildSpec::actor("lease", Mailbox::new(), make);
            children.add(lease.thread(crew.lease));
        }
        let make = move |link: &Link| RecorderActor::new(recorder.clone(), events.clone(), link);
        let events = ChildSpec::actor("events", Mailbox::new(), make);
        children.add(events.thread(crew.events));
    }
}
