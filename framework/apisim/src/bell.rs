//! Wakes those who wait for the next of a row of numbers, in the order in which they began to wait, so that a run can be repeated: of tokio's channels the one
//! made for this wakes them in any order.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
};

use tokio::sync::Notify;

#[derive(Debug, Default)]
struct Shared {
    number: AtomicU64,
    rung: Notify,
}

#[derive(Debug, Default)]
pub(crate) struct Bell(Arc<Shared>);

impl Bell {
    pub(crate) fn ring(&self, number: u64) {
        self.0.number.store(number, SeqCst);
        self.0.rung.notify_waiters();
    }

    /// Hears what is rung from now on.
    pub(crate) fn listen(&self) -> Ear {
        let shared = self.0.clone();
        let heard = shared.number.load(SeqCst);
        Ear { shared, heard }
    }
}

pub(crate) struct Ear {
    shared: Arc<Shared>,
    heard: u64,
}

impl Ear {
    /// What was rung up to now is heard.
    pub(crate) fn hear(&mut self) {
        self.heard = self.shared.number.load(SeqCst);
    }

    /// Waits for a number that has not been heard.
    pub(crate) async fn rung(&mut self) {
        loop {
            let mut rung = pin!(self.shared.rung.notified());
            // before the look: what is rung after it wakes
            rung.as_mut().enable();
            let number = self.shared.number.load(SeqCst);
            if number != self.heard {
                self.heard = number;
                return;
            }
            rung.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn who_listens_hears_every_number_once_and_is_woken_in_turn() {
        let bell = Bell::default();
        bell.ring(1);
        let mut ear = bell.listen();
        assert!(ear.rung().now_or_never().is_none(), "it came later");
        bell.ring(2);
        assert!(ear.rung().now_or_never().is_some());
        assert!(ear.rung().now_or_never().is_none());
        bell.ring(3);
        ear.hear();
        assert!(ear.rung().now_or_never().is_none());
        let turns = Arc::new(std::sync::Mutex::new(Vec::new()));
        let tasks: Vec<_> = (0..20)
            .map(|number| {
                let (mut ear, turns) = (bell.listen(), turns.clone());
                tokio::spawn(async move {
                    ear.rung().await;
                    turns.lock().expect("lock").push(number);
                })
            })
            .collect();
        tokio::task::yield_now().await;
        bell.ring(4);
        for task in tasks {
            task.await.expect("it ends");
        }
        let turns = turns.lock().expect("lock").clone();
        assert_eq!(turns, (0..20).collect::<Vec<_>>());
    }
}
