//! Random documents, and documents with something wrong.

/// A small generator of numbers: the same seed gives the same documents on every machine.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    pub(super) fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

const NAMES: &[&str] = &[
    "metadata",
    "\\u006detadata",
    "items",
    "it\\u0065ms",
    "name",
    "n\\u0061me",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "deletionTimestamp",
    "managedFields",
    "managed\\u0046ields",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "spec",
    "status",
    "a",
    "b",
    "containers",
    "replicas",
    "continue",
    "apiVersion",
    "kind",
    "controller",
    "type",
    "object",
    "",
    "\\\"",
    "é",
];

const TEXTS: &[&str] = &[
    "web",
    "default",
    "u-1",
    "",
    "7",
    "9223372036854775808",
    "2024-05-01T10:00:00Z",
    "ADDED",
    "BOOKMARK",
    "]}",
    "{\\\"a\\\":[",
    "\\\\",
    "\\\\\\\"",
    "\\n\\t",
    "\\u00e9",
    "\\ud83d\\udea2",
    "\\ud800",
    "é🚢",
    "a/b",
    "true",
    "null",
];

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "3",
    "42",
    "-0",
    "0.5",
    "1e3",
    "1E-7",
    "1e400",
    "-1e400",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775808",
    "123456789012345678901234567890",
    "01",
    "1.",
    "-",
    "0.1e+5",
];

const ODD: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    ",",
    ":",
    "null",
    "\\u0000",
    "\u{0}",
    "\n",
    "\r\n",
    " ",
    "\u{feff}",
    "\"metadata\":",
    "\"items\":[",
    "\"managedFields\":[{}],",
    "1e400",
    "\\ud800",
    "\"name\":\"x\",",
    "}}}}",
    "]]]]",
    "[[[[[[[[",
    "{\"a\":{\"a\":{\"a\":",
];

fn space(random: &mut Random, out: &mut String) {
    if random.one_in(12) {
        out.push_str(random.pick(&[" ", "\n", "\t ", "\r\n"]));
    }
}

fn text(random: &mut Random, out: &mut String) {
    out.push('"');
    out.push_str(random.pick(TEXTS));
    out.push('"');
}

fn value(random: &mut Random, depth: usize, out: &mut String) {
    space(random, out);
    match random.below(if depth == 0 { 6 } else { 10 }) {
        0 => out.push_str(random.pick(&["null", "true", "false"])),
        1 | 2 => out.push_str(random.pick(NUMBERS)),
        3..=5 => text(random, out),
        6 | 7 => {
            out.push('[');
            for number in 0..random.below(4) {
                if number > 0 {
                    out.push(',');
                }
                value(random, depth - 1, out);
            }
            out.push(']');
        }
        _ => {
            out.push('{');
            for number in 0..random.below(5) {
                if number > 0 {
                    out.push(',');
                }
                out.push('"');
                out.push_str(random.pick(NAMES));
                out.push_str("\":");
                value(random, depth - 1, out);
            }
            out.push('}');
        }
    }
    space(random, out);
}

fn member(random: &mut Random, members: &mut Vec<String>, name: &str, json: &str) {
    if random.one_in(10) {
        return;
    }
    let colon = random.pick(&[":", ":", ":", " : "]);
    members.push(format!("\"{name}\"{colon}{json}"));
    if random.one_in(60) {
        members.push(format!("\"{name}\"{colon}{json}"));
    }
}

fn joined(random: &mut Random, mut members: Vec<String>) -> String {
    for place in (1..members.len()).rev() {
        let other = random.below(place + 1);
        members.swap(place, other);
    }
    let comma = random.pick(&[",", ",", ", ", " ,\n"]);
    format!("{{{}}}", members.join(comma))
}

fn any(random: &mut Random, depth: usize) -> String {
    let mut out = String::new();
    value(random, depth, &mut out);
    out
}

