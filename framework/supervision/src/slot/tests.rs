use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::fut::wrap_future;
use actix::{Actor, ActorContext, AsyncContext, Handler, Message};

use crate::stats::lock;
use crate::testing::{assert_clean, run};
use crate::{
    Address, ChildSpec, Context, Failure, Link, Loan, Mailbox, Slot, SlotError, Strategy,
    SupervisorSpec, Tree, TreeOptions, supervised,
};

const MILLI: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

/// How an incarnation ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    PanicInMake,
    FailInMake,
    PanicInStarted,
    PanicInHandler,
    PanicInFuture,
    PanicInAnotherFuture,
    PanicInStopped,
    Stop,
    Fail,
    Kill,
    Last,
}

/// Writes the number of each of its incarnations into what it has borrowed.
struct Keeper {
    loan: Option<Loan<Vec<u32>>>,
    end: End,
}
impl Actor for Keeper {
    type Context = Context<Self>;
    fn started(&mut self, _: &mut Context<Self>) {
        assert!(self.end != End::PanicInStarted, "started badly");
    }
    fn stopped(&mut self, _: &mut Context<Self>) {
        assert!(self.end != End::PanicInStopped, "stopped badly");
    }
}
supervised!(Keeper);

struct Finish;
impl Message for Finish {
    type Result = ();
}
impl Handler<Finish> for Keeper {
    type Result = ();
    fn handle(&mut self, _: Finish, ctx: &mut Context<Self>) {
        match self.end {
            End::PanicInHandler => panic!("handled badly"),
            End::PanicInFuture => {
                let loan = self.loan.take();
                ctx.spawn(wrap_future(async move {
                    let _loan = loan;
                    panic!("went on badly");
                }));
            }
            End::PanicInAnotherFuture => {
                let loan = self.loan.take();
                ctx.run_later(HOUR, move |_, _| drop(loan));
                ctx.spawn(wrap_future(async { panic!("went on badly") }));
            }
            End::PanicInStopped | End::Stop => ctx.stop(),
            End::Fail => ctx.fail(Failure::transient("no route")),
            End::Kill | End::Last => {}
            End::PanicInMake | End::FailInMake | End::PanicInStarted => {
                unreachable!("it never got so far")
            }
        }
    }
}

struct Rig {
    tree: Tree,
    address: Address<Keeper>,
    slot: Slot<Vec<u32>>,
    /// What each borrower heard of the one before.
    marks: Arc<Mutex<Vec<bool>>>,
}

async fn rig(ends: &'static [End], options: &TreeOptions) -> Rig {
    let root = SupervisorSpec::new("root", Strategy::OneForOne).without_intensity();
    let tree = Tree::start(root, options.clone()).await.unwrap();
    let (mailbox, slot) = (Mailbox::new(), Slot::new(vec![]));
    let marks = Arc::<Mutex<Vec<_>>>::default();
    let address = mailbox.address();
    let (lender, heard) = (slot.clone(), Arc::clone(&marks));
    let make = move |link: &Link| {
        let mut loan = lender.lend().map_err(Failure::fatal)?;
        let end = ends[link.incarnation() as usize - 1];
        loan.push(link.incarnation());
        lock(&heard).push(loan.after_crash());
        match end {
            End::PanicInMake => panic!("made badly"),
            End::FailInMake => Err(Failure::transient("not yet")),
            _ => Ok(Keeper {
                loan: Some(loan),
                end,
            }),
        }
    };
    tree.add_child("root", ChildSpec::try_actor("a", mailbox, make))
        .await
        .unwrap();
    Rig {
        tree,
        address,
        slot,
        marks,
    }
}

