//! What can be done to a queue, in any order.

use proptest::prelude::*;

use super::*;

/// The numbers of the adds that were merged.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Ids(pub(super) Vec<u32>);

impl Merge for Ids {
    fn merge(&mut self, later: Self) {
        self.0.extend(later.0);
    }
}

#[derive(Clone, Debug)]
pub(super) enum Op {
    Add(u8, Lane),
    Start,
    Finish(prop::sample::Index, Verdict),
    /// A report on a run that has ended already.
    Stray(prop::sample::Index, u8),
    Due(u8),
    Adopt(u8),
    Unpark(u8),
    WakeParked(u64),
    Promote(u8, Lane),
    Remove(u8),
    Renew(u8, Lane),
    /// A time so many milliseconds away, or ago where it is below a second.
    Schedule(u8, Lane, u64, When),
    Cancel(u8),
    Hold(prop::sample::Index),
    Free(u8),
    Clear,
    Advance(u64),
}

pub(super) fn ops() -> impl Strategy<Value = Vec<Op>> {
    let key = || 0..5_u8;
    let lane = || prop::sample::select(&Lane::ALL);
    let delay = || (0..4000_u64).prop_map(|n| ms(n.saturating_sub(1000)));
    let verdict = prop_oneof![
        2 => Just(Verdict::Done),
        1 => delay().prop_map(Verdict::RequeueAfter),
        1 => delay().prop_map(|delay| Verdict::Again { delay }),
        1 => delay().prop_map(|delay| Verdict::Lost { delay }),
        1 => delay().prop_map(|delay| Verdict::NotReady { delay }),
        1 => delay().prop_map(|delay| Verdict::Backoff { delay, fault: Fault::Infrastructure }),
        1 => delay().prop_map(failed),
        1 => Just(Verdict::Park("broken".into())),
    ];
    let when = || prop::sample::select(&[When::Earliest, When::Latest, When::Replace]);
    let op = prop_oneof![
        8 => (key(), lane()).prop_map(|(key, lane)| Op::Add(key, lane)),
        6 => Just(Op::Start),
        6 => (any::<prop::sample::Index>(), verdict).prop_map(|(run, verdict)| Op::Finish(run, verdict)),
        1 => (any::<prop::sample::Index>(), key()).prop_map(|(run, key)| Op::Stray(run, key)),
        3 => key().prop_map(Op::Due),
        1 => key().prop_map(Op::Adopt),
        1 => key().prop_map(Op::Unpark),
        1 => (0..20_000_u64).prop_map(Op::WakeParked),
        1 => (key(), lane()).prop_map(|(key, lane)| Op::Promote(key, lane)),
        1 => key().prop_map(Op::Remove),
        2 => (key(), lane()).prop_map(|(key, lane)| Op::Renew(key, lane)),
        3 => (key(), lane(), 0..8000_u64, when()).prop_map(|(key, lane, at, when)| Op::Schedule(key, lane, at, when)),
        1 => key().prop_map(Op::Cancel),
        2 => any::<prop::sample::Index>().prop_map(Op::Hold),
        3 => key().prop_map(Op::Free),
        1 => prop::bool::weighted(0.2).prop_map(|clear| if clear { Op::Clear } else { Op::Start }),
        4 => prop_oneof![0..3000_u64, 9000..40_000_u64].prop_map(Op::Advance),
    ];
    prop::collection::vec(op, 1..120)
}
