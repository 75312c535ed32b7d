//! Brings caches up to date before a new leader works: those of a standby may be a moment behind what the last leader did.

use std::{sync::Arc, time::Duration};

use boatswain_cache::InformerCore;
use boatswain_supervision::Clock;
use futures::future::BoxFuture;

/// Brings the caches up to date, in bounded time.
pub(crate) type CatchUp = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// How long a new leader waits for consistent lists; an informer that cannot reach the server must not keep the others' keys waiting.
const WITHIN: Duration = Duration::from_secs(30);

/// One consistent list of every informer that there is then.
pub(crate) fn catch_up(
    informers: impl Fn() -> Vec<Arc<InformerCore>> + Send + Sync + 'static,
    clock: Clock,
) -> CatchUp {
    Arc::new(move || {
        let asked: Vec<_> = informers()
            .into_iter()
            .map(|core| (core.relist(), core))
            .collect();
        let clock = clock.clone();
        Box::pin(async move {
            let end = clock.sleep(WITHIN);
            tokio::pin!(end);
            for (number, core) in asked {
                tokio::select! {
                    biased;
                    () = core.wait_relisted(number) => {}
                    () = &mut end => {
                        tracing::warn!(informer = %core.selection(), "leading on a cache that is behind: no list came within {WITHIN:?}");
                        return;
                    }
                }
            }
        })
    })
}