/// An object as servers send it, or nearly so.
pub(crate) fn object(random: &mut Random) -> String {
    let mut meta = Vec::new();
    let plain = |random: &mut Random, of: &[&str]| {
        if random.one_in(12) {
            any(random, 1)
        } else {
            format!("\"{}\"", random.pick(of))
        }
    };
    for (name, of) in [
        ("name", &["web", "db", "n\\u0061me"][..]),
        ("namespace", &["default", "kube-system"]),
        ("uid", &["u-1", "u-2"]),
        ("resourceVersion", &["1", "42", "opaque"]),
    ] {
        let json = plain(random, of);
        member(random, &mut meta, name, &json);
    }
    for name in [
        "managedFields",
        "labels",
        "annotations",
        "finalizers",
        "generation",
        "deletionTimestamp",
    ] {
        if random.one_in(2) {
            let json = match (random.below(4), name) {
                (0, _) => any(random, 3),
                (_, "managedFields") => format!("[{}]", any(random, 3)),
                (_, "finalizers") => "[\"a/b\",\"c\"]".to_owned(),
                (_, "generation") => random.pick(&["1", "2", "-7", "1.5"]).to_owned(),
                (_, "deletionTimestamp") => "\"2024-05-01T10:00:00Z\"".to_owned(),
                _ => "{\"a\":\"b\",\"app.io/x\":\"\"}".to_owned(),
            };
            let name = match random.below(20) {
                0 => name.replacen('a', "\\u0061", 1),
                _ => name.to_owned(),
            };
            member(random, &mut meta, &name, &json);
        }
    }
    if random.one_in(3) {
        let owner = r#"{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-1","uid":"u0","controller":true}"#;
        let owners = format!("[{owner},{}]", any(random, 1));
        let owners = if random.one_in(2) {
            owners
        } else {
            format!("[{owner}]")
        };
        member(random, &mut meta, "ownerReferences", &owners);
    }
    let mut members = Vec::new();
    let meta = joined(random, meta);
    member(random, &mut members, "metadata", &meta);
    for name in ["spec", "status", "kind"] {
        if random.one_in(2) {
            let json = any(random, 4);
            member(random, &mut members, name, &json);
        }
    }
    if random.one_in(300) {
        let depth = 100 + random.below(200);
        let (open, close) = [("[", "]"), ("{\"a\":", "}")][random.below(2)];
        let deep = format!("{}1{}", open.repeat(depth), close.repeat(depth));
        member(random, &mut members, "deep", &deep);
    }
    joined(random, members)
}

pub(super) fn list(random: &mut Random) -> String {
    let items: Vec<_> = (0..random.below(4))
        .map(|_| match random.below(12) {
            0 => any(random, 2),
            _ => object(random),
        })
        .collect();
    let items = match random.below(15) {
        0 => any(random, 2),
        1 => "null".to_owned(),
        _ => format!("[{}]", items.join(",")),
    };
    let mut members = Vec::new();
    member(random, &mut members, "items", &items);
    let meta = match random.below(12) {
        0 => any(random, 2),
        _ => r#"{"resourceVersion":"77","continue":"t"}"#.to_owned(),
    };
    member(random, &mut members, "metadata", &meta);
    let other = any(random, 2);
    member(random, &mut members, "kind", &other);
    joined(random, members)
}

pub(super) fn line(random: &mut Random) -> String {
    let mut members = Vec::new();
    let kind = random.pick(&[
        "\"ADDED\"",
        "\"MODIFIED\"",
        "\"DELETED\"",
        "\"BOOKMARK\"",
        "\"ERROR\"",
        "7",
    ]);
    member(random, &mut members, "type", kind);
    let object = object(random);
    member(random, &mut members, "object", &object);
    if random.one_in(10) {
        let other = any(random, 2);
        member(random, &mut members, "x", &other);
    }
    if random.one_in(2) {
        format!("{{{}}}", members.join(","))
    } else {
        joined(random, members)
    }
}

/// Sometimes breaks something.
/// A document that is like another one, in all but some bytes.
pub(crate) fn alike(random: &mut Random, document: &str) -> Vec<u8> {
    let mut bytes = document.as_bytes().to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len() + 1);
        // most changes keep texts texts and numbers numbers
        match bytes.get_mut(at) {
            Some(digit @ b'0'..=b'9') => *digit = b'1' + random.below(9) as u8,
            Some(letter @ b'a'..=b'z') if random.one_in(2) => *letter = b'x',
            _ if random.one_in(4) => {
                let to = (at + random.below(3)).min(bytes.len());
                bytes.splice(at..to, random.pick(CHANGES).bytes());
            }
            _ => {}
        }
    }
    bytes
}

/// What differs between documents that are alike, and what must not.
const CHANGES: &[&str] = &[
    "0", "1", "7", "42", "x", "web", "", "-", ".5", "e1", "\\n", "\\\"", "\\\\", "\\u0041", "\\",
    "\"", "é", "\u{1}", "true", "null", ",", "}",
];

pub(super) fn mutate(random: &mut Random, document: String) -> Vec<u8> {
    let mut bytes = document.into_bytes();
    if random.one_in(2) {
        return bytes;
    }
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len() + 1);
        match random.below(6) {
            0 => bytes.truncate(at),
            1 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = random.next() as u8;
                }
            }
            2 => drop(bytes.splice(at..at, random.pick(ODD).bytes())),
            3 => {
                let to = (at + random.below(12)).min(bytes.len());
                bytes.drain(at..to);
            }
            4 => {
                let to = (at + random.below(40)).min(bytes.len());
                let copy = bytes[at..to].to_vec();
                let place = random.below(bytes.len() + 1);
                bytes.splice(place..place, copy);
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
        }
    }
    bytes
}

/// Bytes from which choices are made.
pub(super) fn choices(random: &mut Random) -> Vec<u8> {
    random.next().to_le_bytes().to_vec()
}
