//! Locks that a panic elsewhere does not close: every holder leaves its data whole at each step, so the data of a poisoned lock is as good as any.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
