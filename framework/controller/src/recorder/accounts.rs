//! What the recorders of a manager did, those that are gone included: no count goes back when a controller goes.

use std::sync::{Arc, Mutex};

use super::{RecorderView, counts::Counts, state::State};
use crate::sync::lock;

/// The accounts of all recorders; a clone is the same.
#[derive(Clone, Default)]
pub(crate) struct Accounts(Arc<Mutex<Ledger>>);

#[derive(Default)]
struct Ledger {
    open: Vec<Arc<Mutex<State>>>,
    closed: Counts,
}

impl Accounts {
    /// What a scrape sees of all of them together.
    pub(crate) fn view(&self) -> RecorderView {
        let ledger = lock(&self.0);
        let mut view = RecorderView {
            counts: ledger.closed,
            ..RecorderView::default()
        };
        for state in &ledger.open {
            let state = lock(state);
            view.counts.add(&state.counts);
            view.waiting += state.waiting();
            view.series += state.series();
        }
        view
    }

    pub(super) fn open(&self, state: &Arc<Mutex<State>>) {
        lock(&self.0).open.push(state.clone());
    }

    pub(super) fn close(&self, state: &Arc<Mutex<State>>) {
        let mut ledger = lock(&self.0);
        ledger.open.retain(|other| !Arc::ptr_eq(other, state));
        ledger.closed.add(&lock(state).counts);
    }
}

#[cfg(test)]
mod tests {
    use boatswain_supervision::{Clock, Entropy};
    use k8s_openapi::api::core::v1::ObjectReference;

    use super::*;
    use crate::recorder::{Note, Recorder, Severity};

    #[test]
    fn what_several_recorders_did_is_counted_together_and_no_count_goes_back_when_one_goes() {
        let accounts = Accounts::default();
        let recorder = || Recorder::new(Clock::system(), Entropy::seeded(1), &accounts);
        let (goes, stays) = (recorder(), recorder());
        let on = ObjectReference {
            name: Some("web".into()),
            ..ObjectReference::default()
        };
        let note = Note::on(on, Severity::Normal, "Scaled", "3 to 5".into());
        for recorder in [&goes, &goes, &stays] {
            recorder.publish("scaler", &note);
        }
        let view = accounts.view();
        assert_eq!((view.counts.notes, view.counts.repeated), (3, 1));
        assert_eq!((view.waiting, view.series), (2, 2));
        drop(goes);
        let view = accounts.view();
        assert_eq!((view.counts.notes, view.counts.repeated), (3, 1));
        assert_eq!((view.waiting, view.series), (1, 1));
    }
}
