//! What readers of the dashboard cost whoever works: the time from a change to its run, with and without them, in turns.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use crate::contestant::Found;
use crate::options::{Options, Who};
use crate::report::{CHANGED, middle, number, run};

/// Readers of the stream.
const READERS: usize = 50;
/// Those of them that never read.
const MUTE: usize = 10;

/// Whether there is a dashboard, and whether it is read.
#[derive(Clone, Copy)]
enum Looks {
    Off,
    Nobody,
    Fifty,
}

/// Opens all streams of the dashboard at `address`; those that are read end with the dashboard, the others when they are dropped.
fn open(address: SocketAddr) -> Vec<TcpStream> {
    let streams = (0..READERS).map(|_| {
        let mut stream = TcpStream::connect(address).expect("the dashboard is served");
        write!(
            stream,
            "GET /api/v1/stream HTTP/1.1\r\nHost: {address}\r\n\r\n"
        )
        .expect("asked");
        stream
    });
    let mut mute: Vec<_> = streams.collect();
    for mut stream in mute.split_off(MUTE) {
        std::thread::spawn(move || {
            // readers are elsewhere, and what they cost themselves is not the question
            rustix::process::setpriority_process(None, 19).expect("less is always allowed");
            let mut taken = vec![0; 1 << 16];
            while stream.read(&mut taken).is_ok_and(|n| n > 0) {}
        });
    }
    mute
}

fn measured(options: &Options, looks: Looks, changes: u32) -> Found {
    let mut task = vec![format!("--keys={CHANGED}"), format!("--changes={changes}")];
    if !matches!(looks, Looks::Off) {
        task.push("--dashboard".into());
    }
    let mut mute = Vec::new();
    run(options, Who::Boatswain, &task, |address| {
        if matches!(looks, Looks::Fifty) {
            mute = open(address);
        }
    })
}

/// Time from a change to its run without a dashboard, with one that nobody reads, and with fifty readers.
pub(crate) fn latencies(options: &Options) -> String {
    let mut table = String::from(
        "| p50 and p99 from a change to its run, µs | no dashboard | nobody reads | 50 readers | 50 to nobody |\n|---|---|---|---|---|\n",
    );
    for changes in &options.changes {
        let mut found: [Vec<Found>; 3] = Default::default();
        for _ in 0..options.runs {
            for (looks, all) in [Looks::Off, Looks::Nobody, Looks::Fifty]
                .into_iter()
                .zip(&mut found)
            {
                all.push(measured(options, looks, *changes));
            }
        }
        for (which, name) in ["p50", "p99"].into_iter().enumerate() {
            let of = |all: &Vec<Found>| middle(all, |found| found.latency[which]);
            let [off, nobody, fifty] = found.each_ref().map(of);
            let _ = writeln!(
                table,
                "| {changes} changes a second, {name} | {} | {} | {} | {:+.1} % |",
                number(off),
                number(nobody),
                number(fifty),
                (fifty / nobody - 1.0) * 100.0
            );
        }
    }
    table
}
