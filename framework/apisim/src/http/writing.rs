//! Requests that change objects.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{
    answer::Answer,
    media::{self, Form},
    reading::{Pen, list_options, one, shown},
    route::Target,
    service::Asked,
};
use crate::{
    api::{
        State, Unknown, Write,
        delete::{Deleted, Deletion},
        patch::Dialect,
        place,
    },
    failure::{Cause, Failure},
    model::object::{Key, Object},
    time::seconds,
};

/// Carries out a request.
pub(super) fn answer(asked: &Asked<'_>, target: &Target, form: &Form) -> Result<Answer, Failure> {
    let act = match asked.attributes.verb {
        "create" => create,
        "update" => update,
        "patch" => patch,
        "delete" => delete,
        "deletecollection" => return delete_collection(asked, target),
        _ => return Err(Failure::method_not_allowed()),
    };
    let (target_named, create_named) = (!target.name.is_empty(), asked.attributes.verb == "create");
    let placed = !target.served.namespaced || !target.namespace.is_empty();
    if target_named == create_named || !placed {
        return Err(Failure::method_not_allowed());
    }
    act(asked, target, form)
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

/// Carries out a write, and tells the version of its object before, seen in the same step.
fn carry_out<T>(
    asked: &Asked<'_>,
    target: &Target,
    act: impl FnOnce(&mut State) -> Result<T, Failure>,
) -> Result<(Option<u64>, T), Failure> {
    let key = place(&target.served, &target.namespace, &target.name);
    asked.inner.with(|state| {
        let before = state
            .store
            .get(&target.served.collection, &key)
            .map(|object| object.version);
        Ok((before, act(state)?))
    })
}

/// Notes what a write did, for the audit log.
fn wrote(
    answer: Answer,
    asked: &Asked<'_>,
    target: &Target,
    object: &Object,
    before: Option<u64>,
    write: &Write,
) -> Answer {
    let mut body = Vec::new();
    Pen::new(asked.inner, &target.served).write(object, &mut body);
    let changed = !write.dry_run && before != Some(object.version);
    answer
        .wrote(object.version, changed, Bytes::from(body))
        .warn(&write.warnings)
}

fn scaled(scale: &Value, before: Option<u64>, form: &Form, write: &Write) -> Answer {
    let version = scale
        .pointer("/metadata/resourceVersion")
        .and_then(Value::as_str)
        .and_then(|v| v.parse().ok());
    let changed = !write.dry_run && version != before;
    let answer = Answer::formed(200, form, scale);
    answer
        .wrote(
            version.unwrap_or(0),
            changed,
            Bytes::from(scale.to_string()),
        )
        .warn(&write.warnings)
}

fn create(asked: &Asked<'_>, target: &Target, form: &Form) -> Result<Answer, Failure> {
    let body = media::decode(asked.content_type, asked.body)?;
    let mut write = write_of(asked, target)?;
    let act = |state: &mut State| state.create(&target.served, &target.namespace, body, &mut write);
    let (before, object) = carry_out(asked, target, act)?;
    let answer = one(asked, &target.served, &object, 201, form);
    Ok(wrote(answer, asked, target, &object, before, &write))
}

fn update(asked: &Asked<'_>, target: &Target, form: &Form) -> Result<Answer, Failure> {
    let (served, namespace, name) = (&target.served, &target.namespace, &target.name);
    let body = media::decode(asked.content_type, asked.body)?;
    let mut write = write_of(asked, target)?;
    if target.subresource == "scale" {
        let act = |state: &mut State| state.rescale(served, namespace, name, &body, &mut write);
        let (before, scale) = carry_out(asked, target, act)?;
        return Ok(scaled(&scale, before, form, &write));
    }
    let act = |state: &mut State| state.update(served, namespace, name, body, &mut write);
    let (before, object) = carry_out(asked, target, act)?;
    let code = if before.is_none() { 201 } else { 200 };
    let answer = one(asked, served, &object, code, form);
    Ok(wrote(answer, asked, target, &object, before, &write))
}

fn patch(asked: &Asked<'_>, target: &Target, form: &Form) -> Result<Answer, Failure> {
    let (served, namespace, name) = (&target.served, &target.namespace, &target.name);
    let force = asked.query.flag("force");
    let (dialect, body) = media::decode_patch(asked.content_type, asked.body, force)?;
    let mut write = write_of(asked, target)?;
    if matches!(dialect, Dialect::Apply { .. }) {
        // whoever applies says who they are
        write.manager = asked.query.get("fieldManager").unwrap_or_default().into();
    }
    if target.subresource == "scale" {
        let act = |state: &mut State| {
            state.patch_scale(served, namespace, name, dialect, &body, &mut write)
        };
        let (before, scale) = carry_out(asked, target, act)?;
        return Ok(scaled(&scale, before, form, &write));
    }
    let act = |state: &mut State| state.patch(served, namespace, name, dialect, &body, &mut write);
    let (before, (object, created)) = carry_out(asked, target, act)?;
    let answer = one(
        asked,
        served,
        &object,
        if created { 201 } else { 200 },
        form,
    );
    Ok(wrote(answer, asked, target, &object, before, &write))
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
    let (deletion, dry_run) = deletion(asked)?;
    remove(asked, target, form, &deletion, dry_run)
}

/// Deletes the object that is named.
pub(super) fn remove(
    asked: &Asked<'_>,
    target: &Target,
    form: &Form,
    deletion: &Deletion,
    dry_run: bool,
) -> Result<Answer, Failure> {
    let served = &target.served;
    let mut write = write_of(asked, target)?;
    write.dry_run |= dry_run;
    let act =
        |state: &mut State| state.delete(served, &target.namespace, &target.name, deletion, &write);
    let (before, deleted) = carry_out(asked, target, act)?;
    let (answer, object) = match deleted {
        Deleted::Marked(object) => (one(asked, served, &object, 200, form), object),
        Deleted::Gone(object) => {
            let mut details =
                json!({"name": target.name, "kind": served.plural, "uid": object.uid()});
            if !served.group.is_empty() {
                details["group"] = served.group.clone().into();
            }
            let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
            (Answer::formed(200, form, &status), object)
        }
    };
    Ok(wrote(answer, asked, target, &object, before, &write))
}

fn delete_collection(asked: &Asked<'_>, target: &Target) -> Result<Answer, Failure> {
    let served = &target.served;
    let options = list_options(asked, target)?;
    let (mut write, (deletion, dry_run)) = (write_of(asked, target)?, deletion(asked)?);
    write.dry_run |= dry_run;
    let page = asked.inner.with(|state| {
        let page = state.list(served, &target.namespace, &options)?;
        for object in &page.objects {
            let Key { namespace, name } = &object.key;
            match state.delete(served, namespace, name, &deletion, &write) {
                // one may have gone together with another
                Err(failure) if failure.code != 404 => return Err(failure),
                _ => {}
            }
        }
        Ok(page)
    })?;
    let items: Vec<Value> = page
        .objects
        .iter()
        .map(|object| shown(asked.inner, served, object))
        .collect();
    let meta = json!({"resourceVersion": page.version.to_string()});
    let list = json!({"kind": served.list_kind, "apiVersion": served.api_version(), "metadata": meta, "items": items});
    Ok(Answer::value(200, &list))
}
