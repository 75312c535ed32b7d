//! Tells what is wrong with a document without quoting it: values may be secrets, and errors end up in logs.

use serde_json::error::Category;

/// The error with the place it was found at and what the type expected there, but no value of the document.
pub(crate) fn describe(error: &serde_json::Error) -> String {
    let place = format!("line {} column {}", error.line(), error.column());
    match error.classify() {
        Category::Eof => format!("ends too early at {place}"),
        Category::Io => format!("cannot be read at {place}"),
        Category::Syntax if error.to_string().starts_with("recursion limit exceeded") => {
            format!("is nested too deeply at {place}")
        }
        Category::Syntax => format!("is no valid JSON at {place}"),
        Category::Data => format!("{} at {place}", data(&error.to_string())),
    }
}

/// serde's own wordings carry the offending value between fixed parts; any other text may contain anything.
fn data(text: &str) -> String {
    let expected = text
        .rsplit_once(", expected ")
        .map(|(_, tail)| tail.split(" at line ").next().unwrap_or(tail));
    if let Some(found) = text.strip_prefix("invalid type: ") {
        let found: String = found
            .chars()
            .take_while(|c| c.is_ascii_lowercase() || *c == ' ')
            .collect();
        return format!(
            "{} instead of {}",
            found.trim(),
            expected.unwrap_or("what the type asks for")
        );
    }
    let field = |what: &str| {
        text.strip_prefix(what)
            .and_then(|rest| rest.strip_prefix(" `")?.split('`').next())
    };
    if let Some(name) = field("missing field") {
        return format!("missing field `{name}`");
    }
    for (prefix, said) in [
        ("invalid value", "a value out of range"),
        ("invalid length", "a wrong length"),
        ("unknown variant", "an unknown value"),
    ] {
        if text.starts_with(prefix) {
            return format!("{said}, expected {}", expected.unwrap_or("another"));
        }
    }
    if text.starts_with("unknown field") || text.starts_with("duplicate field") {
        return text
            .split_whitespace()
            .take(2)
            .collect::<Vec<_>>()
            .join(" ");
    }
    "a value the type does not accept".to_owned()
}

#[cfg(test)]
mod tests {
    use super::describe;
    use serde::Deserialize;
    use serde::de::{DeserializeOwned, Error};

    fn told<T: DeserializeOwned>(json: &str) -> String {
        serde_json::from_str::<T>(json)
            .map(|_| ())
            .map_err(|error| describe(&error))
            .unwrap_err()
    }

    #[derive(Deserialize, Debug)]
    enum Choice {
        Left,
        Right,
    }

    #[derive(Deserialize, Debug)]
    struct Strict {
        #[serde(rename = "replicas")]
        _replicas: u8,
    }

    #[derive(Debug)]
    struct Custom;
    impl<'de> Deserialize<'de> for Custom {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let text = String::deserialize(deserializer)?;
            Err(D::Error::custom(format!("cannot use {text}")))
        }
    }

    #[test]
    fn errors_never_quote_a_value() {
        let secret = "\"hunter2, expected hunter3\"";
        for text in [
            told::<u8>(secret),
            told::<Strict>(&format!("{{\"replicas\": {secret}}}")),
            told::<Choice>(secret),
            told::<Custom>(secret),
            told::<bool>(secret),
            told::<u8>("\"hunter2"),
            told::<u8>("hunter2"),
            told::<[u8; 2]>(&format!("[{secret}]")),
        ] {
            assert!(!text.contains("hunter"), "{text}");
        }
        let _ = (Choice::Left, Choice::Right);
    }

    #[test]
    fn errors_say_what_was_expected() {
        assert!(told::<Strict>("{}").contains("missing field `replicas`"));
        assert!(told::<Strict>("{\"replicas\": \"many\"}").contains("string instead of u8"));
        assert!(told::<Strict>("{\"replicas\": 300}").contains("expected u8"));
    }
}
