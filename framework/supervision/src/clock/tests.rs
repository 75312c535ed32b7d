use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, SystemTime};

use futures::poll;

use super::{Alarm, Clock};
use crate::testing::run;

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn under_a_paused_clock_hours_pass_at_once_on_all_three_dials() {
    run(1, async |options| {
        let clock = options.clock;
        let (now, wall, boot) = (clock.now(), clock.wall(), clock.boot());
        clock.sleep(HOUR).await;
        assert_eq!(clock.now() - now, HOUR);
        assert_eq!(clock.boot() - boot, HOUR);
        assert_eq!(clock.wall(), wall + HOUR);
    });
}

#[test]
fn a_sleep_of_nothing_does_not_even_yield() {
    run(1, async |options| {
        let clock = options.clock;
        assert_eq!(poll!(pin!(clock.sleep(Duration::ZERO))), Poll::Ready(()));
        assert_eq!(poll!(pin!(clock.sleep_until(clock.now()))), Poll::Ready(()));
        assert_eq!(
            poll!(pin!(clock.sleep(Duration::from_nanos(1)))),
            Poll::Pending
        );
    });
}

#[test]
fn an_alarm_can_be_moved_both_ways_and_taken_back() {
    run(1, async |options| {
        let clock = options.clock;
        let start = clock.now();
        let mut alarm = Alarm::default();
        for due in [start + HOUR, start + HOUR / 2] {
            assert!(
                poll_fn(|cx| Poll::Ready(alarm.poll(Some(due), cx)))
                    .await
                    .is_pending()
            );
        }
        poll_fn(|cx| alarm.poll(Some(start + HOUR / 2), cx)).await;
        assert_eq!(clock.now() - start, HOUR / 2);
        poll_fn(|cx| alarm.poll(Some(start + 3 * HOUR), cx)).await;
        assert_eq!(clock.now() - start, 3 * HOUR);
        assert!(
            poll_fn(|cx| Poll::Ready(alarm.poll(None, cx)))
                .await
                .is_pending()
        );
    });
}

#[test]
fn the_system_clock_agrees_with_itself() {
    let clock = Clock::system();
    let (now, boot) = (clock.now(), clock.boot());
    assert!(clock.now() >= now);
    assert!(clock.boot() >= boot);
    assert!(boot > Duration::ZERO);
    assert!(clock.wall() > SystemTime::UNIX_EPOCH + HOUR * 24 * 365 * 50);
}
