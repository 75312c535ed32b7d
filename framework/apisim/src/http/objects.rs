//! Requests about objects: everything but watches.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::{
    answer::Answer,
    media::{self, Form},
    route::Target,
    service::Asked,
};
use crate::{
    api::{
        Unknown, Write,
        delete::{Deleted, Deletion},
        patch::Dialect,
        read::{ListOptions, Match, Page, Selection},
    },
    failure::{Cause, Failure},
    model::{
        object::{Key, Object},
        served::{Served, View},
    },
    patch::merge_patch,
    print,
    selector::{Fields, Labels},
    sim::Inner,
    time::seconds,
};

/// Carries out a request.
pub(super) fn answer(asked: &Asked<'_>, target: &Target, form: &Form) -> Result<Answer, Failure> {
    match asked.attributes.verb {
        "get" => get(asked, target, form),
        "list" => list(asked, target, form),
        "create" => create(asked, target, form),
        "update" => update(asked, target, form),
        "patch" => patch(asked, target, form),
        "delete" => delete(asked, target, form),
        "deletecollection" => delete_collection(asked, target),
        _ => Err(Failure::method_not_allowed()),
    }
}

/// Reads the selectors of a request.
pub(super) fn selection(asked: &Asked<'_>, target: &Target) -> Result<Selection, Failure> {
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

fn one(asked: &Asked<'_>, served: &Served, object: &Object, code: u16, form: &Form) -> Answer {
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

fn wrote(
    answer: Answer,
    asked: &Asked<'_>,
    served: &Served,
    object: &Object,
    before: Option<u64>,
    write: &Write,
) -> Answer {
    let mut body = Vec::new();
    Pen::new(asked.inner, served).write(object, &mut body);
    let changed = !write.dry_run && before != Some(object.version);
    answer
        .wrote(object.version, changed, Bytes::from(body))
        .warn(&write.warnings)
}

fn get(asked: &Asked<'_>, target: &Target, form: &Form) -> Result<Answer, Failure> {
    let served = &target.served;
    if target.subresource == "scale" {
        return asked
            .inner
            .with(|state| state.scale(served, &target.namespace, &target.name))
            .map(|scale| Answer::formed(200, form, &scale));
    }
    let key = crate::api::place(served, &target.namespace, &target.name);
    let found = asked
        .inner
        .with(|state| state.store.get(&served.collection, &key).cloned());
    let object = found.ok_or_else(|| Failure::not_found(served, &target.name))?;
    Ok(one(asked, served, &object, 200, form))
}

fn number(asked: &Asked<'_>, name: &str) -> Result<u64, Failure> {
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

fn write_of(asked: &Asked<'_>, target: &Target) -> Result<Write, Failure> {
    let subresource = match target.subresource.as_str() {
        "status" => "status",
        "scale" => "scale",
        "finalize" => "finalize",
        _ => "",
    };
    let unknown = match asked.query.get("fieldValidation") {
        None | Some("Warn") => Unknown::Warn,
        Some("Strict") => Unknown::Refuse,
        Some("Ignore") => Unknown::Ignore,
        Some(other) => {
            let supported = ["", "Ignore", "Strict", "Warn"].map(Value::from);
            let cause = Cause::unsupported("fieldValidation", &other.into(), &supported);
            return Err(Failure::invalid_options("UpdateOptions", cause));
        }
    };
    let agent = asked.user_agent.split('/').next().unwrap_or_default();
    Ok(Write {
        now: seconds(asked.inner.options.time.now()),
        manager: asked.query.get("fieldManager").unwrap_or(agent).to_owned(),
        dry_run: asked.query.get("dryRun").is_some(),
        unknown,
        subresource,
        warnings: Vec::new(),
    })
}

fn create(asked: &Asked<'_>, target: &Target, form: &Form) -> Result<Answer, Failure> {
    if !target.name.is_empty() || target.served.namespaced && target.namespace.is_empty() {
        return Err(Failure::method_not_allowed());
    }
    let body = media::decode(asked.content_type, asked.body)?;
    let mut write = write_of(asked, target)?;
    let object = asked
        .inner
        .with(|state| state.create(&target.served, &target.namespace, body, &mut write))?;
    let answer = one(asked, &target.served, &object, 201, form);
    Ok(wrote(answer, asked, &target.served, &object, None, &write))
}

/// The version of the object before a write, to tell whether the write changed anything.
fn version_before(asked: &Asked<'_>, target: &Target) -> Option<u64> {
    let key = crate::api::place(&target.served, &target.namespace, &target.name);
    asked.inner.with(|state| {
        state
            .store
            .get(&target.served.collection, &key)
            .map(|object| object.version)
    })
}

fn scaled(
    asked: &Asked<'_>,
    scale: &Value,
    before: Option<u64>,
    form: &Form,
    write: &Write,
) -> Answer {
    let _ = asked;
    let version = scale
        .pointer("/metadata/resourceVersion")
        .and_then(Value::as_str)
        .and_then(|v| v.parse().ok());
    let changed = !write.dry_run && version != before;
    Answer::formed(200, form, scale)
        .wrote(
            version.unwrap_or(0),
            changed,
            Bytes::from(scale.to_string()),
        )
        .warn(&write.warnings)
}

fn update(asked: &Asked<'_>, target: &Target, form: &Form) -> Result<Answer, Failure> {
    if target.name.is_empty() {
        return Err(Failure::method_not_allowed());
    }
    let (served, namespace, name) = (&target.served, &target.namespace, &target.name);
    let body = media::decode(asked.content_type, asked.body)?;
    let mut write = write_of(asked, target)?;
    let before = version_before(asked, target);
    if target.subresource == "scale" {
        let scale = asked
            .inner
            .with(|state| state.rescale(served, namespace, name, &body, &mut write))?;
        return Ok(scaled(asked, &scale, before, form, &write));
    }
    let object = asked
        .inner
        .with(|state| state.update(served, namespace, name, body, &mut write))?;
    let answer = one(
        asked,
        served,
        &object,
        if before.is_none() { 201 } else { 200 },
        form,
    );
    Ok(wrote(answer, asked, served, &object, before, &write))
}

fn patch(asked: &Asked<'_>, target: &Target, form: &Form) -> Result<Answer, Failure> {
    if target.name.is_empty() {
        return Err(Failure::method_not_allowed());
    }
    let (served, namespace, name) = (&target.served, &target.namespace, &target.name);
    let (dialect, body) =
        media::decode_patch(asked.content_type, asked.body, asked.query.flag("force"))?;
    let mut write = write_of(asked, target)?;
    if matches!(dialect, Dialect::Apply { .. }) {
        // whoever applies says who they are
        write.manager = asked.query.get("fieldManager").unwrap_or_default().into();
    }
    let before = version_before(asked, target);
    if target.subresource == "scale" {
        let scale = asked
            .inner
            .with(|state| state.patch_scale(served, namespace, name, dialect, &body, &mut write))?;
        return Ok(scaled(asked, &scale, before, form, &write));
    }
    let (object, created) = asked
        .inner
        .with(|state| state.patch(served, namespace, name, dialect, &body, &mut write))?;
    let answer = one(
        asked,
        served,
        &object,
        if created { 201 } else { 200 },
        form,
    );
    Ok(wrote(answer, asked, served, &object, before, &write))
}

/// Reads `DeleteOptions`, and whether they ask for a dry run.
fn deletion(asked: &Asked<'_>) -> Result<(Deletion, bool), Failure> {
    let options = match asked.body.is_empty() {
        true => Value::Null,
        false => media::decode(asked.content_type, asked.body)?,
    };
    Ok((
        Deletion::parse(&options, asked.query.get("propagationPolicy"))?,
        options.get("dryRun").is_some(),
    ))
}

fn delete(asked: &Asked<'_>, target: &Target, form: &Form) -> Result<Answer, Failure> {
    if !target.subresource.is_empty() {
        return Err(Failure::method_not_allowed());
    }
    let served = &target.served;
    let mut write = write_of(asked, target)?;
    let (deletion, dry_run) = deletion(asked)?;
    write.dry_run |= dry_run;
    let deleted = asked
        .inner
        .with(|state| state.delete(served, &target.namespace, &target.name, &deletion, &write))?;
    Ok(match deleted {
        Deleted::Marked(object) => {
            let answer = one(asked, served, &object, 200, form);
            wrote(answer, asked, served, &object, None, &write)
        }
        Deleted::Gone(object) => {
            let mut details =
                json!({"name": target.name, "kind": served.plural, "uid": object.uid()});
            if !served.group.is_empty() {
                details["group"] = served.group.clone().into();
            }
            let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
            wrote(
                Answer::formed(200, form, &status),
                asked,
                served,
                &object,
                None,
                &write,
            )
        }
    })
}

fn delete_collection(asked: &Asked<'_>, target: &Target) -> Result<Answer, Failure> {
    let served: &Arc<Served> = &target.served;
    let options = list_options(asked, target)?;
    let (mut write, (deletion, dry_run)) = (write_of(asked, target)?, deletion(asked)?);
    write.dry_run |= dry_run;
    let page = asked.inner.with(|state| {
        let page = state.list(served, &target.namespace, &options)?;
        for object in &page.objects {
            let Key { namespace, name } = &object.key;
            state.delete(served, namespace, name, &deletion, &write)?;
        }
        Ok::<_, Failure>(page)
    })?;
    let items: Vec<Value> = page
        .objects
        .iter()
        .map(|object| shown(asked.inner, served, object))
        .collect();
    let meta = json!({"resourceVersion": page.version.to_string()});
    Ok(Answer::value(
        200,
        &json!({"kind": served.list_kind, "apiVersion": served.api_version(), "metadata": meta, "items": items}),
    ))
}
