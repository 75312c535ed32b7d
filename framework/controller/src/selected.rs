//! What of a kind a controller watches, and how it is kept.

use std::sync::Arc;

use boatswain_cache::{Selection, SelectionError, StoreOptions};

/// A selection in the making; what is wrong with it is told when the manager starts.
pub(crate) struct Selected {
    /// Before it is narrowed.
    all: Selection,
    selection: Result<Selection, SelectError>,
    pub(crate) keep: Option<StoreOptions>,
}

/// Why a selection that a controller asks for is none.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SelectError {
    /// A condition that the server would refuse.
    #[error(transparent)]
    Condition(#[from] Arc<SelectionError>),
    /// The closure gave back a selection of something else than it got.
    #[error(
        "the closure was given {given} and returned {returned}: it may add conditions and a namespace; for metadata only, use the type PartialObjectMeta"
    )]
    Replaced {
        /// What it got.
        given: String,
        /// What it made of it.
        returned: String,
    },
}

impl Selected {
    pub(crate) fn all(&self) -> &Selection {
        &self.all
    }

    pub(crate) fn whole(selection: Selection) -> Self {
        Self {
            selection: Ok(selection.clone()),
            all: selection,
            keep: None,
        }
    }

    pub(crate) fn narrow(
        &mut self,
        by: impl FnOnce(Selection) -> Result<Selection, SelectionError>,
    ) {
        // the first thing that is wrong is told
        if let Ok(given) = &self.selection {
            self.selection = narrowed(given, by);
        }
    }

    pub(crate) fn selection(&self) -> Result<Selection, SelectError> {
        self.selection.clone()
    }
}

/// What `by` makes of `given`, if it is still of the same kind and form.
pub(crate) fn narrowed(
    given: &Selection,
    by: impl FnOnce(Selection) -> Result<Selection, SelectionError>,
) -> Result<Selection, SelectError> {
    let returned = by(given.clone()).map_err(|error| SelectError::Condition(Arc::new(error)))?;
    if (returned.kind(), returned.form()) == (given.kind(), given.form()) {
        Ok(returned)
    } else {
        Err(SelectError::Replaced {
            given: given.to_string(),
            returned: returned.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Pod};
    use kube::core::PartialObjectMeta;

    use super::*;

    #[test]
    fn a_closure_adds_conditions_and_cannot_select_something_else() {
        let maps = Selection::of::<ConfigMap>();
        let one = narrowed(&maps, |maps| maps.field("metadata.name", "one"));
        assert_eq!(one.expect("selected").field_selector(), "metadata.name=one");
        for other in [
            Selection::of::<Pod>(),
            Selection::of::<PartialObjectMeta<ConfigMap>>(),
        ] {
            let refused = narrowed(&maps, |_| Ok(other));
            assert!(matches!(refused, Err(SelectError::Replaced { .. })));
        }
    }

    #[test]
    fn the_first_wrong_condition_is_told_and_no_closure_runs_after_it() {
        let mut selected = Selected::whole(Selection::of::<ConfigMap>());
        selected.narrow(|maps| maps.field("no path", "x"));
        selected.narrow(|maps| maps.field("metadata.name", "one"));
        let told = selected.selection().expect_err("refused").to_string();
        assert!(told.contains("\"no path\" is no path"), "{told}");
    }
}
