use super::*;

fn of(method: &str, uri: &str) -> Option<Target> {
    let request = Request::builder().method(method).uri(uri);
    target(&request.body(Body::empty()).expect("a request"))
}

fn parts(group: &str, plural: &str, rest: [&str; 3]) -> Option<Target> {
    let [namespace, name, subresource] =
        rest.map(|part| (!part.is_empty()).then(|| part.to_owned()));
    Some(Target {
        group: group.to_owned(),
        plural: plural.to_owned(),
        namespace,
        name,
        subresource,
    })
}

#[test]
fn what_a_request_writes_to_is_read_from_its_path_as_the_server_reads_it() {
    let maps = "/api/v1/namespaces/shop/configmaps";
    assert_eq!(of("POST", maps), parts("", "configmaps", ["shop", "", ""]));
    let one = format!("{maps}/a?x=y");
    assert_eq!(
        of("DELETE", &one),
        parts("", "configmaps", ["shop", "a", ""])
    );
    let scale = "/apis/apps/v1/namespaces/shop/deployments/web/scale?fieldManager=me";
    let web = parts("apps", "deployments", ["shop", "web", "scale"]);
    assert_eq!(of("PATCH", scale), web);
    let crane = parts("a.io", "cranes", ["", "big", ""]);
    assert_eq!(of("PUT", "/apis/a.io/v1/cranes/big"), crane);
    let shop = "/api/v1/namespaces/shop";
    assert_eq!(of("PUT", shop), parts("", "namespaces", ["", "shop", ""]));
    let finalize = parts("", "namespaces", ["", "shop", "finalize"]);
    assert_eq!(of("PUT", &format!("{shop}/finalize")), finalize);
    let evict = parts("", "pods", ["shop", "a", "eviction"]);
    assert_eq!(of("POST", &format!("{shop}/pods/a/eviction")), evict);
}

#[test]
fn reads_dry_runs_and_requests_that_write_nothing_leave_nothing_to_wait_for() {
    let shop = "/api/v1/namespaces/shop";
    assert_eq!(of("GET", &format!("{shop}/configmaps/a")), None);
    assert_eq!(of("POST", &format!("{shop}/configmaps?dryRun=All")), None);
    assert_eq!(of("POST", &format!("{shop}/pods/a/exec?command=ls")), None);
    assert_eq!(of("POST", &format!("{shop}/serviceaccounts/a/token")), None);
    assert_eq!(of("POST", "/version"), None);
    assert_eq!(of("POST", "/"), None);
}
