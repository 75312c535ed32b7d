//! What `top` shows at present.

use super::panel::{Panel, Shown};
use crate::view::Overview;

pub(super) struct Screen {
    pub(super) overview: Overview,
    /// Why there is nothing newer.
    pub(super) lost: Option<String>,
    /// What is looked at below the controllers.
    pub(super) panel: Panel,
    pub(super) shown: Shown,
    /// The first line of that.
    pub(super) top: u16,
}

impl Screen {
    pub(super) fn new(overview: Overview) -> Self {
        Self {
            overview,
            lost: None,
            panel: Panel::default(),
            shown: Shown::Overview,
            top: 0,
        }
    }

    pub(super) fn show(&mut self, overview: Overview, shown: Shown) {
        self.overview = overview;
        self.shown = shown;
        self.lost = None;
    }

    pub(super) fn lost(&mut self, why: String) {
        self.lost = Some(why);
    }

    pub(super) fn scroll(&mut self, by: i16) {
        self.top = self.top.saturating_add_signed(by);
    }

    pub(super) fn turn(&mut self, panel: Panel) {
        if self.panel != panel {
            self.panel = panel;
            self.top = 0;
        }
    }
}
