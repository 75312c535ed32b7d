//! The dashboard in a real browser, against a real manager on the simulated server.
//!
//! Needs Chromium and its driver: `apt-get install chromium chromium-driver`. With `BOATSWAIN_PICTURES=1` it makes those in `docs/img` anew.

#![allow(clippy::expect_used, reason = "a test that cannot begin has failed")]

mod driver;
mod everybody;
mod process;
mod readers;
mod scene;
mod telling;

use std::time::Duration;

use boatswain::{Clock, Key};
use boatswain_supervision::NodeState;
use boatswain_tests::{eventually, request};
use driver::Browser;
use hyper::{Method, StatusCode};
use scene::{EVIL, Part, Scene, TOKEN};
use serde_json::json;

const RIGHT: &str = "\u{E014}";
const DOWN: &str = "\u{E015}";

/// Nothing that came from an object was taken for markup.
async fn unharmed(browser: &Browser) {
    let harmed = "return Boolean(window.harmed) || document.querySelectorAll('img[src=x]').length";
    let harmed = browser.run(harmed, json!([])).await;
    assert!(harmed == json!(false) || harmed == json!(0), "{harmed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tree_appears_and_a_panic_turns_its_node_counts_down_and_heals() {
    let scene = Scene::set(false).await;
    let browser = Browser::start().await;
    browser.open(&scene.url("")).await;
    browser.sees("#health-line", "All is well").await;
    for path in ["root", "root/dashboard", "root/controllers/quay/shard-0"] {
        browser
            .sees(&format!("[data-path='{path}']"), "running")
            .await;
    }
    // the keyboard of a tree, with a screen reader's words
    let script = "const tree = document.getElementById('tree'); tree.querySelector('[tabindex=\"0\"]').focus(); return tree.getAttribute('role')";
    assert_eq!(browser.run(script, json!([])).await, "tree");
    browser.press(DOWN).await;
    let focused = "return document.activeElement.dataset.path + ' ' + document.activeElement.getAttribute('aria-level')";
    assert_eq!(browser.run(focused, json!([])).await, "root/dashboard 2");
    browser.press("c").await;
    browser.press(DOWN).await;
    browser.press(RIGHT).await;
    let focused = browser.run(focused, json!([])).await;
    let path = focused.as_str().expect("a path");
    assert!(path.starts_with("root/informers/"), "{path}");

    // a key whose reconciler panics is an actor that waits for its next life
    scene.script.set("rope", Part::Panic);
    scene.space.put("rope", "1").await;
    let node = format!("[data-path$='keys:waiting/{}/rope']", scene.space.name);
    let told = browser.sees(&node, "next in").await;
    assert!(told.contains("failed"), "{told}");
    scene.script.heal("rope");
    scene
        .manager()
        .observer()
        .controller("quay")
        .expect("it is there")
        .promote(&scene.key("rope"), boatswain::Lane::User);
    eventually("the key heals", async || match browser.text(&node).await {
        None => Ok(()),
        Some(text) => Err(text),
    })
    .await;

    // an actor that keeps failing turns, counts down and heals, and the first line says so
    let path = "root/controllers/quay/limiter";
    let quay = format!("[data-path='{path}']");
    let observer = scene.manager().observer();
    // what is shown for a moment only is kept: a busy machine looks too late
    let keep = "window.told = []; const keep = () => told.push(document.getElementById('health').innerText + (document.querySelector(arguments[0])?.innerText ?? '')); for (const id of ['health', 'tree']) new MutationObserver(keep).observe(document.getElementById(id), { subtree: true, childList: true, characterData: true })";
    browser.run(keep, json!([quay])).await;
    for lives in 1..=6 {
        eventually("it runs", async || {
            let tree = observer.snapshot();
            let node = tree.find(path).expect("it is in the tree");
            let is_back = node.state == NodeState::Running && node.incarnation == lives;
            is_back.then_some(()).ok_or(node.state)
        })
        .await;
        assert!(observer.kill(path));
    }
    let all = "return told.some((text) => arguments[0].every((words) => text.includes(words)))";
    eventually(
        "the page says what is stuck, since when, and for how long",
        async || {
            let words = json!([["limiter failed", " — for ", "back in", "↻"]]);
            let told = browser.run(all, words).await;
            (told == json!(true)).then_some(()).ok_or(told)
        },
    )
    .await;
    browser.sees(&quay, "running").await;
    browser.sees("#health-line", "All is well").await;
    browser.sees("#events", "was killed").await;
    let complaints = browser.complaints().await;
    assert!(complaints.is_empty(), "{complaints:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parked_key_is_found_explained_unparked_and_succeeds_and_its_words_stay_text() {
    let scene = Scene::set(true).await;
    scene.script.set("berth", Part::GiveUp);
    scene.space.put("berth", "1").await;
    scene.space.put("mole", "1").await;
    let browser = Browser::start().await;
    browser.open(&scene.url("#/keys")).await;
    browser.sees("#parked-count", "1").await;
    browser.sees("#health-line", "1 key of quay gave up").await;
    browser.fill("#q", "ber").await;
    browser.sees("#keys .item", "berth").await;
    let own = format!(
        "#keys .item[href*='quay'][href*='{}/berth']",
        scene.space.name
    );
    browser.click(&own).await;
    let told = browser.sees("#explain", "parked").await;
    assert!(told.contains(EVIL), "the reason is text: {told}");
    unharmed(&browser).await;
    assert!(!told.contains("Unpark"), "locked, there is no button");
    // the same in a terminal
    let (address, key) = (scene.address(), scene.key("berth").to_string());
    let asked = move || boatswain::terminal::explain(address, "ConfigMap", &key);
    let told = tokio::task::spawn_blocking(asked)
        .await
        .expect("no panic")
        .expect("an answer");
    assert!(
        told.contains("of quay: parked since") && told.contains("of pilot: idle"),
        "{told}"
    );
    // without the token nothing can be done, with a wrong one neither
    browser.click("#lock").await;
    browser.fill("#ask-input", "not the token at all").await;
    browser.click("#ask-yes").await;
    browser.sees("#ask-error", "this is not the token").await;
    browser.fill("#ask-input", TOKEN).await;
    browser.click("#ask-yes").await;
    browser.sees("#explain", "Unpark").await;
    scene.script.heal("berth");
    browser.click("#explain button.primary").await;
    browser
        .sees("#ask-text", "as one that has never failed")
        .await;
    browser.click("#ask-yes").await;
    browser.sees(".toast", "is unparked").await;
    let told = browser.sees("#explain", "success").await;
    assert!(told.contains("unparked"), "why it ran is told: {told}");
    browser.sees("#health-line", "All is well").await;
    eventually("the object is told", async || {
        let notes = scene.space.notes("ConfigMap", "berth", "Unparked").await;
        (!notes.is_empty()).then_some(()).ok_or("no Event")
    })
    .await;
    // a pause is told with its reason, which stays text
    browser.open(&scene.url("#/controllers")).await;
    browser.click("#view-controllers .controller button").await;
    browser.fill("#ask-input", EVIL).await;
    browser.click("#ask-yes").await;
    browser.sees("#view-controllers", EVIL).await;
    browser.sees("#health-line", "quay is paused").await;
    unharmed(&browser).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn actions_are_refused_without_the_token_and_for_a_foreign_host_or_origin() {
    let scene = Scene::set(true).await;
    let address = scene.address();
    let bearer = format!("Bearer {TOKEN}");
    let pause = async |headers: &[(&str, &str)]| {
        let body = json!({ "controller": "quay" }).to_string();
        let path = "/api/v1/actions/pause";
        request(address, Method::POST, path, headers, body).await
    };
    let auth = ("authorization", bearer.as_str());
    for headers in [
        &[][..],
        &[("authorization", "Bearer correct-horse-battery-stapler")],
        &[auth, ("host", "rebound.example.com")],
        &[auth, ("origin", "http://evil.example.com")],
        &[auth, ("origin", "null")],
    ] {
        let (code, told) = pause(headers).await;
        assert_eq!(code, StatusCode::FORBIDDEN, "{headers:?}: {told}");
    }
    let quay = scene
        .manager()
        .observer()
        .controller("quay")
        .expect("it is there");
    assert_eq!(quay.paused(), None);
    // a page of another origin learns nothing, even with the token at hand
    let browser = Browser::start().await;
    browser.open("data:text/html,<p>elsewhere").await;
    let script = "const done = fetch(arguments[0], { method: 'POST', headers: { Authorization: arguments[1], 'Content-Type': 'application/json' }, body: '{\"controller\":\"quay\"}' }); return done.then(() => 'answered', () => 'refused')";
    let args = json!([scene.url("api/v1/actions/pause"), bearer]);
    assert_eq!(browser.run(script, args).await, "refused");
    assert_eq!(quay.paused(), None);
    let (code, _) = pause(&[auth]).await;
    assert_eq!(code, StatusCode::OK);
    assert!(quay.paused().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_keys_stay_responsive() {
    let scene = Scene::set(true).await;
    let quay = scene
        .manager()
        .observer()
        .controller("quay")
        .expect("it is there");
    quay.pause("the test");
    for n in 0..100_000 {
        let name = if n == 77_777 {
            EVIL.to_owned()
        } else {
            format!("crate-{n:06}")
        };
        scene
            .sender
            .send(Key::new(Some("shop"), &name))
            .expect("room");
    }
    let browser = Browser::start().await;
    browser.open(&scene.url("")).await;
    let group = "[data-path='root/controllers/quay/keys:queued']";
    browser.sees(group, "100,000 keys queued").await;
    // from the click to the frame after it
    let time = "const e = document.querySelector(arguments[0]); const from = performance.now(); e.dispatchEvent(new MouseEvent('click', { bubbles: true })); return new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now() - from))))";
    let mut best: f64 = f64::MAX;
    for _ in 0..9 {
        let took = browser.run(time, json!([format!("{group} .twist")])).await;
        best = best.min(took.as_f64().expect("a number"));
    }
    println!("a level of 100,000 keys opens within {best:.1} ms");
    assert!(best < 100.0, "{best} ms");
    browser.sees("#tree", "99,950 more: search them").await;
    browser
        .open(&scene.url("#/keys?state=queued&controller=quay"))
        .await;
    browser.sees("#keys", "There are more").await;
    // exactly one of so many, which has no object at all
    browser.fill("#q", "shop/crate-099999").await;
    browser.sees("#keys .item", "shop/crate-099999").await;
    let evil = format!("shop/{EVIL}");
    browser.fill("#q", &evil).await;
    browser.sees("#keys .item", &evil).await;
    let clock = Clock::system();
    let mut best = Duration::MAX;
    for n in 0..5 {
        let (began, key) = (clock.now(), format!("shop/crate-00{n}123"));
        let path = format!("/api/v1/keys?q={key}&state=queued");
        let (code, _) = request(scene.address(), Method::GET, &path, &[], String::new()).await;
        assert_eq!(code, StatusCode::OK);
        best = best.min(clock.now() - began);
    }
    println!("one of 100,000 keys is found within {best:?}");
    assert!(best < Duration::from_millis(100), "{best:?}");
    unharmed(&browser).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_comes_back_by_itself_after_the_manager_was_restarted() {
    let mut scene = Scene::set(false).await;
    let browser = Browser::start().await;
    browser.open(&scene.url("")).await;
    browser.sees("#link", "live").await;
    let address = scene.address();
    scene.stop().await;
    browser.sees("#link", "connection lost").await;
    scene.start(address);
    browser.sees("#link", "live").await;
    browser.sees("#health-line", "All is well").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn controllers_informers_failures_and_every_state_are_told_with_their_causes() {
    let scene = Scene::set(false).await;
    scene.script.set("berth", Part::Fail);
    for name in ["berth", "mole"] {
        scene.space.put(name, "1").await;
    }
    let browser = Browser::start().await;
    browser.open(&scene.url("#/controllers")).await;
    let quay = "#view-controllers [data-key='quay']";
    let told = browser.sees(quay, "error").await;
    for words in [
        "configmaps",
        "works",
        "Ready keys",
        "Oldest ready key",
        "p99",
        "Limiter",
        "in error",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let drawn = "return [...document.querySelectorAll(arguments[0] + ' svg')].every((svg) => svg.querySelector('path').getAttribute('d') && svg.getAttribute('aria-label'))";
    eventually("the charts are drawn", async || {
        let drawn = browser.run(drawn, json!([quay])).await;
        (drawn == json!(true)).then_some(()).ok_or(drawn)
    })
    .await;
    browser.go("#/informers").await;
    let told = browser.sees("#view-informers", "configmaps").await;
    for words in ["watching", "initial", "ago", "No lease"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    // what there is none of here, as the page would show it
    let drawn = "return Promise.all([import('/controllers.js'), fetch('/api/v1/overview').then((a) => a.json())]).then(([page, seen]) => { seen.leases = [arguments[0]]; seen.informers[0].degraded = 'cannot list configmaps: forbidden'; seen.informers[0].relists = { expired: 3 }; page.tell(seen); page.showInformers(); return document.getElementById('view-informers').innerText })";
    let lease = json!({ "name": "crew", "controller": null, "identity": "one", "holder": "other", "leads": false, "transitions": 12, "renewal_ms": 8, "error": "no answer" });
    let told = browser.run(drawn, json!([lease])).await;
    let told = told.as_str().expect("the view");
    for words in [
        "cannot list configmaps: forbidden",
        "expired 3",
        "this process stands by",
        "other",
        "12",
        "no answer",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    browser.go("#/keys?state=top:failing").await;
    browser.sees("#keys .item", "berth").await;
    browser.click("#keys .item").await;
    let told = browser.sees("#explain", "error after").await;
    assert!(
        told.contains("the crane refuses") && told.contains("because:"),
        "{told}"
    );

    // of what was killed it is told when
    let path = "root/controllers/quay/limiter";
    let node = format!("[data-path='{path}']");
    browser.go("#/tree").await;
    browser.sees(&node, "running").await;
    assert!(scene.manager().observer().kill(path));
    browser.click(&node).await;
    let told = browser.sees("#node", "was killed, ").await;
    assert!(told.contains(" ago"), "{told}");
    // states that none is in here, as the page would show them
    let drawn = "const [state, degraded] = arguments; return Promise.all([import('/tree.js'), fetch('/api/v1/overview').then((a) => a.json())]).then(([tree, seen]) => { const node = seen.tree.root.children[0]; node.state = state; node.degraded = degraded; tree.show(seen); const row = document.querySelector(`[data-path='${node.path}']`); return row.innerText + row.getAttribute('aria-label') })";
    for (state, degraded, words) in [
        (json!({ "state": "suspended" }), None, "suspended"),
        (json!({ "state": "blocked" }), None, "blocked"),
        (json!({ "state": "failed" }), None, "failed"),
        (
            json!({ "state": "backoff", "until_ms": 42_000 }),
            None,
            "back in 4",
        ),
        (
            json!({ "state": "running" }),
            Some("a worn line"),
            "degraded",
        ),
    ] {
        let told = browser.run(drawn, json!([state, degraded])).await;
        let told = told.as_str().expect("a row");
        assert_eq!(
            told.matches(words).count(),
            2,
            "to read and to hear: {told}"
        );
    }
}
