//! Named readiness checks, read at every probe; pure but for the closures.

use std::{
    fmt::Write as _,
    sync::{Arc, PoisonError, RwLock},
};

type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// The checks behind `/readyz`.
#[derive(Clone, Default)]
pub(crate) struct Checks(Arc<RwLock<Vec<(String, Check)>>>);

impl Checks {
    pub(crate) fn add(
        &self,
        name: impl Into<String>,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        let mut checks = self.0.write().unwrap_or_else(PoisonError::into_inner);
        checks.push((name.into(), Arc::new(check)));
    }

    /// Whether all pass, and a page in the manner of the API server's own `/readyz?verbose`.
    pub(crate) fn run(&self) -> (bool, String) {
        let checks = self
            .0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let mut ready = true;
        let mut page = String::new();
        for (name, check) in checks {
            // writing to a String cannot fail
            let _ = match check() {
                Ok(()) => writeln!(page, "[+]{name} ok"),
                Err(why) => {
                    ready = false;
                    writeln!(page, "[-]{name} failed: {why}")
                }
            };
        }
        let _ = writeln!(
            page,
            "readyz check {}",
            if ready { "passed" } else { "failed" }
        );
        (ready, page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failing_check_makes_the_whole_not_ready_and_is_named_with_its_cause() {
        let checks = Checks::default();
        checks.add("informer/pods", || Ok(()));
        checks.add("informer/secrets", || Err("cannot list secrets".into()));
        let (ready, page) = checks.run();
        assert!(!ready);
        assert_eq!(
            page,
            "[+]informer/pods ok\n[-]informer/secrets failed: cannot list secrets\nreadyz check failed\n"
        );
    }
}
