use super::*;

mod model;

const SECOND: Duration = Duration::from_secs(1);

fn at(seconds: u64) -> Boot {
    Duration::from_secs(1_000 + seconds)
}

fn elector(name: &str) -> Elector {
    Elector::new(LeaseTerms::default(), name.to_owned())
}

fn lease(holder: &str, renewed: i64) -> Box<Lease> {
    Box::new(Lease {
        spec: Some(LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: Some(15),
            lease_transitions: Some(3),
            renew_time: Some(MicroTime(Timestamp::from_second(renewed).unwrap())),
            ..LeaseSpec::default()
        }),
        ..Lease::default()
    })
}

fn step(elector: &mut Elector, now: Boot) -> Step {
    elector.step(now, Timestamp::UNIX_EPOCH, 0).0
}

/// What is written next, at once.
fn written(elector: &mut Elector, now: Boot) -> Box<Lease> {
    match step(elector, now) {
        Step::Write(lease, _) => lease,
        other => panic!("expected a write, not {other:?}"),
    }
}

fn leader(now: Boot) -> Elector {
    let mut elector = elector("we");
    assert_eq!(elector.read(Answer::Absent, now, 0.0), []);
    let lease = written(&mut elector, now);
    let changes = elector.wrote(Answer::Lease(lease), now, now, 0.0);
    assert_eq!(changes, [Change::Holder(Some("we".into())), Change::Gained]);
    elector
}

#[test]
fn a_lease_that_does_not_exist_is_made() {
    let mut elector = elector("we");
    assert!(matches!(step(&mut elector, at(0)), Step::Read(_)));
    elector.read(Answer::Absent, at(0), 0.0);
    let spec = written(&mut elector, at(0)).spec.unwrap();
    assert_eq!(spec.holder_identity.as_deref(), Some("we"));
    assert_eq!(spec.lease_duration_seconds, Some(15));
    assert_eq!(spec.lease_transitions, Some(0));
    assert_eq!(spec.acquire_time, spec.renew_time);
}

#[test]
fn a_lease_is_vacant_while_nobody_is_known_to_lead_and_not_before_it_was_read() {
    let mut standby = elector("we");
    assert!(!standby.vacant(at(0)), "not read yet");
    standby.read(Answer::Lease(lease("rival", 0)), at(0), 0.0);
    assert!(!standby.vacant(at(14)));
    // nothing was heard of the rival since
    standby.read(Answer::Failed("no route".into()), at(14), 0.0);
    assert!(standby.vacant(at(15)));
    standby.read(Answer::Lease(lease("rival", 1)), at(16), 0.0);
    assert!(!standby.vacant(at(16)), "it lives");

    let mut leader = leader(at(20));
    assert!(!leader.vacant(at(21)));
    step(&mut leader, at(40));
    assert!(leader.vacant(at(40)), "not renewed in time");
    leader.read(Answer::Lease(lease("", 1)), at(41), 0.0);
    assert!(leader.vacant(at(41)), "nobody's");
    leader.resign();
    assert!(!leader.vacant(at(42)), "who has resigned looks no more");
}

#[test]
fn times_written_in_a_lease_are_not_compared() {
    for written in [0, 4_000_000_000] {
        let mut elector = elector("we");
        elector.read(Answer::Lease(lease("rival", written)), at(0), 0.0);
        assert!(matches!(step(&mut elector, at(0)), Step::Wait(_)));
        // looked at again and again, and never changed
        elector.read(Answer::Lease(lease("rival", written)), at(14), 1.0);
        assert!(matches!(step(&mut elector, at(14)), Step::Wait(until) if until > at(15)));
        elector.read(Answer::Lease(lease("rival", written)), at(15), 1.0);
        assert!(matches!(step(&mut elector, at(15)), Step::Write(..)));
    }
}

#[test]
fn a_lease_that_was_renewed_is_left_alone_for_its_whole_duration_again() {
    let mut elector = elector("we");
    elector.read(Answer::Lease(lease("rival", 1)), at(0), 0.0);
    elector.read(Answer::Lease(lease("rival", 2)), at(14), 0.0);
    elector.read(Answer::Lease(lease("rival", 2)), at(28), 0.0);
    assert!(matches!(step(&mut elector, at(28)), Step::Wait(_)));
    elector.read(Answer::Lease(lease("rival", 2)), at(29), 0.0);
    assert!(matches!(step(&mut elector, at(29)), Step::Write(..)));
}

