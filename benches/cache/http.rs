//! As much HTTP/1.1 as the measurement needs.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use serde::Deserialize;

/// Bytes written at a time.
const WRITE: usize = 256 << 10;

/// A body of unknown length.
pub(crate) struct Chunked<'a> {
    stream: &'a mut TcpStream,
    pub(crate) buffer: Vec<u8>,
    sent: u64,
}

impl<'a> Chunked<'a> {
    pub(crate) fn begin(stream: &'a mut TcpStream) -> std::io::Result<Self> {
        stream.write_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        )?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(WRITE + (32 << 10)),
            sent: 0,
        })
    }

    pub(crate) fn flush(&mut self) -> std::io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.sent += self.buffer.len() as u64;
        self.stream
            .write_all(format!("{:x}\r\n", self.buffer.len()).as_bytes())?;
        self.buffer.extend_from_slice(b"\r\n");
        self.stream.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    pub(crate) fn flush_if_large(&mut self) -> std::io::Result<()> {
        if self.buffer.len() >= WRITE {
            self.flush()?;
        }
        Ok(())
    }

    pub(crate) fn end(mut self) -> std::io::Result<u64> {
        self.flush()?;
        self.stream.write_all(b"0\r\n\r\n")?;
        Ok(self.sent)
    }
}

/// Sends a whole answer.
pub(crate) fn whole(stream: &mut TcpStream, status: &str, body: &str) -> std::io::Result<()> {
    let length = body.len();
    stream.write_all(
        format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}").as_bytes(),
    )
}

/// Asks the server at `address` for a JSON answer.
pub(crate) fn ask<T: for<'de> Deserialize<'de>>(address: &str, target: &str) -> T {
    let host = address.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).expect("the server is there");
    stream
        .write_all(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())
        .expect("asked");
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("an answer");
        if let Some(value) = line.strip_prefix("Content-Length: ") {
            length = value.trim().parse().expect("a length");
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    serde_json::from_slice(&body).expect("what was asked for")
}

/// The first line of the next request; `None` at the end of the connection.
pub(crate) fn request(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    let mut next = || {
        line.clear();
        let read = reader.read_line(&mut line).unwrap_or(0);
        (read > 0).then(|| line.trim().to_owned())
    };
    let first = next()?;
    // all requests are GETs without a body
    while !next()?.is_empty() {}
    Some(first)
}
