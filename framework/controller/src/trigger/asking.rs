//! Asks the author's mapper about changes, several at once, so that one it is long over holds up no other.

use std::{future::pending, time::Duration};

use futures::{StreamExt as _, stream::FuturesUnordered};

use super::{actor::Hand, guard::Guarded, unmapped::Asked};

/// Changes the author's mapper works on at once.
const AT_ONCE: usize = 16;
/// How long it may take over one.
const PATIENCE: Duration = Duration::from_secs(30);

impl Hand {
    pub(super) async fn ask(self) {
        let unmapped = &self.feed.unmapped;
        let mut asked = FuturesUnordered::new();
        loop {
            while asked.len() < AT_ONCE
                && let Some(next) = unmapped.next(&self.clock)
            {
                asked.push(self.ask_about(next));
            }
            let due = unmapped.due().filter(|_| asked.len() < AT_ONCE);
            let retry = async {
                match due {
                    Some(at) => self.clock.sleep_until(at).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                // user code ran in place: let the arbiter's other actors have a turn
                Some(()) = asked.next() => tokio::task::yield_now().await,
                () = unmapped.added() => {}
                () = retry => {}
            }
        }
    }

    /// Enqueues the keys the mapper names; its panic is its failure and nobody else's.
    async fn ask_about(&self, asked: Asked<'_>) {
        let (mapping, states) = (self.feed.mapping.clone(), asked.news.states.clone());
        let answer = Guarded::new(Box::pin(async move {
            let mut keys = Vec::new();
            for state in states {
                keys.extend(mapping.ask(state).await.map_err(|e| e.to_string())?);
            }
            Ok(keys)
        }));
        let answer = tokio::select! {
            biased;
            answer = answer => answer.unwrap_or_else(|panicked| Err(panicked.to_string())),
            () = self.clock.sleep(PATIENCE) => Err(format!("no answer within {PATIENCE:?}")),
        };
        match answer {
            Ok(keys) => {
                if let Some(state) = asked.news.states.last() {
                    self.hear(&keys, state);
                }
                let (lane, causes) = (asked.lane, asked.news.causes);
                self.enqueue(keys.into_iter().map(|key| (key, lane, causes)));
                asked.answered();
            }
            Err(why) => {
                self.core.metrics.mapper_failed();
                let (controller, object, first) =
                    (&self.core.name, asked.key.clone(), asked.failures == 0);
                let retry_in = asked.failed(self.core.entropy.unit());
                if first {
                    tracing::warn!(%controller, %object, ?retry_in, "a change could not be mapped to keys: {why}");
                } else {
                    tracing::debug!(%controller, %object, ?retry_in, "a change could not be mapped to keys: {why}");
                }
            }
        }
    }
}
