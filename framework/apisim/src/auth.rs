//! Who a request comes from and what they may do.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::attributes::{Attributes, Matcher};

/// Who requests without a token come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Anonymous {
    /// An administrator: kubectl sends no token over plain HTTP.
    #[default]
    Admin,
    /// Nobody: they are answered with 401.
    Refused,
}

#[derive(Debug)]
struct Inner {
    tokens: BTreeMap<String, String>,
    admins: Vec<String>,
    granted: Vec<(String, Matcher)>,
    denied: Vec<(String, Matcher)>,
}

/// The users of the server, their bearer tokens and their rights; can be changed while it runs.
///
/// At first there are two tokens: `admintoken` for the user `admin`, who may do everything, and `viewertoken` for the
/// user `viewer`, who may do nothing but discover the API.
#[derive(Debug)]
pub struct Users(Mutex<Inner>);

impl Default for Users {
    fn default() -> Self {
        let tokens = [("admintoken", "admin"), ("viewertoken", "viewer")];
        Self(Mutex::new(Inner {
            tokens: tokens
                .map(|(token, user)| (token.to_owned(), user.to_owned()))
                .into(),
            admins: vec!["admin".into()],
            granted: Vec::new(),
            denied: Vec::new(),
        }))
    }
}

impl Users {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts a bearer token for a user, who has no rights unless granted.
    pub fn add_token(&self, token: impl Into<String>, user: impl Into<String>) {
        self.lock().tokens.insert(token.into(), user.into());
    }

    /// No longer accepts a bearer token: it is answered with 401.
    pub fn revoke_token(&self, token: &str) {
        self.lock().tokens.remove(token);
    }

    /// Allows a user what matches.
    pub fn grant(&self, user: impl Into<String>, what: Matcher) {
        self.lock().granted.push((user.into(), what));
    }

    /// Forbids a user what matches, administrators included; a denial wins over any grant.
    pub fn deny(&self, user: impl Into<String>, what: Matcher) {
        self.lock().denied.push((user.into(), what));
    }

    /// Takes back every grant and denial of a user.
    pub fn reset(&self, user: &str) {
        let mut users = self.lock();
        users.granted.retain(|(of, _)| of != user);
        users.denied.retain(|(of, _)| of != user);
    }

    pub(crate) fn of_token(&self, token: &str) -> Option<String> {
        self.lock().tokens.get(token).cloned()
    }

    /// Whether `user` may act for others (`Impersonate-User`): administrators only.
    pub(crate) fn may_impersonate(&self, user: &str) -> bool {
        self.lock().admins.iter().any(|admin| admin == user)
    }

    /// What is said here of a request; nothing where it is neither granted nor denied.
    pub(crate) fn judge(&self, request: &Attributes) -> Option<bool> {
        let users = self.lock();
        let among = |rules: &[(String, Matcher)]| {
            rules
                .iter()
                .any(|(of, rule)| *of == request.user && rule.matches(request))
        };
        // whoever is known may discover the API and ask about themselves
        let open = request.resource.is_empty() || request.resource.starts_with("selfsubject");
        if among(&users.denied) {
            return Some(false);
        }
        let granted = open || users.admins.contains(&request.user) || among(&users.granted);
        granted.then_some(true)
    }
}

/// Why a request is forbidden, in the words of the real server.
pub(crate) fn refusal(request: &Attributes) -> String {
    let resource = match request.subresource.as_str() {
        "" => request.resource.clone(),
        subresource => format!("{}/{subresource}", request.resource),
    };
    let scope = match request.namespace.as_str() {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace \"{namespace}\""),
    };
    format!(
        "User \"{}\" cannot {} resource \"{resource}\" in API group \"{}\" {scope}",
        request.user, request.verb, request.group
    )
}
