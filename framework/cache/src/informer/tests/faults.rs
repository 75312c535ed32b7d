//! Faults reported of other informers.

use super::*;
