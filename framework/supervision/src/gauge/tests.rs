use super::Gauge;

#[test]
fn what_waits_is_what_was_counted_in_and_neither_taken_nor_refused() {
    let gauge = Gauge::default();
    for _ in 0..3 {
        gauge.enter();
    }
    gauge.take(true);
    gauge.enter();
    gauge.withdraw();
    assert_eq!((gauge.depth(), gauge.high_water()), (2, 3));
    assert_eq!(gauge.handled(), 1);
}

#[test]
fn a_message_that_nobody_counted_in_is_handled_without_having_waited() {
    let gauge = Gauge::default();
    gauge.enter();
    gauge.take(false);
    assert_eq!((gauge.depth(), gauge.handled()), (1, 1));
    gauge.take(true);
    assert_eq!((gauge.depth(), gauge.handled()), (0, 2));
}
