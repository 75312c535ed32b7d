//! The same end-to-end tests on real API servers. They need `tests/cluster/build.sh`; see `tests/cluster/README.md`.

#![allow(clippy::expect_used, reason = "a test that cannot begin has failed")]

mod blackhole;
mod scenarios;

mod oldest {
    use std::sync::Arc;

    use boatswain_tests::{Version, World};
    use tokio::sync::{Mutex, OnceCell, OwnedMutexGuard};

    use crate::scenarios;

    async fn fresh() -> Arc<World> {
        Arc::new(World::real(Version::Oldest).await)
    }

    async fn shared() -> Arc<World> {
        static WORLD: OnceCell<Arc<World>> = OnceCell::const_new();
        WORLD.get_or_init(fresh).await.clone()
    }

    /// One that is hurt by one after the other.
    async fn lent() -> OwnedMutexGuard<World> {
        static WORLD: OnceCell<Arc<Mutex<World>>> = OnceCell::const_new();
        let begin = async || Arc::new(Mutex::new(World::real(Version::Oldest).await));
        WORLD.get_or_init(begin).await.clone().lock_owned().await
    }

    scenarios::tests!(shared(), fresh(), lent());
}

mod newest {
    use std::sync::Arc;

    use boatswain_tests::{Version, World};
    use tokio::sync::{Mutex, OnceCell, OwnedMutexGuard};

    use crate::scenarios;

    async fn fresh() -> Arc<World> {
        Arc::new(World::real(Version::Newest).await)
    }

    async fn shared() -> Arc<World> {
        static WORLD: OnceCell<Arc<World>> = OnceCell::const_new();
        WORLD.get_or_init(fresh).await.clone()
    }

    /// One that is hurt by one after the other.
    async fn lent() -> OwnedMutexGuard<World> {
        static WORLD: OnceCell<Arc<Mutex<World>>> = OnceCell::const_new();
        let begin = async || Arc::new(Mutex::new(World::real(Version::Newest).await));
        WORLD.get_or_init(begin).await.clone().lock_owned().await
    }

    scenarios::tests!(shared(), fresh(), lent());
}
