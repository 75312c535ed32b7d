//! Makes connections to an API server that do not outlive their other end unnoticed.

use std::{error::Error, time::Duration};

use boatswain_supervision::Clock;
use http::{Request, Response, Uri};
use http_body_util::BodyExt as _;
use hyper_timeout::TimeoutConnector;
use hyper_util::client::{
    legacy::{
        Client,
        connect::{
            Connect, HttpConnector,
            proxy::{SocksV5, Tunnel},
        },
    },
    proxy::matcher::{Intercept, Matcher},
};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt as _, DynBody};
use tokio::runtime::Handle;
use tower::{
    BoxError, Layer as _, ServiceBuilder, ServiceExt as _,
    util::{BoxCloneSyncService, BoxService},
};

mod credentials;
mod gated;
mod runtime;
#[cfg(test)]
mod tests;

use credentials::Signing;
pub use gated::Gate;
use gated::Gating;
use runtime::OnRuntimeLayer;

/// How connections are made and how dead ones are found.
///
/// A connection that carries a quiet watch looks the same whether its other end is there or a firewall between has forgotten it. So the kernel asks
/// the other kernel: after [`idle`](Self::idle) without traffic, then every [`interval`](Self::interval). Without an answer to
/// [`probes`](Self::probes) questions, or to sent data for as long, the connection breaks, and whoever reads from it hears of it. A server that
/// is there but says nothing is another matter: see [`InformerOptions::silence`](crate::InformerOptions::silence).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectOptions {
    /// How long a connection may carry nothing until the other end is asked whether it is there. Default 15 s; less than a second counts as one.
    pub idle: Duration,
    /// How long to wait for an answer before asking again. Default 5 s; less than a second counts as one.
    pub interval: Duration,
    /// How many questions in a row stay unanswered until the connection is dead. Default 3; none counts as one.
    pub probes: u32,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(15),
            interval: Duration::from_secs(5),
            probes: 3,
        }
    }
}

impl ConnectOptions {
    /// How long the other end may be gone until the connection breaks: 30 s by default. The same whether anything was sent to it (Linux and Android;
    /// elsewhere data that was sent keeps a connection alive for as long as the system repeats it).
    #[must_use]
    pub fn patience(&self) -> Duration {
        let Self {
            idle,
            interval,
            probes,
        } = self.whole();
        idle + interval * probes
    }

    /// As the kernel takes them: in seconds, and nothing is zero.
    fn whole(&self) -> Self {
        let seconds = |time: Duration| Duration::from_secs(time.as_secs().max(1));
        Self {
            idle: seconds(self.idle),
            interval: seconds(self.interval),
            probes: self.probes.max(1),
        }
    }
}

/// What sends requests to the server and brings its answers.
pub type Transport = BoxService<Request<Body>, Response<Box<DynBody>>, BoxError>;

/// A client for informers, and for everything else, of the server that `config` names. Its connections live on `io`, a runtime that must outlive
/// every actor that uses the client.
///
/// Everything kube's own client takes from a configuration is honoured: certificates, tokens, exec plugins, impersonation, proxies (`proxy-url`,
/// `HTTPS_PROXY` and `NO_PROXY`; HTTP, HTTPS and SOCKS 5, with credentials), the server's name in TLS, the reloaded CA in clusters, time limits; except that it never repeats a request
/// by itself, which would hide a busy server from those who back off (other than once after 401, with credentials read anew from their file or plugin), and that [`kube::Client::valid_until`] says nothing.
///
/// Each watch has a connection of its own (HTTP/1.1), so no request waits behind one and a reader that is slow slows down nobody else.
///
/// # Errors
///
/// When the configuration cannot be turned into a transport: certificates that do not parse, a proxy that speaks something else.
pub fn connect(
    config: kube::Config,
    options: &ConnectOptions,
    io: &Handle,
) -> Result<kube::Client, kube::Error> {
    let namespace = config.default_namespace.clone();
    let transport = transport(config, options, None, io)?;
    // a client keeps a task of its own
    let _entered = io.enter();
    Ok(kube::Client::new(transport, namespace))
}

