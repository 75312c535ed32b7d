//! Named checks of liveness or readiness, read at every probe; pure but for the closures.

use std::{
    fmt::Write as _,
    sync::{Arc, PoisonError, RwLock},
};

type Checked = (String, Result<(), String>);
type Check = Arc<dyn Fn() -> Vec<Checked> + Send + Sync>;

/// The checks behind `/healthz` or `/readyz`.
#[derive(Clone, Default)]
pub(crate) struct Checks(Arc<RwLock<Vec<Check>>>);

impl Checks {
    pub(crate) fn add(
        &self,
        name: impl Into<String>,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        let name = name.into();
        self.add_all(move || vec![(name.clone(), check())]);
    }

    /// Adds checks that come and go: those there are at the probe.
    pub(crate) fn add_all(&self, checks: impl Fn() -> Vec<Checked> + Send + Sync + 'static) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.push(Arc::new(checks));
    }

    /// Those that fail, by name, and why.
    pub(crate) fn failing(&self) -> Vec<(String, String)> {
        let failing = self.look().into_iter();
        failing
            .filter_map(|(name, checked)| Some((name, checked.err()?)))
            .collect()
    }

    fn look(&self) -> Vec<Checked> {
        let checks = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let checks = checks.clone();
        checks.iter().flat_map(|check| check()).collect()
    }

    /// Whether all pass, and a page in the manner of the API server's own `/readyz?verbose`, here called `name`.
    pub(crate) fn run(&self, name: &str) -> (bool, String) {
        let mut passes = true;
        let mut page = String::new();
        for (check_name, checked) in self.look() {
            // writing to a String cannot fail
            let _ = match checked {
                Ok(()) => writeln!(page, "[+]{check_name} ok"),
                Err(why) => {
                    passes = false;
                    writeln!(page, "[-]{check_name} failed: {why}")
                }
            };
        }
        let _ = writeln!(
            page,
            "{name} check {}",
            if passes { "passed" } else { "failed" }
        );
        (passes, page)
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
        let (ready, page) = checks.run("readyz");
        assert!(!ready);
        assert_eq!(
            page,
            "[+]informer/pods ok\n[-]informer/secrets failed: cannot list secrets\nreadyz check failed\n"
        );
    }
}
