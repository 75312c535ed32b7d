//! The page for whoever has no mouse, hears it read, or sees little; and how it looks.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use boatswain::Clock;
use boatswain_tests::eventually;
use serde_json::{Value, json};

use crate::{
    driver::Browser,
    scene::{Part, Scene, TOKEN},
};

const TAB: &str = "\u{E004}";
const ENTER: &str = "\u{E007}";
const ESCAPE: &str = "\u{E00C}";
const VIEWS: [&str; 5] = ["tree", "controllers", "keys", "parked", "informers"];

/// Fails with all that is wrong with what is shown.
async fn sound(browser: &Browser, what: &str) {
    let wrong = browser.run(include_str!("check.js"), json!([])).await;
    assert_eq!(wrong, json!([]), "{what}");
}

/// Something of everything.
async fn stocked() -> Scene {
    let scene = Scene::set(true).await;
    scene.script.set("billing", Part::GiveUp);
    scene.script.set("search", Part::Fail);
    for name in ["billing", "cart", "search", "web"] {
        scene.space.put(name, "1").await;
    }
    scene
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_view_has_names_order_and_contrast_in_light_and_dark_and_on_a_phone() {
    let scene = stocked().await;
    let browser = Browser::start().await;
    browser.open(&scene.url("")).await;
    browser.sees("#health-line", "gave up").await;
    for (scheme, width) in [
        ("light", 1280),
        ("dark", 1280),
        ("light", 390),
        ("dark", 390),
    ] {
        browser.prefer(scheme).await;
        browser.size(width, 844, width < 640).await;
        for view in VIEWS {
            let hash = format!("#/{view}");
            browser.go(&hash).await;
            let section = format!("#view-{view}");
            eventually("the view has something", async || {
                let text = browser.text(&section).await.unwrap_or_default();
                (text.len() > 20).then_some(()).ok_or(text)
            })
            .await;
            sound(&browser, &format!("{view}, {scheme}, {width}")).await;
        }
        let key = format!("#/keys/quay/{}/billing", scene.space.name);
        browser.go(&key).await;
        browser.sees("#explain", "parked").await;
        sound(&browser, &format!("a key, {scheme}, {width}")).await;
        browser.click("#lock").await;
        browser.sees("#ask-title", "Unlock actions").await;
        sound(&browser, &format!("a dialog, {scheme}, {width}")).await;
        browser.press(ESCAPE).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_can_be_done_by_keys_alone_and_the_focus_is_always_seen() {
    let scene = stocked().await;
    let browser = Browser::start().await;
    browser.open(&scene.url("#/keys")).await;
    browser.sees("#keys .item", "billing").await;
    // before there is a picture nobody knows whether there are actions, and there is no button for them
    browser.sees("#link", "live").await;
    let focused = "const e = document.activeElement; const s = getComputedStyle(e); return [e.id || e.textContent.trim(), s.outlineStyle !== 'none' || e === document.body]";
    let mut order = Vec::new();
    for _ in 0..24 {
        browser.press(TAB).await;
        let at = browser.run(focused, json!([])).await;
        assert_eq!(at[1], true, "the focus is not seen on {at}");
        order.push(at[0].as_str().unwrap_or_default().to_owned());
    }
    let place = |name: &str| order.iter().position(|at| at.starts_with(name));
    let wanted = [
        "skip", "lock", "Tree", "Keys", "Parked", "q", "of", "Busy", "Slowest",
    ];
    let places: Vec<_> = wanted.iter().map(|name| place(name)).collect();
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "{order:?}"
    );

    // the skip link leads to the content and leaves the view as it is
    browser
        .run("document.getElementById('skip').focus()", json!([]))
        .await;
    browser.press(ENTER).await;
    let at = browser
        .run(
            "return document.activeElement.id + location.hash",
            json!([]),
        )
        .await;
    assert_eq!(at, "main#/keys");

    // a dialog takes the focus, keeps it, and gives it back
    browser
        .run("document.getElementById('lock').focus()", json!([]))
        .await;
    browser.press(ENTER).await;
    browser.sees("#ask-title", "Unlock actions").await;
    for _ in 0..6 {
        browser.press(TAB).await;
        let inside = "return Boolean(document.activeElement.closest('dialog')) || document.activeElement === document.body";
        assert_eq!(browser.run(inside, json!([])).await, true);
    }
    browser.fill("#ask-input", TOKEN).await;
    browser.press(ENTER).await;
    browser.sees("#lock", "Lock actions").await;
    let at = browser
        .run("return document.activeElement.id", json!([]))
        .await;
    assert_eq!(at, "lock");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_makes_no_sense_still_shows_the_page() {
    let scene = Scene::set(false).await;
    let browser = Browser::start().await;
    for hash in [
        "#/keys/%",
        "#/tree/%E0%A4%A",
        "#/nowhere",
        "#/keys/quay/a%2Fb/c",
        "#main",
    ] {
        browser.open("about:blank").await;
        browser.open(&scene.url(hash)).await;
        browser.sees("#link", "live").await;
        browser.sees("#health-line", "All is well").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_tabs_than_a_browser_has_connections_are_all_live_when_they_are_looked_at() {
    let scene = Scene::set(false).await;
    let browser = Browser::start().await;
    browser.open(&scene.url("")).await;
    for _ in 0..8 {
        browser.sees("#link", "live").await;
        browser.open_tab(&scene.url("")).await;
    }
    browser.sees("#health-line", "All is well").await;
}

/// Where pictures are written: into the documentation if `BOATSWAIN_PICTURES` asks for that.
fn folder(own: &Path) -> PathBuf {
    match std::env::var_os("BOATSWAIN_PICTURES") {
        Some(_) => Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/img"),
        None => own.to_owned(),
    }
}

/// Runs that succeed, fail and give up for a while, so that there is something to see.
async fn busy(scene: &Scene) {
    let names = [
        "api-gateway",
        "billing",
        "cart",
        "checkout",
        "search",
        "web",
    ];
    for name in names {
        scene.space.put(name, "1").await;
    }
    scene.script.set("billing", Part::GiveUp);
    scene.script.set("search", Part::Fail);
    let quay = scene.manager().observer().controller("quay");
    let quay = quay.expect("it is there");
    for round in 0..75_u64 {
        for (n, name) in names.iter().enumerate() {
            if !matches!(*name, "billing" | "search") {
                let millis = 20 * (n as u64 + 1) + (round * 37) % 90;
                scene.script.set(name, Part::Take(millis));
                quay.enqueue(&scene.key(name));
            }
        }
        Clock::system().sleep(Duration::from_millis(400)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pictures_for_the_readme_are_small_and_there_is_one_of_each_kind() {
    let scene = Scene::set(true).await;
    let own = tempfile::tempdir().expect("a folder");
    let folder = folder(own.path());
    let browser = Browser::start().await;
    browser.open(&scene.url("#/controllers")).await;
    // a program of tests has no name for a picture
    let called = "const e = document.getElementById('process'); const call = () => { if (e.textContent !== 'harbour') e.textContent = 'harbour'; }; new MutationObserver(call).observe(e, { childList: true }); call()";
    browser.run(called, json!([])).await;
    busy(&scene).await;
    let (desk, phone) = ((1280, 900, false), (390, 844, true));
    let pictures = [
        ("dashboard-tree-light.png", "#/tree", "light", desk),
        ("dashboard-tree-dark.png", "#/tree", "dark", desk),
        (
            "dashboard-controllers-light.png",
            "#/controllers",
            "light",
            desk,
        ),
        (
            "dashboard-controllers-dark.png",
            "#/controllers",
            "dark",
            desk,
        ),
        ("dashboard-phone-light.png", "#/tree", "light", phone),
        ("dashboard-phone-dark.png", "#/parked", "dark", phone),
    ];
    for (name, hash, scheme, (width, height, phone)) in pictures {
        browser.prefer(scheme).await;
        browser.size(width, height, phone).await;
        browser.go(hash).await;
        browser.sees("#health-line", "gave up").await;
        let wide = "return document.documentElement.scrollWidth - innerWidth";
        let over: Value = browser.run(wide, json!([])).await;
        assert!(
            over.as_i64().is_some_and(|over| over <= 0),
            "{name} is wider than its window by {over}"
        );
        Clock::system().sleep(Duration::from_millis(1200)).await;
        let path = folder.join(name);
        browser.shoot(&path).await;
        let bytes = std::fs::metadata(&path).expect("it is there").len();
        assert!((10_000..150_000).contains(&bytes), "{name}: {bytes}");
    }
}
