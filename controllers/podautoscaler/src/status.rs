//! The status to write, from the status that is there and what a run found; pure.

use boatswain::conditions::{self, Verdict};
use k8s_openapi::{api::apps::v1::Deployment, apimachinery::pkg::apis::meta::v1::Time};
use scaling::{Contended, Scaled, State};

use crate::api::{PodAutoscaler, PodAutoscalerStatus, reason};

/// What a run found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    InSync,
    Missing {
        deleting: bool,
    },
    Contended(Contended),
    /// An older PodAutoscaler of this name scales the same Deployment.
    Claimed {
        by: String,
    },
    Refused {
        why: String,
    },
    /// The same for a reason that is not the object's.
    Failing {
        why: String,
    },
}

impl From<State> for Found {
    fn from(state: State) -> Self {
        match state {
            State::InSync => Self::InSync,
            State::Missing { deleting } => Self::Missing { deleting },
            State::Contended(contended) => Self::Contended(contended),
        }
    }
}

impl Found {
    pub(crate) fn verdict(&self, pa: &PodAutoscaler, scaled: Option<Scaled>) -> Verdict {
        let (target, wanted) = (&pa.spec.target_deployment, pa.spec.replicas);
        let (status, reason, message) = match self {
            Self::InSync => match scaled {
                Some(Scaled { from, to, .. }) => (
                    true,
                    reason::SCALED,
                    format!("Deployment {target} was changed from {from} to {to} replicas"),
                ),
                None => (
                    true,
                    reason::IN_SYNC,
                    format!("Deployment {target} asks for {wanted} replicas"),
                ),
            },
            Self::Missing { deleting: false } => (
                false,
                reason::TARGET_NOT_FOUND,
                format!("there is no Deployment {target} in this namespace"),
            ),
            Self::Missing { deleting: true } => (
                false,
                reason::TARGET_NOT_FOUND,
                format!("Deployment {target} is being deleted"),
            ),
            Self::Claimed { by } => {
                let message = format!(
                    "PodAutoscaler {by} is older and scales Deployment {target}; only the oldest one does"
                );
                (false, reason::CONTENDED, message)
            }
            Self::Refused { why } => (false, reason::REFUSED, why.clone()),
            Self::Failing { why } => (false, reason::FAILING, why.clone()),
            Self::Contended(contended) => (false, reason::CONTENDED, contended.to_string()),
        };
        Verdict {
            type_: "Synced",
            status,
            reason,
            message,
        }
    }
}

/// The status `pa` is to have; `scaled` is a scaling it does not tell of yet. It equals the one it has when nothing needs to be written.
pub(crate) fn next(
    pa: &PodAutoscaler,
    target: Option<&Deployment>,
    found: &Found,
    scaled: Option<Scaled>,
    now: jiff::Timestamp,
) -> PodAutoscalerStatus {
    let old = pa.status.clone().unwrap_or_default();
    let generation = pa.metadata.generation;
    let mut conditions = old.conditions;
    let verdict = match found {
        // in agreement because we made it so: the reason stays until something else is found
        Found::InSync
            if scaled.is_none()
                && said(&conditions, reason::SCALED)
                && old.observed_generation == generation =>
        {
            None
        }
        found => Some(found.verdict(pa, scaled)),
    };
    if let Some(verdict) = verdict {
        conditions::set(&mut conditions, &verdict, generation, now);
    }
    PodAutoscalerStatus {
        observed_generation: generation,
        current_replicas: target.map(|t| t.status.as_ref().and_then(|s| s.replicas).unwrap_or(0)),
        desired_replicas: Some(pa.spec.replicas),
        last_scale_time: scaled.map(|s| seconds(s.at)).or(old.last_scale_time),
        conditions,
    }
}

/// Whether `Synced` has this reason.
pub(crate) fn said(
    conditions: &[k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition],
    reason: &str,
) -> bool {
    conditions::get(conditions, "Synced").is_some_and(|synced| synced.reason == reason)
}

/// Kubernetes keeps whole seconds; comparing with what was read back needs the same.
fn seconds(at: jiff::Timestamp) -> Time {
    Time(jiff::Timestamp::from_second(at.as_second()).unwrap_or(at))
}

#[cfg(test)]
mod tests {
    use kube::api::ObjectMeta;

    use super::*;
    use crate::api::PodAutoscalerSpec;

    fn pa(replicas: i32) -> PodAutoscaler {
        PodAutoscaler {
            metadata: ObjectMeta {
                generation: Some(1),
                ..ObjectMeta::default()
            },
            spec: PodAutoscalerSpec {
                target_deployment: "web".into(),
                replicas,
            },
            status: None,
        }
    }

    fn at(second: i64) -> jiff::Timestamp {
        jiff::Timestamp::from_second(second).expect("in range")
    }

    #[test]
    fn finding_the_same_again_changes_nothing() {
        let mut pa = pa(3);
        for found in [
            Found::Missing { deleting: false },
            Found::Contended(Contended {
                deployment: "web".into(),
                rival: Some("hpa".into()),
                theirs: 2,
                ours: 3,
                stepped_back: true,
                begins: false,
            }),
            Found::InSync,
        ] {
            let first = next(&pa, None, &found, None, at(100));
            pa.status = Some(first.clone());
            assert_eq!(next(&pa, None, &found, None, at(200)), first);
        }
    }

    fn scaling(second: i64) -> Option<Scaled> {
        Some(Scaled {
            from: 1,
            to: 3,
            at: at(second),
        })
    }

    #[test]
    fn the_last_scale_time_survives_later_runs() {
        let mut pa = pa(3);
        let scaled = next(&pa, None, &Found::InSync, scaling(100), at(100));
        assert_eq!(scaled.last_scale_time, Some(Time(at(100))));
        assert_eq!(scaled.conditions[0].reason, reason::SCALED);
        pa.status = Some(scaled.clone());
        let later = next(&pa, None, &Found::InSync, None, at(200));
        assert_eq!(
            later, scaled,
            "agreement that we brought about is still called Scaled"
        );
    }

    #[test]
    fn a_new_generation_is_observed_even_if_nothing_had_to_be_done() {
        let mut pa = pa(3);
        pa.status = Some(next(&pa, None, &Found::InSync, scaling(1), at(1)));
        pa.metadata.generation = Some(2);
        let status = next(&pa, None, &Found::InSync, None, at(9));
        assert_eq!(status.observed_generation, Some(2));
        assert_eq!(status.conditions[0].reason, reason::IN_SYNC);
        assert_eq!(status.conditions[0].last_transition_time, Time(at(1)));
    }
}