#[test]
fn the_duration_that_counts_is_the_one_its_holder_wrote() {
    let mut theirs = lease("rival", 1);
    theirs.spec.as_mut().unwrap().lease_duration_seconds = Some(60);
    let mut elector = elector("we");
    elector.read(Answer::Lease(theirs.clone()), at(0), 0.0);
    elector.read(Answer::Lease(theirs.clone()), at(59), 0.0);
    assert!(matches!(step(&mut elector, at(59)), Step::Wait(_)));
    elector.read(Answer::Lease(theirs), at(60), 0.0);
    assert!(matches!(step(&mut elector, at(60)), Step::Write(..)));
}

#[test]
fn what_others_wrote_into_a_lease_besides_stays() {
    let mut theirs = lease("", 1);
    theirs.spec.as_mut().unwrap().strategy = Some("OldestEmulationVersion".into());
    theirs.metadata.labels = Some([("team".to_owned(), "shop".to_owned())].into());
    let mut elector = elector("we");
    elector.read(Answer::Lease(theirs.clone()), at(0), 0.0);
    let ours = written(&mut elector, at(0));
    assert_eq!(ours.metadata, theirs.metadata);
    let spec = ours.spec.unwrap();
    assert_eq!(spec.strategy.as_deref(), Some("OldestEmulationVersion"));
    assert_eq!(spec.lease_transitions, Some(4), "taken over");
}

#[test]
fn the_fence_counts_from_the_sending_of_a_renewal() {
    let mut elector = leader(at(0));
    assert_eq!(elector.fence(), Some(at(0) + Duration::from_millis(13_500)));
    let lease = written(&mut elector, at(2));
    elector.wrote(Answer::Lease(lease), at(2), at(6), 0.0);
    assert_eq!(elector.fence(), Some(at(2) + Duration::from_millis(13_500)));
}

#[test]
fn a_renewal_keeps_the_time_and_the_number_of_the_acquisition() {
    let mut elector = leader(at(0));
    let first = elector.seen.clone().unwrap().lease.spec.unwrap();
    let (next, _) = elector.step(at(2), Timestamp::from_second(7).unwrap(), 0);
    let Step::Write(lease, _) = next else {
        panic!("{next:?}")
    };
    let spec = lease.spec.unwrap();
    assert_eq!(spec.acquire_time, first.acquire_time);
    assert_eq!(spec.lease_transitions, first.lease_transitions);
    assert_ne!(spec.renew_time, first.renew_time);
}

