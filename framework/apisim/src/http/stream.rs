//! Watches: the changes of a collection as they happen.

use std::{collections::VecDeque, io, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::future::BoxFuture;
use http_body::Frame;
use http_body_util::StreamBody;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{
    answer::Answer,
    media::Form,
    reading::{Pen, list_options, shown},
    route::Target,
    service::{Asked, SimBody},
};
use crate::{
    api::read::{Match, Selection, forbidden_match, invalid_version},
    attributes::Attributes,
    bell::Ear,
    failure::Failure,
    history::{Change, Expired},
    model::{
        object::Object,
        served::{Served, View},
    },
    print,
    selector::Fields,
    sim::Inner,
};

/// How many changes are taken from the history at once.
const BATCH: usize = 256;

/// Shorter watches end without a bookmark.
const SHORT: Duration = Duration::from_secs(10);

/// Opens a watch.
pub(super) fn open(asked: &Asked<'_>, target: &Target, form: Form) -> Result<Answer, Failure> {
    let mut options = list_options(asked, target)?;
    if !target.name.is_empty() {
        options.selection.fields = Fields::parse(&format!("metadata.name={}", target.name), &[])?;
    }
    let bookmarks = asked.query.flag("allowWatchBookmarks");
    // a server that does not know the parameter does not see it
    let streaming =
        asked.inner.options.watch_list && asked.query.get("sendInitialEvents").is_some();
    match (options.how, streaming) {
        (Match::Unset, false) | (Match::NotOlderThan, true) => {}
        (_, false) => {
            return Err(forbidden_match(
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            ));
        }
        (_, true) => {
            return Err(forbidden_match(
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ));
        }
    }
    let initial = streaming && asked.query.flag("sendInitialEvents");
    let asked_version = match options.version.as_deref() {
        None | Some("") => 0,
        Some(text) => text.parse::<u64>().map_err(|_| invalid_version(text))?,
    };
    let timeout = match asked
        .query
        .get("timeoutSeconds")
        .and_then(|text| text.parse().ok())
    {
        Some(seconds) if seconds > 0 => Duration::from_secs(seconds),
        _ => asked.inner.options.watch_timeout,
    };
    let served = target.served.clone();
    let changes = asked.inner.subscribe(&served.collection);
    let wants_all = initial || asked_version == 0;
    let (current, replay, start) = asked.inner.with(|state| {
        let store = &state.store;
        let current = store.version();
        let start = if wants_all {
            Ok(())
        } else {
            store.reaches(asked_version)
        };
        let all = wants_all.then(|| {
            store
                .scan(&served.collection, &target.namespace)
                .cloned()
                .collect()
        });
        (current, all.unwrap_or_default(), start)
    });
    if initial && asked_version > current {
        return Err(Failure::version_too_large(asked_version, current));
    }
    let time = &asked.inner.options.time;
    let bookmark_interval = asked.inner.options.bookmark_interval.filter(|_| bookmarks);
    let mut watch = Watch {
        inner: asked.inner.clone(),
        attributes: asked.attributes.clone(),
        namespace: target.namespace.clone(),
        selection: options.selection,
        include: asked.query.get("includeObject").map(str::to_owned),
        cursor: if wants_all { current } else { asked_version },
        replay,
        mark: initial && bookmarks,
        cut: initial
            .then(|| asked.inner.faults.cut(asked.attributes))
            .flatten(),
        opened: asked.inner.faults.moment(),
        control: asked.inner.faults.changes(),
        changes,
        closing: asked.closing.cloned(),
        deadline: time.sleep(timeout),
        bookmark: bookmark_interval.map(|interval| (interval, time.sleep(interval))),
        last_bookmark: bookmarks && timeout >= SHORT,
        pending: VecDeque::new(),
        columns_due: true,
        over: false,
        served,
        form,
    };
    if let Err(expired) = start {
        watch.expire(expired);
    }
    let frames = futures::stream::unfold(watch, |mut watch| async move {
        let next = watch.next().await?;
        Some((next.map(Frame::data), watch))
    });
    Ok(Answer::stream(SimBody::new(StreamBody::new(frames))))
}

/// An open watch. Every wait is for a channel whose newest value was seen before the state was read, so that no
/// change falls between.
struct Watch {
    inner: Arc<Inner>,
    attributes: Attributes,
    served: Arc<Served>,
    namespace: String,
    selection: Selection,
    form: Form,
    include: Option<String>,
    /// All changes up to this version are sent or pending.
    cursor: u64,
    /// Objects still to be sent as ADDED.
    replay: VecDeque<Arc<Object>>,
    /// Whether the end of the replay is to be marked by a bookmark.
    mark: bool,
    /// How many more initial events are sent before a scripted end.
    cut: Option<usize>,
    /// The moment on the switchboard of faults; only later drops end this watch.
    opened: u64,
    control: Ear,
    changes: Ear,
    closing: Option<watch::Receiver<bool>>,
    deadline: BoxFuture<'static, ()>,
    bookmark: Option<(Duration, BoxFuture<'static, ()>)>,
    /// Whether a bookmark closes the watch.
    last_bookmark: bool,
    pending: VecDeque<Bytes>,
    /// The first table of a watch carries the columns.
    columns_due: bool,
    over: bool,
}

enum Woke {
    Closing,
    Control,
    Changes,
    Deadline,
    Bookmark,
}

impl Watch {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            self.control.hear();
            self.changes.hear();
            if self.inner.faults.is_unreachable() && !self.over {
                self.over = true;
                let gone = io::Error::new(
                    io::ErrorKind::ConnectionReset,
                    "the simulated API server went away",
                );
                return Some(Err(gone));
            }
            let closing = self
                .closing
                .as_ref()
                .is_some_and(|closing| *closing.borrow());
            if closing
                || self
                    .inner
                    .faults
                    .dropped_since(self.opened, &self.attributes)
            {
                return None;
            }
            let stalled = self.inner.faults.stalls(&self.attributes);
            if !stalled {
                if self.pending.is_empty() && !self.over {
                    self.fill();
                }
                match self.pending.pop_front() {
                    Some(line) => return Some(Ok(line)),
                    None if self.over => return None,
                    None => {}
                }
            }
            match self.wait(stalled).await {
                Woke::Closing => return None,
                Woke::Control | Woke::Changes => {}
                Woke::Deadline => {
                    self.over = true;
                    if self.last_bookmark && !stalled && self.may_mark() {
                        let line = self.bookmark_line(false);
                        return Some(Ok(line));
                    }
                    return None;
                }
                Woke::Bookmark => {
                    let time = &self.inner.options.time;
                    if let Some((interval, timer)) = &mut self.bookmark {
                        *timer = time.sleep(*interval);
                    }
                    if !stalled && self.may_mark() {
                        return Some(Ok(self.bookmark_line(false)));
                    }
                }
            }
        }
    }

    async fn wait(&mut self, stalled: bool) -> Woke {
        let closing = async {
            match &mut self.closing {
                // a listener that has gone without a word has closed as well
                Some(closing) => drop(closing.wait_for(|closing| *closing).await),
                None => std::future::pending().await,
            }
        };
        let bookmark = async {
            match &mut self.bookmark {
                Some((_, timer)) => timer.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = closing => Woke::Closing,
            () = self.control.rung() => Woke::Control,
            () = self.changes.rung(), if !stalled => Woke::Changes,
            () = &mut self.deadline => Woke::Deadline,
            () = bookmark => Woke::Bookmark,
        }
    }

    /// Takes what has happened from the store.
    fn fill(&mut self) {
        for _ in 0..BATCH {
            let Some(object) = self.replay.pop_front() else {
                break;
            };
            if self.selection.matches(&object) {
                if let Some(left) = &mut self.cut {
                    if *left == 0 {
                        (self.over, self.mark) = (true, false);
                        self.replay.clear();
                        return;
                    }
                    *left -= 1;
                }
                let line = self.line("ADDED", &object);
                self.pending.push_back(line);
            }
        }
        if !self.pending.is_empty() || !self.replay.is_empty() {
            return;
        }
        if self.mark && !self.inner.faults.withholds_initial_end(&self.attributes) {
            self.mark = false;
            let line = self.bookmark_line(true);
            self.pending.push_back(line);
            return;
        }
        let collection = self.served.collection.clone();
        let (version, served, taken) = self.inner.with(|state| {
            let taken = state
                .store
                .table(&collection)
                .map_or(Ok(Vec::new()), |table| {
                    table
                        .history
                        .since(self.cursor)
                        .map(|changes| changes.take(BATCH).cloned().collect::<Vec<_>>())
                });
            (
                state.store.version(),
                state.registry.of_collection(&collection).is_some(),
                taken,
            )
        });
        match taken {
            Err(expired) => self.expire(expired),
            Ok(changes) => {
                if let Some(last) = changes.last() {
                    self.cursor = last.version;
                }
                if changes.len() < BATCH {
                    // nothing is left up to this version, and bookmarks may say so; a cursor in the future stays there
                    self.cursor = self.cursor.max(version);
                    // a resource that is served no more ends its watches
                    self.over |= !served;
                }
                for change in changes {
                    if let Some(line) = self.event(&change) {
                        self.pending.push_back(line);
                    }
                }
            }
        }
    }

    fn expire(&mut self, expired: Expired) {
        let status = Failure::expired(expired.to_string()).status();
        self.pending.push_back(line_of("ERROR", &status));
        self.over = true;
    }

    fn event(&mut self, change: &Arc<Change>) -> Option<Bytes> {
        if !self.namespace.is_empty() && change.new.key.namespace != self.namespace {
            return None;
        }
        let natural = match (&change.old, change.deleted) {
            (_, true) => "DELETED",
            (None, false) => "ADDED",
            (Some(_), false) => "MODIFIED",
        };
        if self.selection.is_all() {
            return Some(self.shared(natural, change));
        }
        let before = change
            .old
            .as_ref()
            .is_some_and(|old| self.selection.matches(old));
        let after = !change.deleted && self.selection.matches(&change.new);
        match (before, after) {
            (false, false) => None,
            (false, true) => Some(self.line("ADDED", &change.new)),
            (true, true) => Some(self.shared("MODIFIED", change)),
            (true, false) if change.deleted => Some(self.shared("DELETED", change)),
            // what leaves the selection is shown as it last was inside, at the version at which it left
            (true, false) => {
                let old = change.old.as_ref()?;
                let last = Object::new(old.key.clone(), change.version, old.body.clone());
                Some(self.line("DELETED", &last))
            }
        }
    }

    /// The line of a change, encoded once for all watches that see it alike.
    fn shared(&mut self, kind: &'static str, change: &Arc<Change>) -> Bytes {
        let alike = self.form == Form::Json && self.served.native && self.served.view == View::Same;
        if alike && !self.inner.faults.corrupts() {
            return change
                .line
                .get_or_init(|| encode(&self.inner, &self.served, kind, &change.new))
                .clone();
        }
        self.line(kind, &change.new)
    }

    fn line(&mut self, kind: &str, object: &Object) -> Bytes {
        match &self.form {
            Form::Json | Form::Yaml => encode(&self.inner, &self.served, kind, object),
            Form::Metadata(version) => line_of(
                kind,
                &print::metadata(&shown(&self.inner, &self.served, object), version),
            ),
            Form::Table(version) => {
                let value = shown(&self.inner, &self.served, object);
                let meta = json!({"resourceVersion": object.version.to_string()});
                let now: Timestamp = self.inner.options.time.now();
                let columns = std::mem::take(&mut self.columns_due);
                line_of(
                    kind,
                    &print::table(
                        &self.served,
                        version,
                        meta,
                        &[value],
                        self.include.as_deref(),
                        now,
                        columns,
                    ),
                )
            }
        }
    }

    /// No bookmark comes before the one that ends the initial events, and none to a watch from the future: the server has nothing to say that
    /// such a client does not believe to know.
    fn may_mark(&self) -> bool {
        !self.mark && self.cursor <= self.inner.with(|state| state.store.version())
    }

    fn bookmark_line(&self, initial_end: bool) -> Bytes {
        let mut meta = json!({"resourceVersion": self.cursor.to_string()});
        if initial_end {
            meta["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = match &self.form {
            Form::Metadata(version) => {
                json!({"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": meta})
            }
            Form::Table(version) => {
                json!({"kind": "Table", "apiVersion": version, "metadata": {"resourceVersion": self.cursor.to_string()}, "columnDefinitions": null, "rows": []})
            }
            _ => {
                json!({"kind": self.served.kind, "apiVersion": self.served.api_version(), "metadata": meta})
            }
        };
        line_of("BOOKMARK", &object)
    }
}

fn encode(inner: &Inner, served: &Served, kind: &str, object: &Object) -> Bytes {
    let mut out = Vec::with_capacity(object.tail().len() + 128);
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
    Pen::new(inner, served).write(object, &mut out);
    out.extend_from_slice(b"}\n");
    out.into()
}

fn line_of(kind: &str, object: &Value) -> Bytes {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n").into()
}
