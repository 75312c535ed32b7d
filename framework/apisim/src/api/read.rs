//! Lists: of the current state, or of an earlier one page by page.

use std::sync::Arc;

use super::State;
use crate::{
    failure::{Cause, Failure},
    model::{
        object::{Key, Object},
        served::Served,
    },
    selector::{Fields, Labels},
};

/// Which objects are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    pub(crate) labels: Labels,
    pub(crate) fields: Fields,
}

impl Selection {
    pub(crate) fn is_all(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, object: &Object) -> bool {
        self.labels.matches(object) && self.fields.matches(object)
    }
}

/// How the version of a list is to be understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Match {
    #[default]
    Unset,
    NotOlderThan,
    Exact,
}

/// A list as asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListOptions {
    pub(crate) selection: Selection,
    pub(crate) limit: usize,
    pub(crate) token: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) how: Match,
}

/// One page.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) version: u64,
    pub(crate) objects: Vec<Arc<Object>>,
    pub(crate) next: Option<String>,
    pub(crate) remaining: Option<usize>,
}

const EXPIRED_TOKEN: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// Where a list goes on: at a version (0: the current one), after a key.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    version: u64,
    after: Key,
}

impl Token {
    fn render(&self) -> String {
        let plain = format!(
            "{} {} {}",
            self.version, self.after.namespace, self.after.name
        );
        plain.bytes().map(|byte| format!("{byte:02x}")).collect()
    }

    fn parse(text: &str) -> Result<Self, Failure> {
        let bytes = text
            .as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
        let plain = bytes
            .collect::<Option<Vec<u8>>>()
            .and_then(|bytes| String::from_utf8(bytes).ok());
        let parts: Option<Self> = plain.as_deref().and_then(|plain| {
            let mut parts = plain.splitn(3, ' ');
            let version = parts.next()?.parse().ok()?;
            Some(Self {
                version,
                after: Key::new(parts.next()?, parts.next()?),
            })
        });
        parts.ok_or_else(|| {
            Failure::bad_request(
                "invalid continue token: continue key is not valid: it was not made by this server",
            )
        })
    }
}

impl State {
    /// Lists objects of one namespace, or of all when it is empty.
    ///
    /// # Errors
    /// A version in the future or too old, an expired or malformed token.
    pub(crate) fn list(
        &self,
        served: &Served,
        namespace: &str,
        options: &ListOptions,
    ) -> Result<Page, Failure> {
        let current = self.store.version();
        let asked = match options.version.as_deref() {
            None | Some("") => None,
            Some(text) => Some(text.parse::<u64>().map_err(|_| invalid_version(text))?),
        };
        if options.how != Match::Unset && asked.is_none() {
            return Err(forbidden_match(
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        if options.how == Match::Exact && asked == Some(0) {
            return Err(forbidden_match(
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            ));
        }
        let token = options
            .token
            .as_deref()
            .filter(|token| !token.is_empty())
            .map(Token::parse)
            .transpose()?;
        let (version, after) = match token {
            Some(_) if asked.is_some_and(|version| version != 0) => {
                return Err(Failure::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            Some(token) if token.version == 0 => (current, Some(token.after)),
            Some(token) => (token.version, Some(token.after)),
            None => match asked {
                Some(asked) if asked > current => {
                    return Err(Failure::version_too_large(asked, current));
                }
                // a limit without a match means exactly this version, as it did before there was a match
                Some(asked)
                    if options.how == Match::Exact
                        || options.how == Match::Unset && options.limit > 0 && asked > 0 =>
                {
                    (asked, None)
                }
                _ => (current, None),
            },
        };
        let found = self
            .store
            .at(&served.collection, namespace, version, after.as_ref())
            .map_err(|_| match after {
                None => Failure::expired("The resourceVersion for the provided list is too old."),
                Some(after) => {
                    let mut failure = Failure::expired(EXPIRED_TOKEN);
                    failure.continue_token = Some(Token { version: 0, after }.render());
                    failure
                }
            })?;
        let whole = options.selection.is_all();
        let total = found.len();
        let mut wanted = found
            .into_iter()
            .enumerate()
            .filter(|(_, object)| options.selection.matches(object));
        // what may be served from a cache is served whole
        let limit = if options.limit == 0 || asked == Some(0) {
            usize::MAX
        } else {
            options.limit
        };
        let mut objects = Vec::new();
        let mut seen = 0;
        for (index, object) in wanted.by_ref().take(limit) {
            seen = index + 1;
            objects.push(object);
        }
        let more = wanted.next().is_some();
        let next = match objects.last() {
            Some(last) if more => Some(
                Token {
                    version,
                    after: last.key.clone(),
                }
                .render(),
            ),
            _ => None,
        };
        let remaining = (more && whole).then(|| total - seen);
        Ok(Page {
            version,
            objects,
            next,
            remaining,
        })
    }
}

/// A `resourceVersionMatch` that does not go with the other parameters.
pub(crate) fn forbidden_match(why: &str) -> Failure {
    Failure::invalid_options("ListOptions", Cause::forbidden("resourceVersionMatch", why))
}

/// A version that is not a number.
pub(crate) fn invalid_version(text: &str) -> Failure {
    Failure::bad_request(format!(
        "invalid resource version: resourceVersion: Invalid value: \"{text}\": strconv.ParseUint: parsing \"{text}\": invalid syntax"
    ))
}
