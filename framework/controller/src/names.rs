//! Names as the API wants them.

/// The longest last part of a qualified name.
const PART_LIMIT: usize = 63;
const SUBDOMAIN_LIMIT: usize = 253;

/// Whether it can name an object of most kinds: lower-case letters, digits, `-` and `.`, 253 bytes at most (RFC 1123).
pub(crate) fn is_subdomain(name: &str) -> bool {
    name.len() <= SUBDOMAIN_LIMIT && name.split('.').all(is_part)
}

fn is_part(part: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !part.is_empty() && part.chars().all(inner) && !part.starts_with('-') && !part.ends_with('-')
}

/// The namespace called `text`, which is a DNS label (RFC 1123): a parser of flags.
///
/// # Errors
///
/// What is expected, when it is none.
pub fn namespace(text: &str) -> Result<String, String> {
    if text.len() <= PART_LIMIT && is_part(text) {
        Ok(text.to_owned())
    } else {
        Err("expected lower case letters, digits and '-', at most 63, with a letter or digit at both ends".into())
    }
}

/// `name` as a qualified name, such as `example.com/scaler` or `scaler`: as it is if it is one, else what is left when all that is not allowed is replaced.
pub(crate) fn qualified(name: &str) -> String {
    match name.split_once('/') {
        Some((domain, part)) if is_subdomain(domain) => format!("{domain}/{}", part_of(part)),
        _ => part_of(name),
    }
}

/// The last part of a qualified name: letters, digits, `-`, `_` and `.` between letters or digits, 63 bytes at most.
fn part_of(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let replaced = |c: char| if allowed(c) { c } else { '-' };
    let outer = |c: char| !c.is_ascii_alphanumeric();
    let name: String = name.chars().map(replaced).collect();
    let name = name.trim_start_matches(outer);
    match name[..name.floor_char_boundary(PART_LIMIT)].trim_end_matches(outer) {
        "" => "unnamed".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qualified_names_stay_and_others_become_some() {
        for name in ["podautoscaler", "example.com/scaler", "a_b.C-d"] {
            assert_eq!(qualified(name), name);
        }
        for (name, becomes) in [
            ("my controller", "my-controller"),
            ("-x-", "x"),
            ("Bad Domain/x", "Bad-Domain-x"),
            ("über", "ber"),
            ("", "unnamed"),
            ("example.com/", "example.com/unnamed"),
        ] {
            assert_eq!(qualified(name), becomes, "{name}");
        }
        assert_eq!(qualified(&"x".repeat(100)).len(), 63);
    }

    #[test]
    fn a_subdomain_is_lower_case_and_no_part_of_it_is_empty() {
        for name in ["a", "a-1.b2", &"x".repeat(253)] {
            assert!(is_subdomain(name), "{name}");
        }
        for name in [
            "",
            ".",
            "a..b",
            "-a",
            "a-",
            "A",
            "a_b",
            "system:node",
            "ü",
            &"x".repeat(254),
        ] {
            assert!(!is_subdomain(name), "{name}");
        }
    }
}
