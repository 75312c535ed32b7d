//! The same end-to-end tests on real API servers. They need `tests/cluster/build.sh`; see `tests/cluster/README.md`.

#![allow(clippy::expect_used, reason = "a test that cannot begin has failed")]

mod scenarios;

mod oldest {
    use std::sync::Arc;

    use boatswain_tests::{Version, World};
    use tokio::sync::OnceCell;

    use crate::scenarios;

    async fn fresh() -> Arc<World> {
        Arc::new(World::real(Version::Oldest).await)
    }

    async fn shared() -> Arc<World> {
        static WORLD: OnceCell<Arc<World>> = OnceCell::const_new();
        WORLD.get_or_init(fresh).await.clone()
    }

    scenarios::tests!(shared(), fresh());
}

mod newest {
    use std::sync::Arc;

    use boatswain_tests::{Version, World};
    use tokio::sync::OnceCell;

    use crate::scenarios;

    async fn fresh() -> Arc<World> {
        Arc::new(World::real(Version::Newest).await)
    }

    async fn shared() -> Arc<World> {
        static WORLD: OnceCell<Arc<World>> = OnceCell::const_new();
        WORLD.get_or_init(fresh).await.clone()
    }

    scenarios::tests!(shared(), fresh());
}
