use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use super::{Control, Order, Orders};

#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn take(control: &Control) -> Orders {
    control.take(Waker::noop())
}

#[test]
fn an_order_is_read_once_and_wakes_the_reader() {
    let (control, bell) = (Control::default(), Arc::new(Bell::default()));
    let waker = Waker::from(Arc::clone(&bell));
    assert_eq!(control.take(&waker), Orders::default());
    assert!(control.order(Order::Stop));
    assert_eq!(bell.0.load(Ordering::Relaxed), 1);
    assert_eq!(
        control.take(&waker),
        Orders {
            stop: true,
            ..Orders::default()
        }
    );
    assert_eq!(control.take(&waker), Orders::default());
}

#[test]
fn a_restart_takes_back_a_stop_that_came_too_late() {
    let control = Control::default();
    control.order(Order::Stop);
    control.order(Order::Kill);
    control.order(Order::Restart);
    assert_eq!(
        take(&control),
        Orders {
            restart: true,
            ..Orders::default()
        }
    );
}

#[test]
fn a_stop_after_a_restart_stands() {
    let control = Control::default();
    control.order(Order::Restart);
    control.order(Order::Stop);
    assert_eq!(
        take(&control),
        Orders {
            restart: true,
            stop: true,
            ..Orders::default()
        }
    );
}

#[test]
fn a_release_stays() {
    let control = Control::default();
    control.order(Order::Release);
    assert!(take(&control).release);
    control.order(Order::Restart);
    assert!(take(&control).release);
    assert!(control.released());
}

#[test]
fn orders_to_an_ended_task_are_refused() {
    let control = Control::default();
    control.close();
    assert!(!control.order(Order::Restart));
}
