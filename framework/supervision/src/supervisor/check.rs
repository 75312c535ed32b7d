//! Whether a specification makes sense where it stands.

use std::sync::Arc;

use super::Supervisor;
use crate::backoff::Backoff;
use crate::error::SpecError;
use crate::link::Rung;
use crate::spec::{AutoShutdown, ChildSpec, Restart};

impl Supervisor {
    /// What concerns no child in particular.
    pub(super) fn check_all(&self) -> Result<(), SpecError> {
        if self.policy.strategy.is_dynamic() && !self.specs.is_empty() {
            return Err(SpecError::StaticInDynamic {
                supervisor: self.link.path().to_owned(),
            });
        }
        Ok(())
    }

    pub(super) fn check(&self, spec: &ChildSpec) -> Result<(), SpecError> {
        let supervisor = self.link.path().to_owned();
        let child = spec.id.clone();
        SpecError::name(Some(&supervisor), &child)?;
        if self.ids.contains(child.as_str()) {
            return Err(SpecError::Duplicate { supervisor, child });
        }
        if spec.significant && spec.restart == Restart::Permanent {
            return Err(SpecError::PermanentSignificant { supervisor, child });
        }
        if spec.significant && self.policy.auto_shutdown == AutoShutdown::Never {
            return Err(SpecError::UnheededSignificant { supervisor, child });
        }
        self.check_escalation(spec)
    }

    /// Whether a child that fails as soon as it starts is heard of all the way up, where no window is too short for the delays below it.
    /// One that never comes back cannot fail twice.
    fn check_escalation(&self, spec: &ChildSpec) -> Result<(), SpecError> {
        let Some(intensity) = self
            .policy
            .intensity
            .filter(|_| spec.restart != Restart::Temporary)
        else {
            return Ok(());
        };
        // between the first and the last failure that its supervisor bears
        let mut span = spec.backoff.longest(intensity.max);
        // from the start of a supervisor until it gives up
        let mut fall = span;
        let (mut supervisor, mut intensity) = (&self.link.node.path, intensity);
        let mut above = self.own_rung();
        loop {
            if span >= intensity.period {
                return Err(SpecError::Unreachable {
                    supervisor: supervisor.to_string(),
                    child: self.child_path(&spec.id),
                    max: intensity.max,
                    period: intensity.period,
                    needed: span,
                });
            }
            let Some(rung) = above else {
                return Ok(());
            };
            (supervisor, intensity, above) =
                (&rung.supervisor, rung.intensity, rung.above.as_ref());
            let delays = rung.backoff.longest(intensity.max);
            span = fall.saturating_mul(intensity.max).saturating_add(delays);
            fall = fall.saturating_add(span);
        }
    }

    /// Who hears when this supervisor gives up.
    fn own_rung(&self) -> Option<&Arc<Rung>> {
        self.link.node.office()?.rung.as_ref()
    }

    /// Who hears when a supervisor below this one, treated with `backoff`, gives up; nobody, if this one never does.
    pub(super) fn rung(&self, backoff: &Backoff) -> Option<Arc<Rung>> {
        Some(Arc::new(Rung {
            supervisor: Arc::clone(&self.link.node.path),
            intensity: self.policy.intensity?,
            backoff: backoff.clone(),
            above: self.own_rung().cloned(),
        }))
    }
}
