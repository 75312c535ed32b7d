//! Settings in a file.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use super::{
    ManagerArgs, OptionsError,
    sourced::{lease_name, workers},
};
use crate::names::namespace;

/// Far more than all settings there are. What is longer is something else, or never ends.
const LARGEST: u64 = 1 << 20;

/// The file's settings, and only those.
pub(super) fn read(path: &Path) -> Result<ManagerArgs, OptionsError> {
    let complaint = |cause: String| OptionsError::File {
        path: path.to_owned(),
        cause,
    };
    let bytes = bytes(path).map_err(|source| OptionsError::Read {
        path: path.to_owned(),
        source,
    })?;
    if bytes.len() as u64 > LARGEST {
        return Err(complaint(format!("it is longer than {LARGEST} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        complaint(format!(
            "line {}: it is not UTF-8",
            line(error.as_bytes(), place)
        ))
    })?;
    // editors of some systems begin every file with a mark
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let parsed = match path.extension() {
        Some(extension) if extension == "toml" => of_toml(text),
        _ => of_yaml(text),
    };
    let settings = parsed.map_err(complaint)?;
    let names = settings.namespaces.iter().map(|name| ("namespace", name));
    let lease = settings.lease_namespace.iter();
    for (key, name) in names.chain(lease.map(|name| ("lease-namespace", name))) {
        namespace(name).map_err(|cause| complaint(format!("{key} {name:?}: {cause}")))?;
    }
    if let Some(name) = &settings.lease_name {
        lease_name(name).map_err(|cause| complaint(format!("lease-name {name:?}: {cause}")))?;
    }
    if let Some(number) = settings.workers {
        workers(&number.to_string()).map_err(|cause| complaint(format!("workers: {cause}")))?;
    }
    Ok(settings)
}

/// The beginning of the file, which is all of it if it holds settings.
fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(LARGEST + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn of_toml(text: &str) -> Result<ManagerArgs, String> {
    toml::from_str(text).map_err(|error| match error.span() {
        Some(span) => format!(
            "line {}: {}",
            line(text.as_bytes(), span.start),
            error.message()
        ),
        None => error.message().to_owned(),
    })
}

fn of_yaml(text: &str) -> Result<ManagerArgs, String> {
    // nothing but comments is nothing said
    let says = |line: &str| !line.is_empty() && !line.starts_with('#') && line != "---";
    if !text.lines().map(str::trim).any(says) {
        return Ok(ManagerArgs::default());
    }
    // the first line says what and where; the others draw it
    serde_saphyr::from_str(text).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        first.trim_start_matches("error: ").to_owned()
    })
}

/// The number of the line that a byte is on.
fn line(text: &[u8], place: usize) -> usize {
    let before = text.iter().take(place);
    before.filter(|byte| **byte == b'\n').count() + 1
}
