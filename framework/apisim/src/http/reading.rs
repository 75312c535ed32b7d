//! Requests that show objects.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{answer::Answer, media::Form, route::Target, service::Asked};
use crate::{
    api::{
        place,
        read::{ListOptions, Match, Page, Selection},
    },
    failure::{Cause, Failure},
    model::{
        object::Object,
        served::{Served, View},
    },
    patch::merge_patch,
    print,
    selector::{Fields, Labels},
    sim::Inner,
};

/// Carries out a request.
pub(super) fn answer(asked: &Asked<'_>, target: &Target, form: &Form) -> Result<Answer, Failure> {
    match asked.attributes.verb {
        "get" => get(asked, target, form),
        _ => list(asked, target, form),
    }
}

/// Reads the selectors of a request.
fn selection(asked: &Asked<'_>, target: &Target) -> Result<Selection, Failure> {
    Ok(Selection {
        labels: Labels::parse(asked.query.get("labelSelector").unwrap_or_default())?,
        fields: Fields::parse(
            asked.query.get("fieldSelector").unwrap_or_default(),
            &target.served.selectable,
        )?,
    })
}

/// The object as a client is shown it, corrupted if a fault says so.
pub(super) fn shown(inner: &Inner, served: &Served, object: &Object) -> Value {
    let mut value = served.render(&object.body);
    if let Some(patch) = inner.faults.corruption(&served.collection, &object.key) {
        merge_patch(&mut value, &patch);
    }
    value
}

/// Writes objects of one resource as JSON.
pub(super) struct Pen<'a> {
    inner: &'a Inner,
    served: &'a Served,
    /// What stands before the stored part: `kind` and `apiVersion`, or nothing where the real server leaves them out.
    head: String,
    bare: bool,
    /// Whether what is stored can be shown as it is.
    plain: bool,
}

impl<'a> Pen<'a> {
    /// A pen for whole objects.
    pub(super) fn new(inner: &'a Inner, served: &'a Served) -> Self {
        let plain = served.view == View::Same && !inner.faults.corrupts();
        Self {
            inner,
            served,
            head: served.head(),
            bare: false,
            plain,
        }
    }

    /// A pen for the items of a list: built-in kinds do not repeat their kind there.
    fn of_items(inner: &'a Inner, served: &'a Served) -> Self {
        let mut pen = Self::new(inner, served);
        if !served.custom {
            (pen.head, pen.bare) = ("{".into(), true);
        }
        pen
    }

    pub(super) fn write(&self, object: &Object, out: &mut Vec<u8>) {
        if self.plain {
            out.extend_from_slice(self.head.as_bytes());
            out.extend_from_slice(object.tail());
            return;
        }
        let mut value = shown(self.inner, self.served, object);
        if let Some(map) = value.as_object_mut().filter(|_| self.bare) {
            map.remove("kind");
            map.remove("apiVersion");
        }
        out.extend_from_slice(value.to_string().as_bytes());
    }
}

/// An answer with one object, in the form that is wanted.
pub(super) fn one(
    asked: &Asked<'_>,
    served: &Served,
    object: &Object,
    code: u16,
    form: &Form,
) -> Answer {
    match form {
        Form::Json => {
            let mut out = Vec::new();
            Pen::new(asked.inner, served).write(object, &mut out);
            Answer::json(code, out)
        }
        Form::Yaml => Answer::formed(code, form, &shown(asked.inner, served, object)),
        Form::Table(version) => {
            let now = asked.inner.options.time.now();
            let value = shown(asked.inner, served, object);
            let include = asked.query.get("includeObject");
            let meta = json!({"resourceVersion": object.version.to_string()});
            Answer::value(
                code,
                &print::table(served, version, meta, &[value], include, now, true),
            )
        }
        Form::Metadata(version) => Answer::value(
            code,
            &print::metadata(&shown(asked.inner, served, object), version),
        ),
    }
}

