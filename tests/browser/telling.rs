//! What the page tells of keys, actors, informers and itself, in the words of people.

use boatswain_tests::eventually;
use serde_json::json;

use crate::{
    driver::Browser,
    scene::{EVIL, Part, Scene, TOKEN},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_run_decided_is_told_of_its_key_as_text_and_no_outcome_reads_like_code() {
    let scene = Scene::set(false).await;
    scene.script.set("berth", Part::Wait);
    scene.space.put("berth", "1").await;
    let browser = Browser::start().await;
    let key = format!("#/keys/quay/{}/berth", scene.space.name);
    browser.open(&scene.url(&key)).await;
    let told = browser.sees("#explain .facts", "Decided").await;
    assert!(told.contains(&format!("Moored: {EVIL}")), "{told}");
    let runs = browser.sees("#explain .runs", "decided: Moored").await;
    assert!(
        runs.contains("asks to run again after 1 h") && !runs.contains("RequeueAfter"),
        "{runs}"
    );
    assert!(
        runs.contains("asks to run again, took") && !runs.contains("requeue after"),
        "{runs}"
    );
    let facts = browser.sees("#explain .facts", "Decided").await;
    assert!(!facts.contains("none"), "what is not is not told: {facts}");
    // in the list, too, it says more than that it waits
    let listed = browser.sees("#keys .item", "berth").await;
    assert!(listed.contains("Moored"), "{listed}");
    let harmed = browser.run("return Boolean(window.harmed)", json!([]));
    assert_eq!(harmed.await, false);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarts_are_told_with_the_time_since_which_they_are_counted() {
    let scene = Scene::set(false).await;
    let browser = Browser::start().await;
    browser.open(&scene.url("#/tree")).await;
    let path = "root/controllers/quay/limiter";
    let node = format!("[data-path='{path}']");
    browser.sees(&node, "running").await;
    assert!(scene.manager().observer().kill(path));
    browser.sees(&node, "↻ 1").await;
    browser.click(&node).await;
    let told = browser.sees("#node", "1 since quay last started, ").await;
    assert!(told.contains(" ago"), "{told}");
    let title = "return document.querySelector(arguments[0] + ' .c-restarts').title";
    let title = browser.run(title, json!([node])).await;
    let title = title.as_str().expect("a title");
    assert!(title.starts_with("1 since quay last started"), "{title}");
    browser.click("[data-path='root/controllers/quay']").await;
    browser.sees("#node", "1 of those that are there").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_phone_each_informer_is_to_be_read_without_moving_the_page_aside() {
    let scene = Scene::set(false).await;
    let browser = Browser::start().await;
    browser.size(390, 844, true).await;
    browser.open(&scene.url("#/informers")).await;
    let told = browser.sees("#view-informers", "watching").await;
    assert!(told.contains("configmaps"), "{told}");
    let beyond = "return [...document.querySelectorAll('#view-informers td, #view-informers .pill')].filter((e) => { const box = e.getBoundingClientRect(); return !box.width || box.left < 0 || box.right > innerWidth || e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== 'inline-block'; }).map((e) => e.textContent)";
    assert_eq!(browser.run(beyond, json!([])).await, json!([]));
    // what a column says of all of them each says itself
    let heads = "return [...document.querySelector('#view-informers tbody tr').children].slice(1).map((e) => getComputedStyle(e, '::before').content)";
    let heads = browser.run(heads, json!([])).await;
    for head in ["State", "Objects", "Last event"] {
        assert!(heads.to_string().contains(head), "{heads}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tab_that_nobody_sees_says_in_its_title_that_the_manager_is_gone_and_that_it_is_back() {
    let mut scene = Scene::set(false).await;
    let browser = Browser::start().await;
    browser.open(&scene.url("")).await;
    browser.sees("#health-line", "All is well").await;
    let hide = "Object.defineProperty(document, 'hidden', { get: () => arguments[0] }); document.dispatchEvent(new Event('visibilitychange'))";
    browser.run(hide, json!([true])).await;
    let address = scene.address();
    scene.stop().await;
    let title = async |begin: &str| {
        eventually(&format!("the title begins with {begin}"), async || {
            let title = browser.run("return document.title", json!([])).await;
            let title = title.as_str().unwrap_or_default().to_owned();
            title.starts_with(begin).then_some(()).ok_or(title)
        })
        .await;
    };
    title("✕").await;
    scene.start(address);
    title("✓").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manager_that_has_nothing_to_show_yet_is_said_to_be_starting_and_not_to_be_silent() {
    let mut scene = Scene::set(false).await;
    let browser = Browser::start().await;
    browser.open(&scene.url("")).await;
    browser.sees("#health-line", "All is well").await;
    // what a manager answers until its tree stands
    let starts = "window.fetch = async () => new Response(JSON.stringify({ error: 'the manager is starting' }), { status: 503 })";
    browser.run(starts, json!([])).await;
    scene.stop().await;
    browser
        .sees("#health-line", "The manager is starting")
        .await;
    let title = browser.run("return document.title", json!([])).await;
    let title = title.as_str().unwrap_or_default().to_owned();
    assert!(title.ends_with("is starting"), "{title}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_phone_every_tab_is_to_be_seen_however_many_keys_are_parked() {
    let scene = Scene::set(false).await;
    scene.script.set("berth", Part::GiveUp);
    scene.space.put("berth", "1").await;
    let browser = Browser::start().await;
    for width in [320, 390] {
        browser.size(width, 844, true).await;
        browser.open(&scene.url("#/keys")).await;
        browser.sees("#parked-count", "1").await;
        let beyond = "const badge = document.getElementById('parked-count'); return ['1', '12,345'].flatMap((n) => { badge.textContent = n; const tabs = document.querySelector('.tabs').getBoundingClientRect(); return [...document.querySelectorAll('.tabs a')].filter((e) => { const box = e.getBoundingClientRect(); return box.right > Math.min(tabs.right, innerWidth) || box.bottom > tabs.bottom; }).map((e) => e.textContent); })";
        assert_eq!(browser.run(beyond, json!([])).await, json!([]), "{width}");
    }
    let rows = "document.getElementById('parked-count').textContent = '1'; return new Set([...document.querySelectorAll('.tabs a')].map((e) => e.getBoundingClientRect().top)).size";
    let rows = browser.run(rows, json!([])).await;
    assert_eq!(rows, 1, "a common phone has room for a line of them");
    // what does not decode is one of the things to look for
    browser.sees("#states", "Undecodable").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_whose_token_is_no_longer_the_token_is_locked_and_says_so() {
    let scene = Scene::set(true).await;
    let browser = Browser::start().await;
    browser.open(&scene.url("#/controllers")).await;
    browser.click("#lock").await;
    browser.fill("#ask-input", TOKEN).await;
    browser.click("#ask-yes").await;
    browser.sees("#lock", "Lock actions").await;
    scene.rotate();
    browser.click("#loglevel").await;
    browser.sees("#ask-title", "What is logged").await;
    browser.fill("#ask-input", "debug").await;
    browser.click("#ask-yes").await;
    let told = browser.sees(".toast", "this is not the token").await;
    assert!(told.contains("Actions are locked"), "{told}");
    browser.sees("#lock", "Unlock actions").await;
    let shown =
        "return [document.getElementById('ask').open, !document.getElementById('loglevel').hidden]";
    assert_eq!(browser.run(shown, json!([])).await, json!([false, false]));
}
