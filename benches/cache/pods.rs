//! Pods as a cluster has them: many workloads, each with pods that differ in names, ids, addresses and times.
//!
//! Every pod is a function of the seed, its number and its version, so that a million of them need no memory: a workload is a text with holes, and
//! what fills a hole is drawn from a generator that begins with the pod.

use crate::workloads;

/// Characters of generated names: Kubernetes leaves out what could spell words or be misread.
const SAFE: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIXES: u64 = (SAFE.len() as u64).pow(5);
const HEX: &[u8] = b"0123456789abcdef";

/// A number from `state`, which moves on (splitmix64).
pub(crate) fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// What a pod has of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hole {
    /// The end of its name.
    Suffix,
    Uid,
    Version,
    /// A date and the time down to the minute; `created` of the same pod is always the same.
    Minute,
    /// Seconds after the minute of its creation.
    Second(u8),
    /// Seconds that differ with every version.
    Changed,
    Restarts,
    PodIp,
    HostIp,
    Node,
    /// 256 bits in hexadecimal digits, such as the id of a container.
    Digest,
    Mac,
}

/// One text with holes.
pub(crate) struct Template(Vec<(Vec<u8>, Option<Hole>)>);

/// Stands for a hole in a text; control characters occur in no pod.
pub(crate) fn mark(hole: Hole) -> String {
    let (code, argument) = match hole {
        Hole::Suffix => (b'a', 0),
        Hole::Uid => (b'b', 0),
        Hole::Version => (b'c', 0),
        Hole::Minute => (b'd', 0),
        Hole::Second(after) => (b'e', after),
        Hole::Changed => (b'f', 0),
        Hole::Restarts => (b'g', 0),
        Hole::PodIp => (b'h', 0),
        Hole::HostIp => (b'i', 0),
        Hole::Node => (b'j', 0),
        Hole::Digest => (b'k', 0),
        Hole::Mac => (b'l', 0),
    };
    format!("\u{1}{}{}", code as char, (b'0' + argument) as char)
}

impl Template {
    pub(crate) fn new(text: &str) -> Self {
        let mut pieces = text.split('\u{1}');
        let mut parts = Vec::new();
        let mut literal = pieces.next().unwrap_or_default();
        for piece in pieces {
            let bytes = piece.as_bytes();
            let hole = match bytes[0] {
                b'a' => Hole::Suffix,
                b'b' => Hole::Uid,
                b'c' => Hole::Version,
                b'd' => Hole::Minute,
                b'e' => Hole::Second(bytes[1] - b'0'),
                b'f' => Hole::Changed,
                b'g' => Hole::Restarts,
                b'h' => Hole::PodIp,
                b'i' => Hole::HostIp,
                b'j' => Hole::Node,
                b'k' => Hole::Digest,
                _ => Hole::Mac,
            };
            parts.push((literal.as_bytes().to_vec(), Some(hole)));
            literal = &piece[2..];
        }
        parts.push((literal.as_bytes().to_vec(), None));
        Self(parts)
    }
}

struct Workload {
    namespace: String,
    /// Name of its pods up to the suffix.
    prefix: String,
    template: Template,
    /// Number of its first pod.
    first: u64,
}

/// All pods of a cluster.
pub(crate) struct Pods {
    seed: u64,
    count: u64,
    workloads: Vec<Workload>,
}

