//! The door to the listener: a bounded number of connections, each of which must ask for something, and take it.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use axum::{
    extract::connect_info::Connected,
    serve::{IncomingStream, Listener},
};
use boatswain_supervision::Clock;
use rustix::net::sockopt::set_socket_send_buffer_size;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};

/// How long a reader may leave what it asked for before its connection is cut.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// How long a connection may stand idle before it is cut: nobody can keep the others out by just standing there.
pub const IDLE: Duration = Duration::from_secs(60);
/// Connections at once; more wait to be accepted.
pub const CONNECTIONS: usize = 128;

/// Bytes that the system is asked to keep for a reader; it takes twice as many.
const BUFFER: usize = 64 * 1024;

pub(super) struct Door {
    listener: TcpListener,
    places: Arc<Semaphore>,
    clock: Clock,
}

impl Door {
    pub(super) fn new(listener: TcpListener, clock: Clock) -> Self {
        Self {
            listener,
            places: Arc::new(Semaphore::new(CONNECTIONS)),
            clock,
        }
    }
}

impl Listener for Door {
    type Io = Visit<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            // it is never closed
            let place = self.places.clone().acquire_owned().await.ok();
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    let _ = stream.set_nodelay(true);
                    // else the system may keep minutes of pictures for a reader that takes none, and it would not be noticed
                    let _ = set_socket_send_buffer_size(&stream, BUFFER);
                    return (Visit::new(stream, place, self.clock.clone()), address);
                }
                // of the process or of one that has gone already: as the system recovers
                Err(error) => {
                    tracing::debug!(%error, "the dashboard could not accept a connection");
                    self.clock.sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) SocketAddr);

impl Connected<IncomingStream<'_, Door>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Door>) -> Self {
        Self(*stream.remote_addr())
    }
}

type Timer = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A connection whose writes fail when they have waited for [`PATIENCE`], and whose reads do when nothing has happened on it for [`IDLE`].
pub(super) struct Visit<T> {
    stream: T,
    clock: Clock,
    /// Runs out while a write waits.
    patience: Option<Timer>,
    /// When something was last read or written.
    moved: Instant,
    /// Runs out at the end of an idle time that may have ended before.
    idle: Option<Timer>,
    _place: Option<OwnedSemaphorePermit>,
}

impl<T> Visit<T> {
    fn new(stream: T, place: Option<OwnedSemaphorePermit>, clock: Clock) -> Self {
        Self {
            stream,
            moved: clock.now(),
            clock,
            patience: None,
            idle: None,
            _place: place,
        }
    }

    fn wait<R>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        if written.is_ready() {
            self.patience = None;
            self.moved = self.clock.now();
            return written;
        }
        let clock = &self.clock;
        let until = clock.now() + PATIENCE;
        let patience = self.patience.get_or_insert_with(|| timer(clock, until));
        ready!(patience.as_mut().poll(cx));
        cut("the reader takes nothing")
    }

    /// Ready when nothing has happened for too long.
    fn stand(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let (clock, end) = (&self.clock, self.moved + IDLE);
            let idle = self.idle.get_or_insert_with(|| timer(clock, end));
            ready!(idle.as_mut().poll(cx));
            self.idle = None;
            if end <= self.clock.now() {
                return cut("nobody asks for anything");
            }
        }
    }
}

fn timer(clock: &Clock, until: Instant) -> Timer {
    let clock = clock.clone();
    Box::pin(async move { clock.sleep_until(until).await })
}

fn cut<T>(why: &'static str) -> Poll<io::Result<T>> {
    Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)))
}

impl<T: AsyncRead + Unpin> AsyncRead for Visit<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if read.is_ready() {
            self.moved = self.clock.now();
            return read;
        }
        self.stand(cx)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Visit<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.wait(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.wait(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.wait(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_nothing_is_cut_and_one_that_is_slow_is_not() {
        let clock = Clock::paused(SystemTime::UNIX_EPOCH);
        let (ours, mut theirs) = tokio::io::duplex(8);
        let mut visit = Visit::new(ours, None, clock.clone());
        // slow: takes a little every 20 s
        let slow = async {
            let mut taken = [0; 8];
            for _ in 0..8 {
                clock.sleep(Duration::from_secs(20)).await;
                theirs.read_exact(&mut taken).await.expect("there is more");
            }
        };
        let (written, ()) = tokio::join!(visit.write_all(&[7; 64]), slow);
        written.expect("all was taken");
        visit.write_all(&[7; 8]).await.expect("there is room");
        let began = clock.now();
        let cut = visit.write_all(&[7; 8]).await.expect_err("nobody takes it");
        assert_eq!(cut.kind(), io::ErrorKind::TimedOut);
        assert_eq!(clock.now() - began, PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_stands_idle_is_cut_and_one_that_is_written_to_is_not() {
        let clock = Clock::paused(SystemTime::UNIX_EPOCH);
        let (ours, mut theirs) = tokio::io::duplex(8);
        let began = clock.now();
        let (mut reads, mut writes) = tokio::io::split(Visit::new(ours, None, clock.clone()));
        let stream = async {
            for _ in 0..10 {
                clock.sleep(Duration::from_secs(20)).await;
                writes.write_all(&[7; 8]).await.expect("somebody reads");
                theirs.read_exact(&mut [0; 8]).await.expect("all of it");
            }
        };
        let mut asked = [0; 8];
        let (cut, ()) = tokio::join!(reads.read(&mut asked), stream);
        let cut = cut.expect_err("nobody asks for anything");
        assert_eq!(cut.kind(), io::ErrorKind::TimedOut);
        assert_eq!(clock.now() - began, 10 * Duration::from_secs(20) + IDLE);
    }
}
