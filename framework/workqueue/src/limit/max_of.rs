//! Several limiters at once.

use std::fmt;
use std::time::Duration;

use super::{Limiter, Retry};

/// Asks every limiter and takes the longest delay; with none it asks for no delay at all.
#[derive(Default)]
pub struct MaxOf {
    limiters: Vec<Box<dyn Limiter + Send>>,
}

impl MaxOf {
    /// No limiter yet.
    #[must_use]
    pub fn new() -> Self {
        MaxOf::default()
    }

    /// Adds one.
    #[must_use]
    pub fn and(mut self, limiter: impl Limiter + Send + 'static) -> Self {
        self.limiters.push(Box::new(limiter));
        self
    }
}

impl Limiter for MaxOf {
    fn delay(&mut self, retry: Retry) -> Duration {
        self.limiters
            .iter_mut()
            .map(|limiter| limiter.delay(retry))
            .max()
            .unwrap_or_default()
    }
}

impl fmt::Debug for MaxOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaxOf")
            .field("limiters", &self.limiters.len())
            .finish()
    }
}
