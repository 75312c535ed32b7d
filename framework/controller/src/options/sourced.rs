//! Parsers of flags, which name the variable where it was the environment that said something wrong.

use std::{ffi::OsStr, str::FromStr};

use clap::{
    Arg, Command, Error,
    builder::{PossibleValue, TypedValueParser},
    error::{ContextKind, ContextValue, ErrorKind},
    parser::ValueSource,
};

use crate::names::is_subdomain;

/// Parses as another parser does. Of what is not understood it tells by whom it was said: clap always names the flag, and who set a variable looks for that in vain.
#[derive(Clone)]
pub(super) struct Sourced<P>(pub(super) P);

impl<P: TypedValueParser> TypedValueParser for Sourced<P> {
    type Value = P::Value;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<P::Value, Error> {
        self.0.parse_ref(command, arg, value)
    }

    fn parse_ref_(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
        source: ValueSource,
    ) -> Result<P::Value, Error> {
        let parsed = self.0.parse_ref_(command, arg, value, source);
        match arg.and_then(Arg::get_env) {
            Some(variable) if source == ValueSource::EnvVariable => {
                parsed.map_err(|error| naming(&variable.to_string_lossy(), error, command))
            }
            _ => parsed,
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}

fn naming(variable: &str, mut error: Error, command: &Command) -> Error {
    // of this clap says nothing but that it is somewhere
    if error.kind() == ErrorKind::InvalidUtf8 {
        let message = format!("the value of {variable} is not UTF-8\n");
        return Error::raw(ErrorKind::InvalidUtf8, message).with_cmd(command);
    }
    let name = ContextValue::String(variable.to_owned());
    error.insert(ContextKind::InvalidArg, name);
    error
}

/// What the type makes of a text.
pub(super) fn parse<T: FromStr>(text: &str) -> Result<T, T::Err> {
    text.parse()
}

pub(super) fn workers(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 1..=1000) => Ok(n),
        _ => Err("expected a number from 1 to 1000".into()),
    }
}

/// A Lease is called by a DNS subdomain (RFC 1123).
pub(super) fn lease_name(text: &str) -> Result<String, String> {
    if is_subdomain(text) {
        Ok(text.to_owned())
    } else {
        Err("expected lower case letters, digits, '-' and '.', at most 253, with a letter or digit at both ends".into())
    }
}