fn get(asked: &Asked<'_>, target: &Target, form: &Form) -> Result<Answer, Failure> {
    let served = &target.served;
    if target.subresource == "scale" {
        return asked
            .inner
            .with(|state| state.scale(served, &target.namespace, &target.name))
            .map(|scale| Answer::formed(200, form, &scale));
    }
    let object = find(asked, served, &target.namespace, &target.name)?;
    Ok(one(asked, served, &object, 200, form))
}

/// # Errors
/// When there is no such object.
pub(super) fn find(
    asked: &Asked<'_>,
    served: &Served,
    namespace: &str,
    name: &str,
) -> Result<Arc<Object>, Failure> {
    let key = place(served, namespace, name);
    let found = asked
        .inner
        .with(|state| state.store.get(&served.collection, &key).cloned());
    found.ok_or_else(|| Failure::not_found(served, name))
}

pub(super) fn number(asked: &Asked<'_>, name: &str) -> Result<u64, Failure> {
    let parse = |text: &str| {
        text.parse().map_err(|_| {
            Failure::bad_request(format!(
                "strconv.ParseInt: parsing \"{text}\": invalid syntax"
            ))
        })
    };
    asked.query.get(name).map_or(Ok(0), parse)
}

/// Reads the options of a list or a watch.
pub(super) fn list_options(asked: &Asked<'_>, target: &Target) -> Result<ListOptions, Failure> {
    let how = match asked.query.get("resourceVersionMatch") {
        None => Match::Unset,
        Some("Exact") => Match::Exact,
        Some("NotOlderThan") => Match::NotOlderThan,
        Some(other) => {
            let supported = ["Exact", "NotOlderThan", ""].map(Value::from);
            let cause = Cause::unsupported("resourceVersionMatch", &other.into(), &supported);
            return Err(Failure::invalid_options("ListOptions", cause));
        }
    };
    Ok(ListOptions {
        selection: selection(asked, target)?,
        limit: usize::try_from(number(asked, "limit")?).unwrap_or(usize::MAX),
        token: asked.query.get("continue").map(str::to_owned),
        version: asked.query.get("resourceVersion").map(str::to_owned),
        how,
    })
}

fn list(asked: &Asked<'_>, target: &Target, form: &Form) -> Result<Answer, Failure> {
    let served = &target.served;
    if !asked.inner.options.watch_list && asked.query.flag("sendInitialEvents") {
        return Err(Failure::bad_request(
            "sendInitialEvents is forbidden for list",
        ));
    }
    let options = list_options(asked, target)?;
    let Page {
        version,
        objects,
        next,
        remaining,
    } = asked
        .inner
        .with(|state| state.list(served, &target.namespace, &options))?;
    let mut meta = json!({"resourceVersion": version.to_string()});
    if let Some(token) = next {
        meta["continue"] = token.into();
    }
    if let Some(remaining) = remaining {
        meta["remainingItemCount"] = remaining.into();
    }
    let values = || {
        objects
            .iter()
            .map(|object| shown(asked.inner, served, object))
            .collect::<Vec<_>>()
    };
    Ok(match form {
        Form::Json => {
            let head = json!({"kind": served.list_kind, "apiVersion": served.api_version(), "metadata": meta}).to_string();
            let mut out = head.into_bytes();
            out.pop();
            out.extend_from_slice(b",\"items\":[");
            let pen = Pen::of_items(asked.inner, served);
            for (index, object) in objects.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                pen.write(object, &mut out);
            }
            out.extend_from_slice(b"]}");
            Answer::json(200, out)
        }
        Form::Yaml => {
            let list = json!({"kind": served.list_kind, "apiVersion": served.api_version(), "metadata": meta, "items": values()});
            Answer::formed(200, form, &list)
        }
        Form::Table(table) => {
            let include = asked.query.get("includeObject");
            Answer::value(
                200,
                &print::table(
                    served,
                    table,
                    meta,
                    &values(),
                    include,
                    asked.inner.options.time.now(),
                    true,
                ),
            )
        }
        Form::Metadata(view) => {
            let items: Vec<Value> = values()
                .iter()
                .map(|value| print::metadata(value, view))
                .collect();
            Answer::value(
                200,
                &json!({"kind": "PartialObjectMetadataList", "apiVersion": view, "metadata": meta, "items": items}),
            )
        }
    })
}
