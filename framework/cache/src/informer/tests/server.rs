//! A server of one kind, in this process: lists in pages, watches, and faults on request.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use boatswain_supervision::Clock;
use bytes::Bytes;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::stream::{self, BoxStream, StreamExt};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use serde_json::{Value, json};

type Chunk = Result<Frame<Bytes>, std::io::Error>;
type Body = StreamBody<BoxStream<'static, Chunk>>;
type State = Arc<BTreeMap<String, Value>>;

/// What to answer instead.
pub(super) enum Fault {
    /// A refusal with code, reason and further members of the status.
    Refuse(u16, &'static str, Value),
    /// These bytes, and then the end.
    Answer(String),
    /// These bytes, and then a broken connection.
    Break(String),
    /// No answer, ever.
    Hang,
    /// The connection cannot be made.
    Unreachable,
    /// A watch that says nothing, ever.
    Mute,
    /// Bytes of another kind, as the header says.
    Foreign(&'static str, &'static str),
    /// A refusal whose words never come.
    Speechless(u16),
    /// A list that goes on for ever, one byte of an item at a time.
    Trickle(Clock),
}

#[derive(Clone, Default)]
pub(super) struct Server(Arc<Mutex<World>>);

#[derive(Default)]
pub(super) struct World {
    version: u64,
    oldest: u64,
    uids: u64,
    objects: State,
    /// States by version, for pages of a list.
    states: BTreeMap<u64, State>,
    events: Vec<(u64, String)>,
    watchers: Vec<UnboundedSender<Chunk>>,
    compact_after_page: bool,
    faults: HashMap<&'static str, VecDeque<Fault>>,
    /// Verb and query of every request.
    pub(super) requests: Vec<(String, String)>,
}

impl Server {
    pub(super) fn client(&self) -> kube::Client {
        let server = self.clone();
        kube::Client::new(
            tower::service_fn(move |request: Request<kube::client::Body>| {
                let server = server.clone();
                async move { server.answer(request.into_parts().0).await }
            }),
            "default",
        )
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    /// Creates many objects at once, before anybody watches.
    pub(super) fn fill(&self, count: u64) {
        let mut world = self.world();
        world.version += count;
        let object = |number: u64| {
            json!({"metadata": {
                "name": format!("web-{number:05}"), "namespace": "default", "uid": format!("uid-{number}"), "resourceVersion": (number + 1).to_string(),
            }})
        };
        let objects = (0..count).map(object).map(|object| {
            (
                object["metadata"]["name"].as_str().unwrap().to_owned(),
                object,
            )
        });
        world.objects = Arc::new(objects.collect());
    }

    /// Creates or changes `default/name`; returns its version.
    pub(super) fn put(&self, name: &str, spec: Value) -> u64 {
        self.put_raw(name, json!({"spec": spec}))
    }

    /// The same with members of the caller's choice.
    pub(super) fn put_raw(&self, name: &str, members: Value) -> u64 {
        let mut world = self.world();
        let old = world.objects.get(name).cloned();
        let uid = match &old {
            Some(old) => old["metadata"]["uid"].clone(),
            None => {
                world.uids += 1;
                format!("uid-{}", world.uids).into()
            }
        };
        world.version += 1;
        let version = world.version;
        let mut object = json!({"metadata": {
            "name": name, "namespace": "default", "uid": uid, "resourceVersion": version.to_string(), "managedFields": [{"manager": "m"}],
        }});
        merge(&mut object, members);
        Arc::make_mut(&mut world.objects).insert(name.to_owned(), object.clone());
        world.record(if old.is_some() { "MODIFIED" } else { "ADDED" }, &object);
        version
    }

    pub(super) fn delete(&self, name: &str) {
        let mut world = self.world();
        if let Some(mut object) = Arc::make_mut(&mut world.objects).remove(name) {
            world.version += 1;
            object["metadata"]["resourceVersion"] = world.version.to_string().into();
            world.record("DELETED", &object);
        }
    }

    /// Other kinds move the server's version on, and then it forgets the past: watches and pages of it get 410.
    pub(super) fn compact(&self) {
        let mut world = self.world();
        world.version += 1;
        world.oldest = world.version;
        let oldest = world.oldest;
        world.states.retain(|version, _| *version >= oldest);
        world.events.clear();
    }

    /// Goes back to the objects of an earlier version, as an etcd restored from a backup does.
    pub(super) fn restore(&self, version: u64) {
        let mut world = self.world();
        world.objects = world.states[&version].clone();
        world.version = version;
        world.states.retain(|other, _| *other <= version);
        world.events.retain(|(other, _)| *other <= version);
    }

    /// Does something that no watch is told of, now or later.
    pub(super) fn silently(&self, what: impl FnOnce(&Self)) {
        let watchers = std::mem::take(&mut self.world().watchers);
        what(self);
        self.world().watchers = watchers;
    }

    /// Ends all watches; what they had not been told can no longer be asked for.
    pub(super) fn cut_and_compact(&self) {
        self.compact();
        self.drop_watches();
    }

    /// Forgets everything once a page of a list was answered that is not the last.
    pub(super) fn compact_after_page(&self) {
        self.world().compact_after_page = true;
    }

    pub(super) fn drop_watches(&self) {
        self.world().watchers.clear();
    }

    pub(super) fn bookmark(&self) {
        let world = self.world();
        world.send(&json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": world.version.to_string()}}}).to_string());
    }

    /// Sends a line to every watch.
    pub(super) fn say(&self, line: &str) {
        self.world().send(line);
    }

    /// Answers the next request with `verb` so.
    pub(super) fn fault(&self, verb: &'static str, fault: Fault) {
        self.world()
            .faults
            .entry(verb)
            .or_default()
            .push_back(fault);
    }

    pub(super) fn version(&self) -> u64 {
        self.world().version
    }

    pub(super) fn requests(&self, verb: &str) -> Vec<String> {
        self.world()
            .requests
            .iter()
            .filter(|(other, _)| other == verb)
            .map(|(_, query)| query.clone())
            .collect()
    }

    /// Name and version of every object.
    pub(super) fn state(&self) -> BTreeMap<String, String> {
        let version = |object: &Value| {
            object["metadata"]["resourceVersion"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        self.world()
            .objects
            .iter()
            .map(|(name, object)| (name.clone(), version(object)))
            .collect()
    }

    async fn answer(
        &self,
        request: http::request::Parts,
    ) -> Result<Response<Body>, std::io::Error> {
        let verb = *request.extensions.get::<&'static str>().unwrap();
        assert_eq!(request.headers["accept"], "application/json");
        assert_eq!(
            request.headers.contains_key("accept-encoding"),
            verb == "watch"
        );
        let query = request.uri.query().unwrap_or_default().to_owned();
        let fault = {
            let mut world = self.world();
            world.requests.push((verb.to_owned(), query.clone()));
            world.faults.get_mut(verb).and_then(VecDeque::pop_front)
        };
        match fault {
            None => Ok(self.serve(verb, &query)),
            Some(Fault::Refuse(code, reason, more)) => Ok(refusal(code, reason, more)),
            Some(Fault::Answer(text)) => Ok(whole(200, text)),
            Some(Fault::Break(text)) => {
                let broken = stream::iter([
                    Ok(Frame::data(Bytes::from(text))),
                    Err(std::io::Error::other("connection reset")),
                ]);
                Ok(Response::new(StreamBody::new(broken.boxed())))
            }
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::Unreachable) => Err(std::io::Error::new(
                std::io::ErrorKind::ConnectionRefused,
                "connection refused",
            )),
            Some(Fault::Foreign(header, value)) => {
                let mut answer = whole(200, "<html>login</html>\n".into());
                answer.headers_mut().insert(header, value.parse().unwrap());
                Ok(answer)
            }
            Some(Fault::Speechless(code)) => {
                let mut answer = Response::new(StreamBody::new(stream::pending().boxed()));
                *answer.status_mut() = http::StatusCode::from_u16(code).unwrap();
                Ok(answer)
            }
            Some(Fault::Trickle(clock)) => {
                let start = "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{\"x\":\"";
                let drops = stream::unfold((start, clock), |(drop, clock)| async move {
                    clock.sleep(std::time::Duration::from_secs(20)).await;
                    Some((Ok(Frame::data(Bytes::from(drop))), ("x", clock)))
                });
                Ok(Response::new(StreamBody::new(drops.boxed())))
            }
            Some(Fault::Mute) => Ok(Response::new(StreamBody::new(stream::pending().boxed()))),
        }
    }

    fn serve(&self, verb: &str, query: &str) -> Response<Body> {
        let query: HashMap<String, String> = form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        let mut world = self.world();
        let version = query
            .get("resourceVersion")
            .map_or(0, |text| text.parse::<u64>().unwrap());
        if verb == "watch" {
            let (sender, receiver) = unbounded();
            if version < world.oldest {
                let status = json!({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}});
                return whole(200, format!("{status}\n"));
            }
            for (_, line) in world.events.iter().filter(|(at, _)| *at > version) {
                let _ = sender.unbounded_send(data(line));
            }
            world.watchers.push(sender);
            return Response::new(StreamBody::new(receiver_stream(receiver)));
        }
        if query.contains_key("resourceVersionMatch") && version > world.version {
            let causes = json!({"details": {"causes": [{"reason": "ResourceVersionTooLarge"}]}});
            return refusal(504, "Timeout", causes);
        }
        let (at, from) = match query
            .get("continue")
            .and_then(|token| token.split_once(':'))
        {
            Some((at, from)) => (at.parse().unwrap(), from.to_owned()),
            None => (world.version, String::new()),
        };
        let current = world.version;
        let objects = world.objects.clone();
        world.states.entry(current).or_insert(objects);
        let Some(state) = world.states.get(&at).cloned() else {
            return refusal(410, "Expired", json!({}));
        };
        let limit = query
            .get("limit")
            .map_or(usize::MAX, |text| text.parse().unwrap());
        let mut rest = state.range(from..);
        let items: Vec<&Value> = rest
            .by_ref()
            .take(limit)
            .map(|(_, object)| object)
            .collect();
        let next = rest.next().map(|(name, _)| format!("{at}:{name}"));
        let text = json!({"kind": "List", "metadata": {"resourceVersion": at.to_string(), "continue": next}, "items": items}).to_string();
        if next.is_some() && std::mem::take(&mut world.compact_after_page) {
            world.version += 1;
            world.states.clear();
        }
        whole(200, text)
    }
}

impl World {
    fn record(&mut self, kind: &str, object: &Value) {
        let line = json!({"type": kind, "object": object}).to_string();
        self.events.push((self.version, line.clone()));
        self.states.insert(self.version, self.objects.clone());
        self.send(&line);
    }

    fn send(&self, line: &str) {
        for watcher in &self.watchers {
            let _ = watcher.unbounded_send(data(line));
        }
    }
}

fn data(line: &str) -> Chunk {
    Ok(Frame::data(Bytes::from(format!("{line}\n"))))
}

fn receiver_stream(receiver: UnboundedReceiver<Chunk>) -> BoxStream<'static, Chunk> {
    receiver.boxed()
}

fn whole(code: u16, text: String) -> Response<Body> {
    let once = stream::once(async move { Ok(Frame::data(Bytes::from(text))) });
    let mut response = Response::new(StreamBody::new(once.boxed()));
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
    response
}

fn refusal(code: u16, reason: &str, more: Value) -> Response<Body> {
    let mut status = json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": format!("{reason} it is")});
    merge(&mut status, more);
    whole(code, status.to_string())
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}
