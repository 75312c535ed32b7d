//! The server on a loopback port.

use std::{
    io,
    net::{SocketAddr, ToSocketAddrs},
    path::Path,
};

use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{JoinHandle, JoinSet},
};

use crate::ApiSim;

/// A listener and its connections. Dropping it kills both, as [`Server::kill`] does.
#[derive(Debug)]
pub struct Server {
    addr: SocketAddr,
    closing: watch::Sender<bool>,
    task: Option<JoinHandle<()>>,
}

impl ApiSim {
    /// Serves HTTP/1.1 on this address; port 0 takes a free one. The store is that of all other ways in.
    ///
    /// Needs a tokio runtime with I/O, on which the connections run.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub async fn serve(&self, addr: impl ToSocketAddrs) -> io::Result<Server> {
        let first = addr.to_socket_addrs()?.next();
        let addr = first.ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "no address to listen on")
        })?;
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        let (closing, closed) = watch::channel(false);
        let task = tokio::spawn(accept(self.clone(), listener, closed));
        Ok(Server {
            addr,
            closing,
            task: Some(task),
        })
    }
}

async fn accept(sim: ApiSim, listener: TcpListener, mut closing: watch::Receiver<bool>) {
    let each = closing.clone();
    // the connections end with this task, and so at once when it is aborted
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            _ = closing.wait_for(|closing| *closing) => break,
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                // small answers wait for nobody's acknowledgement
                let _ = stream.set_nodelay(true);
                let service = TowerToHyperService::new(sim.service().closing(each.clone()));
                let mut closing = each.clone();
                connections.spawn(async move {
                    let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                    let mut connection = std::pin::pin!(connection);
                    tokio::select! {
                        biased;
                        // how a connection ends is the client's affair
                        _ = connection.as_mut() => return,
                        _ = closing.wait_for(|closing| *closing) => {}
                    }
                    connection.as_mut().graceful_shutdown();
                    let _ = connection.await;
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

impl Server {
    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The base URL, for example `http://127.0.0.1:34567`.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// A kubeconfig for this server, with the rights of `token`.
    ///
    /// kubectl sends no token over plain HTTP, so for kubectl this is an administrator whatever the token; kube does.
    pub fn kubeconfig(&self, token: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: apisim\n  cluster:\n    server: {}\nusers:\n- name: apisim\n  user:\n    token: {token}\n\
             contexts:\n- name: apisim\n  context:\n    cluster: apisim\n    user: apisim\n    namespace: default\ncurrent-context: apisim\n",
            self.url()
        )
    }

    /// Writes a kubeconfig with an administrator's rights.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_kubeconfig(&self, path: impl AsRef<Path>) -> io::Result<()> {
        std::fs::write(path, self.kubeconfig("admintoken"))
    }

    /// Stops listening, ends the watches, answers the requests under way and returns when all connections are closed.
    ///
    /// # Cancellation safety
    /// Dropping the future kills what is left.
    pub async fn stop(mut self) {
        self.closing.send_replace(true);
        if let Some(task) = &mut self.task {
            let _ = task.await;
        }
        self.task = None;
    }

    /// Breaks all connections and stops listening, at once, as when the process is killed; the store is left as it is,
    /// and [`ApiSim::serve`] on the same address brings the server back.
    ///
    /// # Cancellation safety
    /// The connections are broken even if the future is dropped.
    pub async fn kill(mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
            // wait until the socket is closed
            let _ = task.await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