/// What [`connect`] makes a client of, for those who put layers of their own around it.
///
/// With a `gate` nothing is written to any of its connections once that is closed: not what was on its way when it closed, nor what waited in a process that
/// was stopped and went on. A connection that met a closed gate is broken; the next request opens another.
///
/// # Errors
///
/// As [`connect`].
pub fn transport(
    mut config: kube::Config,
    options: &ConnectOptions,
    gate: Option<Gate>,
    io: &Handle,
) -> Result<Transport, kube::Error> {
    // kube's layers may start tasks
    let _entered = io.enter();
    let tcp = Gating::new(tcp(options), gate);
    let env = |name: &str| std::env::var(name).ok();
    let Some(proxy) = proxy(&config, env)? else {
        if config.cluster_url.scheme_str() == Some("http") {
            // nobody will show a certificate, and reading those of the system takes some 20 ms
            config.root_cert.get_or_insert_default();
        }
        let https = config.rustls_https_connector_with_connector(tcp)?;
        return finish(TimeoutConnector::new(https), config, io);
    };
    match proxy.uri().scheme_str() {
        Some("http") => {
            let tunnel = tunnel(&proxy, tcp);
            let https = config.rustls_https_connector_with_connector(tunnel)?;
            finish(TimeoutConnector::new(https), config, io)
        }
        Some("https") => {
            let secured = config.rustls_https_connector_with_connector(tcp)?;
            let tunnel = tunnel(&proxy, secured);
            let https = config.rustls_https_connector_with_connector(tunnel)?;
            finish(TimeoutConnector::new(https), config, io)
        }
        _ => {
            let socks = SocksV5::new(proxy.uri().clone(), tcp);
            let socks = match proxy.raw_auth() {
                Some((user, password)) => socks.with_auth(user.into(), password.into()),
                None => socks,
            };
            let https = config.rustls_https_connector_with_connector(socks)?;
            finish(TimeoutConnector::new(https), config, io)
        }
    }
}

/// The proxy on the way to the server, with its credentials.
///
/// One that comes from the environment is left out for servers that `NO_PROXY` names; kube gives the first without looking at the second.
fn proxy(
    config: &kube::Config,
    env: impl Fn(&str) -> Option<String>,
) -> Result<Option<Intercept>, kube::Error> {
    let Some(proxy) = &config.proxy_url else {
        return Ok(None);
    };
    let set = |name: &str| env(name).filter(|value| !value.is_empty());
    let either = |upper: &str, lower: &str| set(upper).or_else(|| set(lower));
    let of_environment = either("HTTPS_PROXY", "https_proxy")
        .and_then(|value| value.parse::<Uri>().ok())
        .is_some_and(|uri| uri == *proxy);
    let excluded = either("NO_PROXY", "no_proxy").filter(|_| of_environment);
    let ways = Matcher::builder().all(ANY).no(excluded.unwrap_or_default());
    if ways.build().intercept(&config.cluster_url).is_none() {
        return Ok(None);
    }
    match proxy.scheme_str() {
        None | Some("http" | "https" | "socks5" | "socks5h") => {}
        Some(_) => return Err(unsupported(proxy)),
    }
    let through = Matcher::builder().all(proxy.to_string()).build();
    match through.intercept(&config.cluster_url) {
        Some(proxy) => Ok(Some(proxy)),
        None => Err(unsupported(proxy)),
    }
}

/// Stands for any proxy.
const ANY: &str = "http://proxy.invalid";

fn unsupported(proxy: &Uri) -> kube::Error {
    kube::Error::ProxyProtocolUnsupported {
        proxy_url: Box::new(proxy.clone()),
    }
}

fn tcp(options: &ConnectOptions) -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let ConnectOptions {
        idle,
        interval,
        probes,
    } = options.whole();
    tcp.set_keepalive(Some(idle));
    tcp.set_keepalive_interval(Some(interval));
    tcp.set_keepalive_retries(Some(probes));
    #[cfg(any(target_os = "linux", target_os = "android"))]
    tcp.set_tcp_user_timeout(Some(options.patience()));
    tcp
}

fn tunnel<C>(proxy: &Intercept, connector: C) -> Tunnel<C> {
    let tunnel = Tunnel::new(proxy.uri().clone(), connector);
    match proxy.basic_auth() {
        Some(header) => tunnel.with_auth(header.clone()),
        None => tunnel,
    }
}

fn finish<C>(
    mut connector: TimeoutConnector<C>,
    config: kube::Config,
    io: &Handle,
) -> Result<Transport, kube::Error>
where
    TimeoutConnector<C>: Connect + Clone + Send + Sync + 'static,
{
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let http = Client::builder(TokioExecutor::new())
        // without it, connections nobody needs are kept until somebody asks for one
        .pool_timer(TokioTimer::new())
        .build::<_, Body>(connector);
    let (uri, headers) = (config.base_uri_layer(), config.extra_headers_layer()?);
    let bare = ServiceBuilder::new()
        .layer(headers)
        .map_err(|error: hyper_util::client::legacy::Error| BoxError::from(error))
        .service(http)
        .map_response(|answer| answer.map(plain));
    let bare = BoxCloneSyncService::new(bare);
    let signing = Signing::new(config, bare, Clock::system())?;
    let service = ServiceBuilder::new().layer(uri).service(signing);
    let service = OnRuntimeLayer::new(io.clone()).layer(service.boxed());
    Ok(service.boxed())
}

/// A body without the type of its connection.
fn plain<B>(body: B) -> Box<DynBody>
where
    B: http_body::Body<Data = bytes::Bytes, Error: Error + Send + Sync> + Send + Unpin + 'static,
{
    Box::new(body.map_err(BoxError::from))
}

/// The same request once more, for who may have to repeat it; `None` if its body can be read only once.
#[must_use]
pub fn copy_request(request: &Request<Body>) -> Option<Request<Body>> {
    let mut copy = Request::new(request.body().try_clone()?);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    Some(copy)
}
