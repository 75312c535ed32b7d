//! What the server does with a request, apart from how it arrived: synchronous, on one [`State`].

pub(crate) mod body;
pub(crate) mod decode;
pub(crate) mod defaults;
pub(crate) mod delete;
pub(crate) mod install;
pub(crate) mod metadata;
pub(crate) mod patch;
pub(crate) mod read;
pub(crate) mod scale;
pub(crate) mod validate;
pub(crate) mod write;

use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    fields::managers::Author,
    model::{registry::Registry, served::Served},
    store::Store,
};

/// Everything the server knows.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) registry: Registry,
    names: Names,
}

impl State {
    pub(crate) fn new(window: usize, seed: u64) -> Self {
        Self {
            store: Store::new(window),
            registry: Registry::default(),
            names: Names(StdRng::seed_from_u64(seed)),
        }
    }
}

/// Makes uids and generated names, the same ones for the same seed.
#[derive(Clone, Debug)]
struct Names(StdRng);

impl Names {
    fn uid(&mut self) -> String {
        // version 4, variant 1
        let bits = self.0.random::<u128>() & !(0xf000 << 64) & !(0xc000 << 48)
            | (0x4000 << 64)
            | (0x8000 << 48);
        let hex = format!("{bits:032x}");
        format!(
            "{}-{}-{}-{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..]
        )
    }

    fn generate(&mut self, prefix: &str) -> String {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let suffix: String = (0..5)
            .map(|_| char::from(ALPHABET[self.0.random_range(0..ALPHABET.len())]))
            .collect();
        // a name may have 63 characters, and the suffix must fit
        let prefix: String = prefix.chars().take(58).collect();
        format!("{prefix}{suffix}")
    }

    fn port(&mut self) -> u16 {
        self.0.random_range(30_000..32_768)
    }

    fn ip(&mut self) -> String {
        format!(
            "10.96.{}.{}",
            self.0.random_range(0..=255_u8),
            self.0.random_range(1..=254_u8)
        )
    }
}

/// What to do about fields that the schema does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Unknown {
    Ignore,
    #[default]
    Warn,
    Refuse,
}

/// The circumstances of one write.
#[derive(Clone, Debug, Default)]
pub(crate) struct Write {
    /// The time as Kubernetes writes it.
    pub(crate) now: String,
    /// The field manager.
    pub(crate) manager: String,
    pub(crate) dry_run: bool,
    pub(crate) unknown: Unknown,
    pub(crate) subresource: &'static str,
    /// Filled on the way: what the client should be told although the write succeeds.
    pub(crate) warnings: Vec<String>,
}

impl Write {
    fn author<'a>(&'a self, api_version: &'a str, operation: &'static str) -> Author<'a> {
        Author {
            manager: &self.manager,
            operation,
            api_version,
            subresource: self.subresource,
            now: &self.now,
        }
    }
}

/// The name under which a served resource is looked up in the collection.
pub(crate) fn place(served: &Served, namespace: &str, name: &str) -> crate::model::object::Key {
    crate::model::object::Key::new(if served.namespaced { namespace } else { "" }, name)
}