#[test]
fn a_leader_that_cannot_renew_by_the_deadline_leads_no_more_and_campaigns() {
    let mut elector = leader(at(0));
    let mut now = at(2);
    while elector.leads() {
        match elector.step(now, Timestamp::UNIX_EPOCH, 0) {
            (Step::Read(within) | Step::Write(_, within), None) => {
                assert!(
                    within <= 5 * SECOND,
                    "one request would use up the deadline"
                );
                now += within;
                let failed = Answer::Failed("no answer".into());
                elector.wrote(failed, now - within, now, 0.0);
            }
            (Step::Wait(until), None) => now = until,
            (_, Some(Change::Lost(why))) => assert!(why.contains("10s"), "{why}"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(now, at(10));
    assert!(elector.fence().is_none());
    assert!(matches!(step(&mut elector, now), Step::Read(_)));
}

#[test]
fn who_reads_that_another_leads_is_demoted_whatever_its_clock_says() {
    let mut elector = leader(at(0));
    elector.wrote(Answer::Conflict, at(2), at(2), 0.0);
    assert!(matches!(step(&mut elector, at(2)), Step::Read(_)));
    let changes = elector.read(Answer::Lease(lease("rival", 1)), at(2), 0.0);
    assert_eq!(changes[0], Change::Lost("rival holds the lease".into()));
    assert!(!elector.leads());
}

#[test]
fn a_conflict_that_was_our_own_lost_answer_costs_nothing() {
    let mut elector = leader(at(0));
    let lease = written(&mut elector, at(2));
    elector.wrote(Answer::Failed("no answer".into()), at(2), at(3), 0.0);
    assert!(matches!(step(&mut elector, at(4)), Step::Read(_)));
    assert_eq!(elector.read(Answer::Lease(lease), at(4), 0.0), []);
    assert_eq!(elector.slow, 1);
    assert!(elector.leads());
    let again = written(&mut elector, at(4));
    elector.wrote(Answer::Lease(again), at(4), at(4), 0.0);
    assert_eq!(elector.renewed(), Some(at(4)));
}

#[test]
fn a_lease_deleted_by_hand_is_made_anew_by_its_leader() {
    let mut elector = leader(at(0));
    elector.wrote(Answer::Absent, at(2), at(2), 0.0);
    elector.read(Answer::Absent, at(2), 0.0);
    let lease = written(&mut elector, at(2));
    assert_eq!(lease.metadata.resource_version, None);
    assert!(elector.leads());
    // unless another was faster
    elector.wrote(Answer::Conflict, at(2), at(2), 0.0);
    elector.read(Answer::Lease(self::lease("rival", 1)), at(2), 0.0);
    assert!(!elector.leads());
}

#[test]
fn a_lease_deleted_by_hand_is_left_to_its_holder_for_as_long_as_it_would_have_lasted() {
    let mut standby = elector("we");
    standby.read(Answer::Lease(lease("they", 1)), at(0), 0.0);
    // it may have been renewed the moment before
    standby.read(Answer::Absent, at(14), 0.0);
    assert!(matches!(step(&mut standby, at(14)), Step::Wait(_)));
    standby.read(Answer::Absent, at(28), 0.0);
    assert!(matches!(step(&mut standby, at(28)), Step::Wait(_)));
    standby.read(Answer::Absent, at(29), 0.0);
    assert!(matches!(step(&mut standby, at(29)), Step::Write(..)));
    // made anew by its holder it is as any other
    standby.read(Answer::Lease(lease("they", 2)), at(30), 0.0);
    assert!(matches!(step(&mut standby, at(44)), Step::Read(_)));
    standby.read(Answer::Lease(lease("they", 2)), at(45), 0.0);
    assert!(matches!(step(&mut standby, at(45)), Step::Write(..)));
}

#[test]
fn a_lease_is_given_back_only_if_it_is_still_ours_when_it_is_read_again() {
    let mut elector = leader(at(0));
    elector.resign();
    assert_eq!(elector.fence(), None);
    assert!(matches!(step(&mut elector, at(1)), Step::Read(_)));
    elector.read(Answer::Lease(lease("rival", 1)), at(1), 0.0);
    assert_eq!(step(&mut elector, at(1)), Step::Rest);
}

#[test]
fn a_rival_that_takes_the_lease_while_it_is_given_back_keeps_it() {
    let mut elector = leader(at(0));
    elector.resign();
    let ours = elector.seen.clone().unwrap().lease;
    elector.read(Answer::Lease(ours), at(1), 0.0);
    let blank = written(&mut elector, at(1));
    assert_eq!(blank.spec.unwrap().holder_identity.as_deref(), Some(""));
    elector.wrote(Answer::Conflict, at(1), at(1), 0.0);
    elector.read(Answer::Lease(lease("rival", 1)), at(1), 0.0);
    assert_eq!(step(&mut elector, at(1)), Step::Rest);
}

#[test]
fn a_renewal_that_is_on_its_way_when_we_resign_is_not_taken_for_the_giving_back() {
    let mut elector = leader(at(0));
    let renewal = written(&mut elector, at(2));
    elector.resign();
    elector.wrote(Answer::Lease(renewal.clone()), at(2), at(3), 0.0);
    assert!(matches!(step(&mut elector, at(3)), Step::Read(_)));
    elector.read(Answer::Lease(renewal), at(3), 0.0);
    let blank = written(&mut elector, at(3));
    assert_eq!(holder(blank.spec.as_ref().unwrap()), None);
    elector.wrote(Answer::Lease(blank), at(3), at(3), 0.0);
    assert_eq!(step(&mut elector, at(3)), Step::Rest);
}

#[test]
fn a_claim_whose_answer_did_not_come_is_given_back_if_it_was_granted() {
    for resigns_before_the_answer in [true, false] {
        let mut elector = elector("we");
        elector.read(Answer::Lease(lease("", 1)), at(0), 0.0);
        let claim = written(&mut elector, at(0));
        if resigns_before_the_answer {
            elector.resign();
        }
        elector.wrote(Answer::Failed("no answer".into()), at(0), at(5), 0.0);
        elector.resign();
        assert!(matches!(step(&mut elector, at(5)), Step::Read(_)));
        elector.read(Answer::Lease(claim), at(5), 0.0);
        let blank = written(&mut elector, at(5));
        assert_eq!(holder(blank.spec.as_ref().unwrap()), None);
    }
}

#[test]
fn who_never_led_gives_nothing_back() {
    let mut elector = elector("we");
    elector.read(Answer::Lease(lease("rival", 1)), at(0), 0.0);
    elector.resign();
    assert_eq!(step(&mut elector, at(0)), Step::Rest);
}

#[test]
fn a_lease_nobody_holds_is_taken_at_once() {
    let mut elector = elector("we");
    elector.read(Answer::Lease(lease("", 1)), at(0), 0.0);
    assert!(matches!(step(&mut elector, at(0)), Step::Write(..)));
}

#[test]
fn who_gave_the_lease_back_and_begins_again_is_a_candidate() {
    let mut elector = leader(at(0));
    elector.resign();
    elector.interrupted();
    assert!(!elector.leads());
    elector.read(Answer::Lease(lease("", 1)), at(1), 0.0);
    assert!(matches!(step(&mut elector, at(1)), Step::Write(..)));
}

#[test]
fn who_leads_others_leaves_a_free_lease_to_those_who_lead_fewer_for_a_retry_period_each() {
    for (load, periods) in [(0, 0), (1, 1), (2, 2), (3, 3), (10, 3)] {
        let mut elector = elector("we");
        let mut now = at(0);
        let claimed = loop {
            elector.read(Answer::Lease(lease("", 1)), now, 0.0);
            match elector.step(now, Timestamp::UNIX_EPOCH, load).0 {
                Step::Wait(until) => now = until,
                Step::Write(..) => break now,
                other => panic!("{other:?}"),
            }
            // what became of the lease meanwhile is looked at
            assert!(matches!(step(&mut elector, now), Step::Read(_)));
        };
        assert_eq!(claimed - at(0), periods * 2 * SECOND, "of {load} others");
    }
}

#[test]
fn a_lease_that_another_held_meanwhile_is_left_to_others_once_more() {
    let mut elector = elector("we");
    let left = |elector: &mut Elector, now: Boot| {
        elector.read(Answer::Lease(lease("", 1)), now, 0.0);
        matches!(elector.step(now, Timestamp::UNIX_EPOCH, 1).0, Step::Wait(_))
    };
    assert!(left(&mut elector, at(0)) && left(&mut elector, at(1)));
    elector.read(Answer::Lease(lease("rival", 2)), at(2), 0.0);
    assert!(left(&mut elector, at(3)) && left(&mut elector, at(4)));
    assert!(!left(&mut elector, at(5)));
}

#[test]
fn a_leader_renews_however_much_it_leads() {
    let mut elector = leader(at(0));
    assert!(matches!(
        elector.step(at(2), Timestamp::UNIX_EPOCH, 9).0,
        Step::Write(..)
    ));
}

#[test]
fn terms_that_contradict_each_other_are_refused() {
    let default = LeaseTerms::default();
    assert_eq!(default.validate(), Ok(default));
    for (duration, deadline, retry) in [
        (15.0, 13.5, 2.0),
        (15.0, 10.0, 8.4),
        (1.5, 1.0, 0.2),
        (0.0, 0.0, 0.0),
        (15.0, 10.0, 0.0),
    ] {
        let terms = LeaseTerms {
            duration: Duration::from_secs_f64(duration),
            deadline: Duration::from_secs_f64(deadline),
            retry: Duration::from_secs_f64(retry),
        };
        assert!(terms.validate().is_err(), "{terms:?}");
    }
}
