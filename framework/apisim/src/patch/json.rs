//! JSON patch (RFC 6902).

use serde_json::Value;

use super::PatchError;

/// Applies the operations in order; a failed one leaves `target` half changed, so pass a copy.
///
/// # Errors
/// [`PatchError::Malformed`] for what is no patch, [`PatchError::Unfit`] for a failed `test` or an absent path.
pub(crate) fn json_patch(target: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let malformed = |why: &str| PatchError::Malformed(format!("json patch: {why}"));
    for operation in patch
        .as_array()
        .ok_or_else(|| malformed("not an array of operations"))?
    {
        let part = |name: &str| operation.get(name).and_then(Value::as_str);
        let op = part("op").ok_or_else(|| malformed("an operation has no \"op\""))?;
        let path = part("path").ok_or_else(|| malformed("an operation has no \"path\""))?;
        let value = || {
            operation
                .get("value")
                .cloned()
                .ok_or_else(|| malformed("an operation has no \"value\""))
        };
        let from = || part("from").ok_or_else(|| malformed("an operation has no \"from\""));
        match op {
            "add" => add(target, path, value()?)?,
            "remove" => drop(remove(target, path)?),
            "replace" => *found(target, path, "replace")? = value()?,
            "move" => {
                let moved = remove(target, from()?)?;
                add(target, path, moved)?;
            }
            "copy" => {
                let copied = found(target, from()?, "copy")?.clone();
                add(target, path, copied)?;
            }
            "test" => {
                let expected = operation.get("value").unwrap_or(&Value::Null);
                if target.pointer(path).unwrap_or(&Value::Null) != expected {
                    return Err(PatchError::Unfit(format!("testing value {path} failed")));
                }
            }
            other => return Err(PatchError::Unfit(format!("unexpected kind: {other}"))),
        }
    }
    Ok(())
}

fn absent(op: &str, path: &str) -> PatchError {
    PatchError::Unfit(format!(
        "{op} operation does not apply: doc is missing path: {path}"
    ))
}

fn found<'a>(target: &'a mut Value, path: &str, op: &str) -> Result<&'a mut Value, PatchError> {
    target.pointer_mut(path).ok_or_else(|| absent(op, path))
}

fn split(path: &str) -> Option<(&str, String)> {
    let (parent, last) = path.rsplit_once('/')?;
    Some((parent, last.replace("~1", "/").replace("~0", "~")))
}

fn add(target: &mut Value, path: &str, value: Value) -> Result<(), PatchError> {
    let Some((parent, last)) = split(path) else {
        *target = value;
        return Ok(());
    };
    match target.pointer_mut(parent) {
        Some(Value::Object(map)) => {
            map.insert(last, value);
        }
        Some(Value::Array(list)) if last == "-" => list.push(value),
        Some(Value::Array(list)) => {
            let index = last
                .parse()
                .ok()
                .filter(|index| *index <= list.len())
                .ok_or_else(|| absent("add", path))?;
            list.insert(index, value);
        }
        _ => return Err(absent("add", path)),
    }
    Ok(())
}

fn remove(target: &mut Value, path: &str) -> Result<Value, PatchError> {
    let (parent, last) = split(path).ok_or_else(|| absent("remove", path))?;
    match target.pointer_mut(parent) {
        Some(Value::Object(map)) => map.remove(&last).ok_or_else(|| absent("remove", path)),
        Some(Value::Array(list)) => {
            let index: Option<usize> = last.parse().ok().filter(|index| *index < list.len());
            index
                .map(|index| list.remove(index))
                .ok_or_else(|| absent("remove", path))
        }
        _ => Err(absent("remove", path)),
    }
}
