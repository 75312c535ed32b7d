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
    gate: Arc<watch::Sender<Gate>>,
    accepting: JoinHandle<()>,
}

/// Whether traffic passes, and which connections are still wanted.
#[derive(Clone, Copy, Default)]
struct Gate {
    held: bool,
    /// Connections of an earlier era carry nothing any more.
    era: u64,
    /// Connections of an earlier generation are broken.
    generation: u64,
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
        let gate = Arc::new(watch::Sender::new(Gate::default()));
        let doors = gate.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(connect(client, target, doors.subscribe()));
            }
        });
        Ok(Self {
            address,
            gate,
            accepting,
        })
    }

    /// Where the proxy listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets nothing through any more; connections stay open and silent.
    pub fn hold(&self) {
        self.gate.send_modify(|gate| gate.held = true);
    }

    /// Lets nothing through any more on the connections there are, which stay open and silent; new ones work: what a firewall does that has forgotten
    /// them.
    pub fn strand(&self) {
        self.gate.send_modify(|gate| gate.era += 1);
    }

    /// Breaks every connection and lets new ones through.
    pub fn reset(&self) {
        self.release();
    }

    /// Breaks what was held, without delivering it, and lets new connections through.
    pub fn release(&self) {
        self.gate.send_modify(|gate| {
            gate.held = false;
            gate.generation += 1;
        });
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn connect(client: TcpStream, target: SocketAddr, mut gate: watch::Receiver<Gate>) {
    let born = *gate.borrow();
    let pass = gate.clone();
    let forward = async {
        open(&pass, born).await;
        // a target that refuses closes the client's connection, as it would without us
        let Ok(server) = TcpStream::connect(target).await else {
            return;
        };
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        tokio::select! {
            () = pump(from_client, to_server, &pass, born) => {}
            () = pump(from_server, to_client, &pass, born) => {}
        }
    };
    tokio::select! {
        biased;
        _ = gate.wait_for(|gate| gate.generation != born.generation) => {}
        () = forward => {}
    }
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    gate: &watch::Receiver<Gate>,
    born: Gate,
) {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = from.read(&mut buffer).await.unwrap_or(0);
        open(gate, born).await;
        if read == 0 || to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

/// Waits until traffic of this generation passes; for ever if it is broken, which `connect` hears of, but perhaps a moment later.
async fn open(gate: &watch::Receiver<Gate>, born: Gate) {
    let breaks = |gate: &Gate| gate.generation != born.generation;
    let passes = |gate: &Gate| (!gate.held && gate.era == born.era) || breaks(gate);
    let mut gate = gate.clone();
    let broken = match gate.wait_for(passes).await {
        Ok(gate) => breaks(&gate),
        Err(_) => true,
    };
    if broken {
        std::future::pending::<()>().await;
    }
}
