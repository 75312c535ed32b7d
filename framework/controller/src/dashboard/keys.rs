//! Which keys there are, and which of them stand out.

use std::{cmp::Reverse, collections::BTreeSet};

use boatswain_cache::Key;
use boatswain_dashboard::{KeyQuery, KeyRow, Keys, Parked, ParkedRow, Top};

use super::views;
use crate::{
    dispatch::ControllerHandle,
    explain::{Doing, state_of, word},
};

/// Cells that are looked at under the lock of a shard's queue: it takes some hundred microseconds, however long the queue is.
const CELLS: usize = 4096;

pub(super) fn search(controllers: &[ControllerHandle], query: &KeyQuery) -> Keys {
    let mut found = Keys::default();
    for controller in controllers {
        let room = query.limit.saturating_sub(found.keys.len());
        // one more than there is room for says that there are more
        let mut keys = match (query.q.is_empty(), query.state.as_str()) {
            (true, "undecodable") => left_alone(controller).take(room + 1).collect(),
            (true, state) if state != "idle" => busy(controller, state, room + 1),
            _ => named(controller, query, room + 1),
        };
        found.more |= keys.len() > room;
        keys.truncate(room);
        let rows = keys.iter().map(|key| views::row(&controller.explain(key)));
        found.keys.extend(rows);
    }
    found
}

/// Keys whose objects do not decode and are left alone until they change, by name: no queue knows them.
fn left_alone(controller: &ControllerHandle) -> impl Iterator<Item = Key> {
    let keys = controller.undecodable().into_iter();
    keys.filter(|key| is_left_alone(controller, key))
}

/// Whether that is so for this controller: others may read the same objects as another type.
fn is_left_alone(controller: &ControllerHandle, key: &Key) -> bool {
    matches!(controller.explain(key).now, Doing::Undecodable { .. })
}

/// Keys that are not idle, in the order of their states, then those that do not decode; of those that are parked the longest first.
fn busy(controller: &ControllerHandle, state: &str, limit: usize) -> Vec<Key> {
    if state == "parked" {
        let parked = controller.parked().into_iter();
        return parked.take(limit).map(|parked| parked.key).collect();
    }
    let mut found = Vec::new();
    for view in &controller.views {
        let room = limit.saturating_sub(found.len());
        let cells = view.look(|queue| {
            let cells = queue.cells().take(CELLS);
            let meant = cells
                .filter(|(key, cell)| state.is_empty() || word(view, key, &cell.phase) == state);
            let keys = meant.take(room).map(|(key, _)| key.clone());
            let mut keys: Vec<_> = keys.collect();
            // behind a long line of keys that are ready those that wait are not reached
            if state == "waiting" && keys.is_empty() {
                let waits = queue.waits().map(|(key, _)| key);
                let waits = waits.filter(|key| !view.parked.contains(key));
                keys.extend(waits.take(room).cloned());
            }
            keys
        });
        found.extend(cells);
    }
    if state.is_empty() {
        let room = limit.saturating_sub(found.len());
        found.extend(left_alone(controller).take(room));
    }
    found
}

/// Keys whose names hold a text, of all objects that the controller sees, and the one called so whether there is such an object or not.
fn named(controller: &ControllerHandle, query: &KeyQuery, limit: usize) -> Vec<Key> {
    let q = part(&query.q);
    let undecodable = controller.undecodable();
    let mut keys = controller.objects();
    // what cannot be read at all is no object to the cache
    keys.extend(undecodable.iter().cloned());
    keys.retain(|key| key.as_str().contains(&q));
    if !undecodable.is_empty() {
        keys.sort_unstable();
        keys.dedup();
    }
    if let Ok(exact) = Key::parse(query.q.trim())
        && state_of(controller, &exact).is_some()
        && !keys.contains(&exact)
    {
        keys.push(exact);
    }
    let meant = keys.into_iter().filter(|key| {
        query.state.is_empty() || state(controller, &undecodable, key) == query.state
    });
    // in the order of their names, which is where people look
    let mut meant: Vec<_> = match query.state.is_empty() {
        true => meant.collect(),
        false => meant.take(limit).collect(),
    };
    meant.sort_unstable();
    meant.truncate(limit);
    meant
}

/// What a key is doing in one word.
fn state(controller: &ControllerHandle, undecodable: &BTreeSet<Key>, key: &Key) -> &'static str {
    state_of(controller, key).unwrap_or_else(|| {
        match undecodable.contains(key) && is_left_alone(controller, key) {
            true => "undecodable",
            false => "idle",
        }
    })
}

/// Part of a name as it is looked for: names of objects are in lower case.
pub(super) fn part(q: &str) -> String {
    q.trim().to_lowercase()
}

pub(super) fn top(controllers: &[ControllerHandle], top: Top, limit: usize) -> Vec<KeyRow> {
    let keys = controllers.iter().flat_map(|controller| {
        let keys = match top {
            Top::Failing => controller.failing(),
            Top::Slowest => controller.slowest(limit),
        };
        let rows = keys.into_iter().map(|key| controller.explain(&key));
        rows.map(|told| views::row(&told)).collect::<Vec<_>>()
    });
    let mut rows: Vec<_> = keys.collect();
    match top {
        Top::Failing => rows.sort_by_key(|row| Reverse(row.failures)),
        Top::Slowest => rows.sort_by(|a, b| {
            let time = |row: &KeyRow| row.took_ms.unwrap_or(0.0);
            time(b).total_cmp(&time(a))
        }),
    }
    rows.truncate(limit);
    rows
}

pub(super) fn parked(controllers: &[ControllerHandle], q: &str, limit: usize) -> Parked {
    let q = part(q);
    let mut found = Parked::default();
    for controller in controllers {
        let parked = controller.parked().into_iter();
        let meant = parked.filter(|parked| parked.key.as_str().contains(&q));
        for parked in meant {
            found.total += 1;
            if found.parked.len() < limit {
                found.parked.push(ParkedRow {
                    controller: controller.name().to_owned(),
                    key: parked.key.to_string(),
                    reason: parked.reason,
                    failures: parked.failures,
                    since_ms: views::ms(parked.since),
                    next_ms: views::ms(parked.next_try),
                });
            }
        }
    }
    found
}