#[test]
fn a_slot_outlives_every_way_to_die_and_tells_the_next_borrower_of_crashes_only() {
    // in pairs: how an incarnation ends, and whether the one after it hears of a crash
    const LIVES: [(End, bool); 11] = [
        (End::PanicInHandler, true),
        // never got an actor, so what it was to look for is still there
        (End::FailInMake, true),
        (End::PanicInMake, true),
        (End::PanicInStarted, true),
        (End::Stop, false),
        (End::FailInMake, false),
        (End::PanicInFuture, true),
        (End::Kill, false),
        (End::PanicInAnotherFuture, true),
        (End::Fail, false),
        (End::PanicInStopped, true),
    ];
    const ENDS: [End; 12] = {
        let mut ends = [End::Last; 12];
        let mut i = 0;
        while i < LIVES.len() {
            ends[i] = LIVES[i].0;
            i += 1;
        }
        ends
    };

    run(1, async |options| {
        let rig = rig(&ENDS, &options).await;
        for end in ENDS {
            if let End::FailInMake | End::PanicInMake | End::PanicInStarted = end {
                continue;
            }
            let _ = rig.address.ask(Finish).await;
            if end == End::Kill {
                assert!(rig.tree.root_node().find("root/a").unwrap().kill());
            }
            options.clock.sleep(MILLI).await;
            let back = rig.slot.peek(|lives| lives.len()).is_ok();
            assert_eq!(back, end != End::Last, "{end:?}: back before the backoff");
        }
        let heard = lock(&rig.marks).clone();
        let expected = LIVES.map(|(_, crashed)| crashed);
        assert_eq!((heard[0], &heard[1..]), (false, &expected[..]));

        let observer = rig.tree.observer();
        rig.tree.stop(HOUR).await.unwrap();
        assert_clean(&observer);
        assert_eq!(rig.slot.take(), Ok((1..=12).collect()));
    });
}

#[test]
fn a_slot_lends_to_one_at_a_time() {
    let slot = Slot::new(7);
    let mut loan = slot.lend().unwrap();
    assert_eq!(slot.lend().unwrap_err(), SlotError::Lent);
    assert_eq!(slot.clone().peek(|n| *n), Err(SlotError::Lent));
    assert_eq!(slot.take(), Err(SlotError::Lent));
    *loan += 1;
    drop(loan);
    assert_eq!(slot.peek(|n| *n), Ok(8));
    assert_eq!(*slot.lend().unwrap(), 8);
}

#[test]
fn an_emptied_slot_lends_nothing_any_more() {
    let slot = Slot::new(7);
    assert_eq!(slot.take(), Ok(7));
    assert_eq!(slot.lend().unwrap_err(), SlotError::Taken);
    assert_eq!(slot.peek(|n| *n), Err(SlotError::Taken));
    assert_eq!(slot.take(), Err(SlotError::Taken));
}

#[test]
fn an_incarnation_that_finds_its_slot_lent_waits_for_it_through_its_backoff() {
    run(1, async |options| {
        let rig = rig(&[End::Last], &options).await;
        let (lender, mailbox) = (rig.slot.clone(), Mailbox::new());
        let address: Address<Keeper> = mailbox.address();
        let busy = lender.clone();
        let spec = ChildSpec::try_actor("b", mailbox, move |link| {
            let loan = match link.incarnation() {
                1 => None,
                _ => Some(busy.lend().map_err(Failure::transient)?),
            };
            let end = End::Stop;
            Ok(Keeper { loan, end })
        });
        rig.tree.add_child("root", spec).await.unwrap();
        address.ask(Finish).await.unwrap();
        options.clock.sleep(10 * 1000 * MILLI).await;
        let node = rig.tree.snapshot().find("root/b").unwrap().clone();
        let lent = Failure::transient(SlotError::Lent).into();
        assert_eq!(node.last_exit, Some(lent));

        rig.tree.stop_child("root/a").await.unwrap();
        address.ask(Finish).await.unwrap();
        assert_eq!(lender.lend().unwrap()[..], [1]);
        rig.tree.stop(HOUR).await.unwrap();
    });
}
