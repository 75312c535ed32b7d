//! A TCP proxy that can hold its traffic: a network that goes silent without a reset.

use std::{io, net::SocketAddr, sync::Arc};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::JoinHandle,
};

/// Forwards connections to one address.
pub struct Proxy {
    address: SocketAddr,
    held: Arc<watch::Sender<bool>>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// A proxy on a free loopback port in front of `target`.
    ///
    /// # Errors
    ///
    /// When no port can be bound.
    pub async fn before(target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let held = Arc::new(watch::Sender::new(false));
        let gate = held.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(connect(client, target, gate.subscribe()));
            }
        });
        Ok(Self {
            address,
            held,
            accepting,
        })
    }

    /// Where the proxy listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets nothing through any more; connections stay open and silent.
    pub fn hold(&self) {
        self.held.send_replace(true);
    }

    /// Lets everything through again, what was held first.
    pub fn release(&self) {
        self.held.send_replace(false);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn connect(client: TcpStream, target: SocketAddr, gate: watch::Receiver<bool>) {
    if open(&gate).await.is_err() {
        return;
    }
    // a target that refuses closes the client's connection, as it would without us
    let Ok(server) = TcpStream::connect(target).await else {
        return;
    };
    let ((from_client, to_client), (from_server, to_server)) =
        (client.into_split(), server.into_split());
    tokio::select! {
        () = pump(from_client, to_server, gate.clone()) => {}
        () = pump(from_server, to_client, gate) => {}
    }
}

async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, gate: watch::Receiver<bool>) {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = from.read(&mut buffer).await.unwrap_or(0);
        if open(&gate).await.is_err() || read == 0 || to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

async fn open(gate: &watch::Receiver<bool>) -> Result<(), watch::error::RecvError> {
    gate.clone().wait_for(|held| !held).await.map(drop)
}
