//! Boatswain's cache beside kube-rs' reflector and client-go's informer, on the same bytes from the same server.

#![allow(
    clippy::expect_used,
    reason = "a benchmark that cannot go on has failed"
)]

use k8s_openapi::api::core::v1::Pod;

mod contestant;
mod ours;
mod peer;
mod pods;
mod serve;
mod workloads;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words[0].as_str() {
        "serve" => serve::serve(pods::Pods::new(1, words[1].parse().expect("n"), 300)),
        "ours" => ours::run(&words[1]),
        "kube-rs" => peer::run(&words[1]),
        "show" => {
            let pods = pods::Pods::new(1, words[1].parse().expect("n"), 300);
            let mut total = 0;
            let mut slim = 0;
            for n in 0..pods.count() {
                let mut out = Vec::new();
                pods.write(n, 1_000_000, true, &mut out);
                let value: serde_json::Value = serde_json::from_slice(&out).expect("json");
                let _: Pod = serde_json::from_slice(&out).expect("pod");
                total += out.len();
                slim += out.len() - serde_json::to_string(&value["metadata"]["managedFields"]).expect("x").len() - 17;
                if n == pods.count() / 2 { println!("{}", String::from_utf8_lossy(&out)); }
            }
            println!("{} {}", total as f64 / pods.count() as f64, slim as f64 / pods.count() as f64);
        }
        _ => {}
    }
}

/// Looks at two fields, so that a read is one.
fn looked_at(pod: &Pod) -> bool {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    std::hint::black_box((node, phase)).0.is_some()
}
