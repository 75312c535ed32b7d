use super::Status;
use std::time::Duration;

#[test]
fn a_status_is_read_with_the_delay_it_asks_for() {
    let body = br#"{"kind":"Status","code":429,"reason":"TooManyRequests","message":"slow down","details":{"retryAfterSeconds":7}}"#;
    let status = Status::parse(429, None, body);
    assert_eq!(
        (status.code, status.retry_after),
        (429, Some(Duration::from_secs(7)))
    );
    assert_eq!(
        status.to_string(),
        "the server answered 429: TooManyRequests: slow down"
    );
    assert_eq!(
        Status::parse(429, Some(Duration::from_secs(3)), body).retry_after,
        Some(Duration::from_secs(3))
    );
}

#[test]
fn a_version_that_is_too_large_is_known_by_cause_and_by_the_words_of_old_servers() {
    let cause = br#"{"code":504,"reason":"Timeout","message":"x","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}"#;
    let words = br#"{"code":504,"reason":"Timeout","message":"Timeout: Too large resource version: 9, current: 8"}"#;
    assert!(Status::parse(504, None, cause).too_large);
    assert!(Status::parse(504, None, words).too_large);
    assert!(
        !Status::parse(
            504,
            None,
            br#"{"code":504,"reason":"Timeout","message":"etcd"}"#
        )
        .too_large
    );
}

#[test]
fn a_page_of_a_proxy_is_known_by_its_http_code() {
    let status = Status::parse(502, None, b"<html>bad gateway</html>");
    assert_eq!((status.code, status.reason.as_str()), (502, ""));
    assert!(Status::parse(410, None, b"").is_expired());
}
