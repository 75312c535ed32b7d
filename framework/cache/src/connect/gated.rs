//! Connections that carry nothing once their gate is closed.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use tower::Service;

/// Says whether anything may be sent; asked on the thread of the connection right before every single write, so it must be quick.
pub type Gate = Arc<dyn Fn() -> bool + Send + Sync>;

/// Makes connections that ask their gate.
#[derive(Clone)]
pub(super) struct Gating<C> {
    inner: C,
    gate: Option<Gate>,
}

impl<C> Gating<C> {
    pub(super) fn new(inner: C, gate: Option<Gate>) -> Self {
        Self { inner, gate }
    }
}

impl<C: Service<Uri>> Service<Uri> for Gating<C>
where
    C::Future: Send + 'static,
{
    type Response = Gated<C::Response>;
    type Error = C::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), C::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (connecting, gate) = (self.inner.call(uri), self.gate.clone());
        Box::pin(async move {
            connecting.await.map(|io| Gated {
                io,
                gate,
                shut: false,
            })
        })
    }
}

/// A connection below TLS: what was buffered above it while the process stood still meets the gate, too.
///
/// A write that finds the gate closed breaks the connection for good: half a request must not be followed by what comes later.
pub(super) struct Gated<T> {
    io: T,
    gate: Option<Gate>,
    shut: bool,
}

impl<T> Gated<T> {
    fn ask(&mut self) -> io::Result<()> {
        self.shut = self.shut || self.gate.as_ref().is_some_and(|gate| !gate());
        if self.shut {
            let why = "not sent: the gate of this connection is closed";
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, why));
        }
        Ok(())
    }
}

impl<T: Connection> Connection for Gated<T> {
    fn connected(&self) -> Connected {
        self.io.connected()
    }
}

impl<T: Read + Unpin> Read for Gated<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl<T: Write + Unpin> Write for Gated<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.ask()?;
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.ask()?;
        Pin::new(&mut self.io).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
