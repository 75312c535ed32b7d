//! Label selectors as kubectl spells them.

use std::{collections::BTreeSet, fmt, str::FromStr};

use super::text::as_text;
use boatswain_cache::{Kind, Selection};
use kube::core::{Expression, Selector};

/// A label selector as flags and files spell it: `app=web,tier in (front,back),!canary`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(pub Selector);

impl FromStr for Labels {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let conditions = terms(text).map(condition);
        let conditions: Vec<_> = conditions.collect::<Result<_, _>>()?;
        // whatever kind it is of: what the server would refuse is refused here
        let any = Selection::new(Kind::new("", "v1", "Any", "any"));
        match any.labels(conditions.clone()) {
            Ok(_) => Ok(Self(conditions.into_iter().collect())),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// What stands between commas that are not in parentheses.
fn terms(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let between = move |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth <= 0
    };
    text.split(between).map(str::trim)
}

fn condition(term: &str) -> Result<Expression, String> {
    let set = |of: &str| -> Option<BTreeSet<String>> {
        let values = of.trim().strip_prefix('(')?.strip_suffix(')')?;
        Some(values.split(',').map(|v| v.trim().to_owned()).collect())
    };
    let pair = |key: &str, value: &str| (key.trim().to_owned(), value.trim().to_owned());
    if let Some(key) = term.strip_prefix('!') {
        return Ok(Expression::DoesNotExist(key.trim().to_owned()));
    }
    if let Some((key, value)) = term.split_once("!=") {
        let (key, value) = pair(key, value);
        return Ok(Expression::NotEqual(key, value));
    }
    if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        let (key, value) = pair(key, value);
        return Ok(Expression::Equal(key, value));
    }
    match term.split_once(char::is_whitespace) {
        None if !term.is_empty() => Ok(Expression::Exists(term.to_owned())),
        Some((key, rest)) => {
            let rest = rest.trim_start();
            let found = match (rest.strip_prefix("in"), rest.strip_prefix("notin")) {
                (Some(of), _) => set(of).map(|of| Expression::In(key.to_owned(), of)),
                (_, Some(of)) => set(of).map(|of| Expression::NotIn(key.to_owned(), of)),
                _ => None,
            };
            found.ok_or_else(|| format!("{term:?} is no condition on labels: write one such as app=web, app!=web, app in (web,api), app notin (web), app or !app"))
        }
        None => Err("a condition on labels is missing before or after a comma".to_owned()),
    }
}

impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

as_text!(Labels);
