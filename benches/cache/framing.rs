//! What it costs to cut a list into items, beside copying its bytes and beside what comes after.

use std::hint::black_box;

use boatswain_cache::envelope;
use boatswain_cache::framing::{Item, LineSplitter, ListSplitter, MAX_ITEM};
use k8s_openapi::api::core::v1::Pod;
use rustix::time::{ClockId, clock_gettime};

use crate::pods::Pods;
use crate::report::number;

/// Bytes handed to a splitter at a time: about what a socket gives.
const CHUNK: usize = 64 << 10;

/// A Markdown table; medians of as many passes over a list of `count` pods.
pub(crate) fn table(pods: &Pods, passes: usize) -> String {
    let count = pods.count();
    let (mut list, mut watch) = (
        br#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":["#
            .to_vec(),
        Vec::new(),
    );
    for pod in 0..count {
        if pod > 0 {
            list.push(b',');
        }
        pods.write(pod, 1, true, &mut list);
        watch.extend_from_slice(br#"{"type":"MODIFIED","object":"#);
        pods.write(pod, 1, false, &mut watch);
        watch.extend_from_slice(b"}\n");
    }
    list.extend_from_slice(b"]}");
    let mut items = Vec::new();
    split(&list, &mut |item| items.push(item.to_vec()));

    let time = |work: &mut dyn FnMut()| {
        let mut times: Vec<_> = (0..passes.max(1))
            .map(|_| {
                let begun = spent();
                work();
                spent() - begun
            })
            .collect();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    // touched before, so that no page of it is new
    let mut copy = list.clone();
    let bytes = list.len() as f64;
    let rows = [
        (
            "a bare copy of the bytes",
            bytes,
            time(&mut || {
                for (to, from) in copy.chunks_mut(CHUNK).zip(list.chunks(CHUNK)) {
                    to.copy_from_slice(black_box(from));
                }
                black_box(&copy);
            }),
        ),
        (
            "list cut into items",
            bytes,
            time(&mut || {
                let mut found = 0;
                split(&list, &mut |item| found += usize::from(!item.is_empty()));
                assert_eq!(found as u64, count);
            }),
        ),
        (
            "watch cut into lines",
            watch.len() as f64,
            time(&mut || {
                let (mut found, mut splitter) = (0, LineSplitter::new(MAX_ITEM));
                for chunk in watch.chunks(CHUNK) {
                    splitter.push(chunk, &mut |_| found += 1);
                }
                assert_eq!(found, count);
            }),
        ),
        (
            "identity read and object kept",
            bytes,
            time(&mut || {
                for item in &items {
                    black_box(envelope::open(item)).expect("a pod");
                }
            }),
        ),
        (
            "decoded into a typed pod",
            bytes,
            time(&mut || {
                for item in &items {
                    black_box(serde_json::from_slice::<Pod>(item)).expect("a pod");
                }
            }),
        ),
    ];
    let copying = rows[0].2;
    let mut text = format!(
        "\n## Framing\n\n{count} pods, {} bytes each, on one thread, nothing sent.\n\n| | µs/pod | GB/s | of a bare copy |\n|---|---|---|---|\n",
        number(bytes / count as f64)
    );
    for (name, bytes, seconds) in rows {
        text.push_str(&format!(
            "| {name} | {} | {} | {}× |\n",
            number(seconds * 1e6 / count as f64),
            number(bytes / seconds / 1e9),
            number(seconds / copying)
        ));
    }
    text
}

/// CPU seconds of this thread: what else runs on the machine does not count.
fn spent() -> f64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

fn split(list: &[u8], sink: &mut dyn FnMut(&[u8])) {
    let mut splitter = ListSplitter::new(MAX_ITEM);
    for chunk in list.chunks(CHUNK) {
        let each = &mut |item: Item<'_>| {
            if let Item::Whole(json) = item {
                sink(json);
            }
        };
        splitter.push(chunk, each).expect("a list");
    }
    splitter.finish().expect("a whole list");
}
