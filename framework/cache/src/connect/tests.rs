use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use tokio::runtime::Runtime;
use tower::{Service as _, service_fn};

use super::*;

fn io() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
}

/// A server on loopback that gives each connection to `talk`, on a thread of its own; with the number of connections so far.
fn server(talk: impl Fn(TcpStream) + Send + Sync + 'static) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (accepted, counter) = (Arc::new(AtomicUsize::new(0)), Arc::new(talk));
    let count = accepted.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            count.fetch_add(1, Ordering::SeqCst);
            let talk = counter.clone();
            thread::spawn(move || talk(stream));
        }
    });
    (address, accepted)
}

/// The head of a request, lines in lower case; `None` at the end of the connection.
fn head(stream: &mut TcpStream) -> Option<String> {
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        read.push(byte[0]);
    }
    Some(String::from_utf8_lossy(&read).to_lowercase())
}

fn exactly<const N: usize>(stream: &mut TcpStream) -> [u8; N] {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

/// Answers requests with `status` until the connection ends.
fn answer(mut stream: TcpStream, status: &str) {
    while head(&mut stream).is_some() {
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\n{{}}");
        stream.write_all(answer.as_bytes()).unwrap();
    }
}

fn config(server: &str) -> kube::Config {
    kube::Config::new(server.parse().unwrap())
}

async fn status(client: &kube::Client) -> Result<u16, kube::Error> {
    let request = Request::get("/version").body(Body::empty()).unwrap();
    let answer = client.send(request).await?;
    let code = answer.status().as_u16();
    // its connection is free again only now
    answer.into_body().collect_bytes().await?;
    Ok(code)
}

#[test]
fn by_default_a_dead_connection_is_found_within_thirty_seconds() {
    assert_eq!(
        ConnectOptions::default().patience(),
        Duration::from_secs(30)
    );
}

#[test]
fn the_kernel_is_told_to_look_after_every_connection() {
    let (address, _) = server(|stream| drop(head(&mut { stream })));
    let options = ConnectOptions {
        idle: Duration::from_secs(7),
        interval: Duration::from_millis(2500),
        probes: 0,
    };
    let uri = format!("http://{address}").parse().unwrap();
    let stream = io().block_on(tcp(&options).call(uri)).unwrap();
    let socket = socket2::SockRef::from(stream.inner());
    assert!(socket.keepalive().unwrap());
    assert!(socket.tcp_nodelay().unwrap());
    assert_eq!(socket.tcp_keepalive_time().unwrap(), Duration::from_secs(7));
    assert_eq!(
        socket.tcp_keepalive_interval().unwrap(),
        Duration::from_secs(2),
        "whole seconds"
    );
    assert_eq!(
        socket.tcp_keepalive_retries().unwrap(),
        1,
        "one question at least"
    );
    #[cfg(any(target_os = "linux", target_os = "android"))]
    assert_eq!(
        socket.tcp_user_timeout().unwrap(),
        Some(Duration::from_secs(9)),
        "unanswered data counts as long as unanswered questions"
    );
}

#[test]
fn a_connection_outlives_the_runtime_that_asked_for_it() {
    let (address, accepted) = server(|stream| answer(stream, "200 OK"));
    let io = io();
    let client = connect(
        config(&format!("http://{address}")),
        &ConnectOptions::default(),
        io.handle(),
    )
    .unwrap();
    for _ in 0..3 {
        let arbiter = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        assert_eq!(arbiter.block_on(status(&client)).unwrap(), 200);
    }
    assert_eq!(accepted.load(Ordering::SeqCst), 1);
}

#[test]
fn no_request_waits_behind_a_watch() {
    let (address, accepted) = server(|mut stream| {
        let Some(first) = head(&mut stream) else {
            return;
        };
        if first.contains("watch=true") {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
                .unwrap();
            // until the client goes away
            let _ = stream.read(&mut [0]);
        } else {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
                .unwrap();
            answer(stream, "200 OK");
        }
    });
    let io = io();
    let client = connect(
        config(&format!("http://{address}")),
        &ConnectOptions::default(),
        io.handle(),
    )
    .unwrap();
    io.block_on(async {
        let watch = || Request::get("/api/v1/pods?watch=true").body(Body::empty());
        let watches = [
            client.send(watch().unwrap()).await.unwrap(),
            client.send(watch().unwrap()).await.unwrap(),
        ];
        assert_eq!(status(&client).await.unwrap(), 200);
        assert_eq!(status(&client).await.unwrap(), 200);
        assert_eq!(
            accepted.load(Ordering::SeqCst),
            watches.len() + 1,
            "one for each watch, one for all else"
        );
    });
}

#[test]
fn a_busy_server_is_asked_once() {
    let heard = Arc::new(AtomicUsize::new(0));
    let count = heard.clone();
    let (address, _) = server(move |mut stream| {
        while head(&mut stream).is_some() {
            count.fetch_add(1, Ordering::SeqCst);
            stream
                .write_all(b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ncontent-length: 2\r\n\r\n{}")
                .unwrap();
        }
    });
    let io = io();
    let client = connect(
        config(&format!("http://{address}")),
        &ConnectOptions::default(),
        io.handle(),
    )
    .unwrap();
    assert_eq!(io.block_on(status(&client)).unwrap(), 429);
    assert_eq!(heard.load(Ordering::SeqCst), 1);
}

#[test]
fn requests_go_through_the_proxy_of_the_configuration_with_its_credentials() {
    let (proxy, accepted) = server(|mut stream| {
        let asked = head(&mut stream).unwrap();
        // base64 of `sail:or@steam`, in lower case
        let known = asked.contains("proxy-authorization: basic c2fpbdpvckbzdgvhbq==");
        if asked.starts_with("connect kubernetes.example:6443 ") && known {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            answer(stream, "200 OK");
        } else {
            stream
                .write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
                .unwrap();
        }
    });
    let io = io();
    let through = |proxy: String| {
        let mut config = config("http://kubernetes.example:6443");
        config.proxy_url = Some(proxy.parse().unwrap());
        let client = connect(config, &ConnectOptions::default(), io.handle()).unwrap();
        io.block_on(status(&client))
    };
    assert_eq!(
        through(format!("http://sail:or%40steam@{proxy}")).unwrap(),
        200
    );
    assert!(through(format!("http://sail:wrong@{proxy}")).is_err());
    assert_eq!(accepted.load(Ordering::SeqCst), 2);
}

#[test]
fn a_socks_proxy_resolves_the_name_of_the_server() {
    let (proxy, _) = server(|mut stream| {
        let [5, methods] = exactly(&mut stream) else {
            return;
        };
        let mut offered = vec![0; methods.into()];
        stream.read_exact(&mut offered).unwrap();
        assert!(offered.contains(&2), "user and password");
        stream.write_all(&[5, 2]).unwrap();
        assert_eq!(exactly(&mut stream), *b"\x01\x04sail\x08or@steam");
        stream.write_all(&[1, 0]).unwrap();
        assert_eq!(
            exactly(&mut stream),
            *b"\x05\x01\x00\x03\x12kubernetes.example\x19\x2b"
        );
        stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).unwrap();
        answer(stream, "200 OK");
    });
    let mut config = config("http://kubernetes.example:6443");
    config.proxy_url = Some(format!("socks5://sail:or%40steam@{proxy}").parse().unwrap());
    let io = io();
    let client = connect(config, &ConnectOptions::default(), io.handle()).unwrap();
    assert_eq!(io.block_on(status(&client)).unwrap(), 200);
}

#[test]
fn a_proxy_that_speaks_something_else_is_named() {
    let mut config = config("http://kubernetes.example:6443");
    config.proxy_url = Some("ftp://proxy.example".parse().unwrap());
    let io = io();
    let refused = connect(config, &ConnectOptions::default(), io.handle()).err();
    let text = refused.map(|error| error.to_string()).unwrap();
    assert!(text.contains("ftp://proxy.example"), "{text}");
}

#[test]
fn no_proxy_is_about_the_server_and_about_proxies_of_the_environment() {
    let through = |server: &str, proxy: &str, no_proxy: &str| {
        let mut config = config(server);
        config.proxy_url = Some(proxy.parse().unwrap());
        let env = |name: &str| match name {
            "HTTPS_PROXY" => Some(String::new()),
            "https_proxy" => Some("http://corporate.example:3128".into()),
            "no_proxy" => Some(no_proxy.to_owned()),
            _ => None,
        };
        let way = super::proxy(&config, env).unwrap();
        way.map(|proxy| proxy.uri().to_string())
    };
    let corporate = "http://corporate.example:3128";
    let some = |uri: &str| Some(format!("{uri}/"));
    for (server, no_proxy, proxied) in [
        ("https://10.1.2.3:6443", "", true),
        ("https://10.1.2.3:6443", "localhost, 10.0.0.0/8,", false),
        ("https://[::1]:6443", "::1", false),
        ("https://a.cluster.example", ".cluster.example", false),
        ("https://a.cluster.example", "corporate.example", true),
        ("https://a.cluster.example", "*", false),
    ] {
        let expected = some(corporate).filter(|_| proxied);
        assert_eq!(
            through(server, corporate, no_proxy),
            expected,
            "{server} {no_proxy}"
        );
    }
    let own = "http://own.example:8080";
    assert_eq!(through("https://10.1.2.3:6443", own, "*"), some(own));
    assert_eq!(
        through("https://10.1.2.3:6443", "own.example:8080", ""),
        some(own),
        "one without a scheme is an HTTP proxy"
    );
}

/// Counts those of its kind that are alive.
struct Alive(Arc<()>);

#[test]
fn a_request_runs_on_the_io_runtime_and_ends_with_its_caller() {
    let io = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("io")
        .enable_all()
        .build()
        .unwrap();
    let here = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let layer = OnRuntimeLayer::new(io.handle().clone());
    let ask = |uri| Request::get(uri).body(Body::empty()).expect("a request");

    let name = layer.layer(service_fn(|_: Request<Body>| async {
        let thread = std::thread::current().name().map(str::to_owned);
        Ok::<_, BoxError>(thread)
    }));
    let thread = here.block_on(name.oneshot(ask("/"))).expect("answered");
    assert_eq!(thread.as_deref(), Some("io"));

    let alive = Arc::new(());
    let (begun, mut has_begun) = tokio::sync::mpsc::channel(1);
    let held = alive.clone();
    let never = layer.layer(service_fn(move |_: Request<Body>| {
        let (held, begun) = (Alive(held.clone()), begun.clone());
        async move {
            begun.send(()).await?;
            std::future::pending::<()>().await;
            drop(held.0);
            Ok::<(), BoxError>(())
        }
    }));
    let request = never.oneshot(ask("/"));
    here.block_on(async {
        tokio::select! {
            _ = request => unreachable!("it has no end"),
            begun = has_begun.recv() => assert!(begun.is_some()),
        }
    });
    // the task is dropped on the io runtime, some time after the caller
    while Arc::strong_count(&alive) > 1 {
        std::thread::yield_now();
    }
    let crash = || -> Result<(), BoxError> { panic!("scripted") };
    let panics = layer.layer(service_fn(move |_: Request<Body>| async move { crash() }));
    let error = here.block_on(panics.oneshot(ask("/")));
    assert!(error.is_err(), "a panic is the failure of one request");
}

#[test]
fn what_meets_a_closed_gate_is_not_sent_and_breaks_its_connection() {
    let (heard, hears) = std::sync::mpsc::channel();
    let heard = std::sync::Mutex::new(heard);
    let (address, accepted) = server(move |mut stream| {
        let heard = heard.lock().unwrap().clone();
        while let Some(head) = head(&mut stream) {
            heard.send(head).unwrap();
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
                .unwrap();
        }
    });
    let io = io();
    let open = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let asked = open.clone();
    let gate: Gate = Arc::new(move || asked.load(Ordering::SeqCst));
    let client = {
        let options = ConnectOptions::default();
        let _entered = io.enter();
        let config = config(&format!("http://{address}"));
        let transport = transport(config, &options, Some(gate), io.handle()).unwrap();
        kube::Client::new(transport, "default")
    };
    assert_eq!(io.block_on(status(&client)).unwrap(), 200);
    open.store(false, Ordering::SeqCst);
    for _ in 0..3 {
        let error = io.block_on(status(&client)).unwrap_err();
        let mut causes = vec![error.to_string()];
        let mut error: &dyn Error = &error;
        while let Some(source) = error.source() {
            causes.push(source.to_string());
            error = source;
        }
        let last = causes.pop().unwrap();
        assert!(last.contains("gate"), "{last} after {causes:?}");
    }
    open.store(true, Ordering::SeqCst);
    assert_eq!(io.block_on(status(&client)).unwrap(), 200);
    assert!(
        accepted.load(Ordering::SeqCst) > 1,
        "a broken connection was used again"
    );
    assert_eq!(
        hears.try_iter().count(),
        2,
        "something was sent through a closed gate"
    );
}
