//! Wakes an actor that looks for itself what there is to do.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering::AcqRel},
};

use crate::sync::lock;

/// Rung by anyone, as often as they like: until the actor hears it, it is told once. An actor that is down looks when it starts.
#[derive(Default)]
pub(super) struct Bell {
    tell: Mutex<Option<Box<dyn Fn() + Send>>>,
    rung: AtomicBool,
}

impl Bell {
    /// An incarnation has started, and looks after this.
    pub(super) fn attach(&self, tell: impl Fn() + Send + 'static) {
        let mut present = lock(&self.tell);
        *present = Some(Box::new(tell));
        self.rung.swap(false, AcqRel);
    }

    /// The actor has ended.
    pub(super) fn detach(&self) {
        *lock(&self.tell) = None;
    }

    pub(super) fn ring(&self) {
        if !self.rung.swap(true, AcqRel)
            && let Some(tell) = &*lock(&self.tell)
        {
            tell();
        }
    }

    /// The actor looks after this.
    pub(super) fn heard(&self) {
        self.rung.swap(false, AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    };

    use super::*;

    #[test]
    fn an_actor_is_told_once_until_it_hears_and_anew_after_a_restart() {
        let (bell, told) = (Bell::default(), Arc::new(AtomicUsize::new(0)));
        let attach = || {
            let told = told.clone();
            bell.attach(move || {
                told.fetch_add(1, Relaxed);
            });
        };
        let ring = |times| (0..times).for_each(|_| bell.ring());
        ring(2);
        attach();
        ring(3);
        assert_eq!(told.load(Relaxed), 1);
        bell.heard();
        ring(3);
        assert_eq!(told.load(Relaxed), 2);
        bell.detach();
        attach();
        ring(1);
        assert_eq!(
            told.load(Relaxed),
            3,
            "what its predecessor never heard counts for nothing"
        );
    }
}
