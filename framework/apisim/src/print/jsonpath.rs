//! The part of JSONPath that printer columns use: fields, quoted fields, indices, `[*]` and equality filters.

use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    All,
    /// `[?(@.a.b=="text")]`
    Where(Vec<Step>, Value, bool),
}

/// All values at a path; none when the path is not understood.
pub(crate) fn find<'a>(path: &str, root: &'a Value) -> Vec<&'a Value> {
    parse(path).map_or_else(Vec::new, |steps| walk(&steps, root))
}

fn walk<'a>(steps: &[Step], root: &'a Value) -> Vec<&'a Value> {
    steps.iter().fold(vec![root], |values, step| {
        values
            .into_iter()
            .flat_map(|value| take(step, value))
            .collect()
    })
}

fn take<'a>(step: &Step, value: &'a Value) -> Vec<&'a Value> {
    match (step, value) {
        (Step::Field(name), value) => value.get(name).into_iter().collect(),
        (Step::Index(index), Value::Array(list)) => {
            let length = i64::try_from(list.len()).unwrap_or(i64::MAX);
            let index = if *index < 0 { length + index } else { *index };
            usize::try_from(index)
                .ok()
                .and_then(|index| list.get(index))
                .into_iter()
                .collect()
        }
        (Step::All, Value::Array(list)) => list.iter().collect(),
        (Step::All, Value::Object(map)) => map.values().collect(),
        (Step::Where(path, wanted, equal), Value::Array(list)) => list
            .iter()
            .filter(|item| {
                walk(path, item)
                    .iter()
                    .any(|found| (*found == wanted) == *equal)
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn parse(path: &str) -> Option<Vec<Step>> {
    let path = path.trim();
    let path = path
        .strip_prefix('{')
        .and_then(|p| p.strip_suffix('}'))
        .unwrap_or(path);
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let end = closing(inner)?;
            steps.push(bracket(&inner[..end])?);
            rest = &inner[end + 1..];
            continue;
        }
        rest = rest.strip_prefix('.').unwrap_or(rest);
        let (mut name, mut end, mut escaped) = (String::new(), rest.len(), false);
        for (at, c) in rest.char_indices() {
            match c {
                '\\' if !escaped => escaped = true,
                '.' | '[' if !escaped => {
                    end = at;
                    break;
                }
                c => {
                    name.push(c);
                    escaped = false;
                }
            }
        }
        rest = &rest[end..];
        match name.as_str() {
            "" => {}
            "*" => steps.push(Step::All),
            _ => steps.push(Step::Field(name)),
        }
    }
    Some(steps)
}

/// Where the bracket closes that is open at the start, quotes and inner brackets aside.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

fn quoted(text: &str) -> Option<&str> {
    ['\'', '"']
        .into_iter()
        .find_map(|q| text.strip_prefix(q)?.strip_suffix(q))
}

fn bracket(inner: &str) -> Option<Step> {
    let inner = inner.trim();
    if let Some(filter) = inner.strip_prefix("?(").and_then(|f| f.strip_suffix(')')) {
        let (left, right, equal) = filter
            .split_once("==")
            .map(|(l, r)| (l, r, true))
            .or_else(|| filter.split_once("!=").map(|(l, r)| (l, r, false)))?;
        let right = right.trim();
        let wanted = match quoted(right) {
            Some(text) => Value::from(text),
            None => serde_json::from_str(right).ok()?,
        };
        return Some(Step::Where(
            parse(left.trim().strip_prefix('@')?)?,
            wanted,
            equal,
        ));
    }
    if let Some(name) = quoted(inner) {
        return Some(Step::Field(name.to_owned()));
    }
    if inner == "*" {
        Some(Step::All)
    } else {
        inner.parse().ok().map(Step::Index)
    }
}