impl Pods {
    /// `count` pods of `workloads` workloads; those of a workload are neighbours, as in the order of etcd, and some workloads are much larger than others.
    pub(crate) fn new(seed: u64, count: u64, workloads: u64) -> Self {
        let mut made: Vec<_> = (0..workloads)
            .map(|number| workloads::make(seed, number))
            .collect();
        made.sort_by(|one, other| {
            (&one.namespace, &one.prefix).cmp(&(&other.namespace, &other.prefix))
        });
        let mut state = seed;
        let weights: Vec<_> = made
            .iter()
            .map(|_| 1.0 / (1.0 + (draw(&mut state) % workloads.max(1)) as f64).powf(0.7))
            .collect();
        let total: f64 = weights.iter().sum();
        let mut before = 0.0;
        let placed = made.into_iter().zip(weights).map(|(plan, weight)| {
            let first = (before / total * count as f64) as u64;
            before += weight;
            Workload {
                template: Template::new(&plan.text),
                namespace: plan.namespace,
                prefix: plan.prefix,
                first,
            }
        });
        Self {
            seed,
            count,
            workloads: placed.collect(),
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    fn workload(&self, number: u64) -> &Workload {
        let after = self
            .workloads
            .partition_point(|workload| workload.first <= number);
        &self.workloads[after.saturating_sub(1)]
    }

    /// Namespace and name of a pod.
    pub(crate) fn key(&self, number: u64) -> (String, String) {
        let workload = self.workload(number);
        let mut name = workload.prefix.clone().into_bytes();
        suffix(number, &mut name);
        (
            workload.namespace.clone(),
            String::from_utf8_lossy(&name).into_owned(),
        )
    }

    /// Appends the pod as JSON; items of lists come without `kind` and `apiVersion`, as servers send them.
    pub(crate) fn write(&self, number: u64, version: u64, in_list: bool, out: &mut Vec<u8>) {
        let workload = self.workload(number);
        let begin = self.seed ^ number.wrapping_mul(0xA24B_AED4_963E_E407);
        let mut state = begin;
        let moment = draw(&mut state);
        out.push(b'{');
        if !in_list {
            out.extend_from_slice(br#""kind":"Pod","apiVersion":"v1","#);
        }
        for (literal, hole) in &workload.template.0 {
            out.extend_from_slice(literal);
            match hole {
                None => {}
                Some(Hole::Suffix) => suffix(number, out),
                Some(Hole::Uid) => {
                    // the same wherever it is asked for
                    let mut own = begin ^ 1;
                    let (high, low) = (draw(&mut own), draw(&mut own));
                    uid(high, low, out);
                }
                Some(Hole::Version) => decimal(version, out),
                Some(Hole::Minute) => minute(moment, out),
                Some(Hole::Second(after)) => {
                    two((moment >> 40) % 40 + u64::from(*after), out);
                }
                Some(Hole::Changed) => two((moment >> 40).wrapping_add(version) % 60, out),
                Some(Hole::Restarts) => decimal(version % 7, out),
                Some(Hole::PodIp) => {
                    let mut own = begin ^ 2;
                    let ip = draw(&mut own);
                    out.extend_from_slice(b"10.");
                    for shift in [0, 8, 16] {
                        decimal(ip >> shift & 0xFF, out);
                        if shift < 16 {
                            out.push(b'.');
                        }
                    }
                }
                Some(Hole::HostIp) => {
                    let node = self.node(begin);
                    out.extend_from_slice(b"192.168.");
                    decimal(node >> 8 & 0xFF, out);
                    out.push(b'.');
                    decimal(node & 0xFF, out);
                }
                Some(Hole::Node) => {
                    out.extend_from_slice(b"pool-");
                    decimal(self.node(begin) % 5, out);
                    out.push(b'-');
                    let mut own = self.node(begin);
                    hex(draw(&mut own), 8, out);
                }
                Some(Hole::Digest) => {
                    for _ in 0..4 {
                        hex(draw(&mut state), 16, out);
                    }
                }
                Some(Hole::Mac) => {
                    let mut own = begin ^ 3;
                    let mac = draw(&mut own);
                    for shift in 0..6 {
                        hex(mac >> (8 * shift), 2, out);
                        if shift < 5 {
                            out.push(b':');
                        }
                    }
                }
            }
        }
        out.push(b'}');
    }

    /// About thirty pods share a node.
    fn node(&self, begin: u64) -> u64 {
        let mut own = begin ^ 4;
        draw(&mut own) % (self.count / 30).max(3)
    }
}

/// Another text for every number below 14 million.
fn suffix(number: u64, out: &mut Vec<u8>) {
    // prime to the number of suffixes, so that no two numbers meet
    let mut rest = number.wrapping_mul(7_368_787) % SUFFIXES;
    for _ in 0..5 {
        out.push(SAFE[(rest % SAFE.len() as u64) as usize]);
        rest /= SAFE.len() as u64;
    }
}

fn hex(number: u64, digits: u32, out: &mut Vec<u8>) {
    for at in 0..digits {
        out.push(HEX[(number >> (4 * at) & 0xF) as usize]);
    }
}

fn uid(high: u64, low: u64, out: &mut Vec<u8>) {
    hex(high, 8, out);
    out.push(b'-');
    hex(high >> 32, 4, out);
    out.extend_from_slice(b"-4");
    hex(high >> 48, 3, out);
    out.push(b'-');
    out.push(HEX[(8 + (low & 3)) as usize]);
    hex(low >> 2, 3, out);
    out.push(b'-');
    hex(low >> 14, 12, out);
}

fn decimal(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(number.to_string().as_bytes());
}

fn two(number: u64, out: &mut Vec<u8>) {
    out.push(b'0' + (number / 10 % 10) as u8);
    out.push(b'0' + (number % 10) as u8);
}

/// `2026-03-04T05:06:`
fn minute(moment: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"2026-");
    two(1 + moment % 9, out);
    out.push(b'-');
    two(1 + (moment >> 8) % 28, out);
    out.push(b'T');
    two((moment >> 16) % 24, out);
    out.push(b':');
    two((moment >> 24) % 60, out);
    out.push(b':');
}
