//! Replicas as processes that are killed, stand still and are replaced. Who wrote what, and who held the lease then, is read from what the server
//! recorded: the order of its versions judges, not the time anything took.

use std::time::Duration;

use boatswain::Clock;
use boatswain_supervision::Entropy;
use boatswain_tests::{
    Load, Program, Replica, Space, World,
    audit::Request,
    eventually,
    judge::{Reigns, trespasses, work},
};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

const LEASE: &str = "podautoscaler-leader";
/// A standby looks every 0.6 to 0.8 retry periods, here of half a second, at a lease of three: this often while it runs out, and at both ends.
const LOOKS: usize = 10 + 3;

fn program(world: &World, space: &Space) -> Program {
    Program::new(env!("CARGO_BIN_EXE_replica"), world, space)
}

async fn space(world: &World, name: &str) -> Space {
    Space::create(&world.client().await, name).await
}

fn leases(client: &Client, space: &Space) -> Api<Lease> {
    Api::namespaced(client.clone(), &space.name)
}

/// Who holds the lease, by the user.
async fn holder(space: &Space) -> Result<String, String> {
    let lease = leases(space.client(), space).get(LEASE).await;
    let spec = lease.map_err(|error| error.to_string())?.spec;
    let identity = spec
        .and_then(|spec| spec.holder_identity)
        .unwrap_or_default();
    Ok(identity.split('_').next().unwrap_or_default().to_owned())
}

/// Waits until a replica other than `former` holds the lease.
async fn led_by_another(space: &Space, former: &str) -> String {
    eventually("a replica leads", async || {
        let holder = holder(space).await?;
        if holder.starts_with("replica-") && holder != former {
            Ok(holder)
        } else {
            Err(format!("{holder:?} holds the lease"))
        }
    })
    .await
}

fn called<'a>(replicas: &'a [Replica], user: &str) -> &'a Replica {
    let found = replicas.iter().find(|replica| replica.user() == user);
    found.expect("one of them")
}

/// Waits until `user` has written something as the holder of its present reign.
async fn works(world: &World, space: &Space, user: &str) {
    eventually(&format!("{user} works"), async || {
        let requests = world.requests().await;
        let reigns = Reigns::of(&requests, &space.name, LEASE).list();
        let Some((since, _)) = reigns.last().filter(|(_, holder)| holder == user) else {
            return Err(format!("{user} does not lead: {reigns:?}"));
        };
        let wrote = work(&requests, &space.name)
            .any(|r| r.user == user && r.version().is_some_and(|version| version > *since));
        if wrote {
            Ok(())
        } else {
            Err("it has written nothing yet".to_owned())
        }
    })
    .await;
}

/// How often `user` has looked at the lease.
async fn looks(world: &World, space: &Space, user: &str) -> usize {
    let requests = world.requests().await;
    requests.iter().filter(|r| is_look(r, space, user)).count()
}

fn is_look(request: &Request, space: &Space, user: &str) -> bool {
    request.resource == "leases"
        && request.namespace == space.name
        && request.verb == "get"
        && request.user == user
}

/// Waits until `user` has looked at the lease twice more: it knows who holds it, and has had time for whatever it was at.
async fn looks_again(world: &World, space: &Space, user: &str) {
    let before = looks(world, space, user).await;
    eventually(&format!("{user} looks at the lease"), async || {
        let now = looks(world, space, user).await;
        if now > before + 1 { Ok(()) } else { Err(now) }
    })
    .await;
}

async fn assert_nobody_wrote_while_another_led(world: &World, space: &Space) {
    let requests = world.requests().await;
    let found = trespasses(&requests, &space.name, LEASE);
    assert!(found.is_empty(), "{found:#?}");
}

pub(crate) async fn a_leader_that_is_killed_is_followed_by_the_first_look_after_its_lease(
    world: &World,
) {
    let space = space(world, "killed").await;
    let program = program(world, &space);
    let mut replicas: Vec<_> = (1..=3).map(|number| program.start(number)).collect();
    let load = Load::begin(&space, 8, Duration::from_millis(50)).await;
    let first = led_by_another(&space, "").await;
    works(world, &space, &first).await;
    for replica in replicas.iter().filter(|replica| replica.user() != first) {
        replica.says(&["standing by", &first], 0).await;
    }
    let place = replicas.iter().position(|replica| replica.user() == first);
    replicas.swap_remove(place.expect("one of them")).kill();
    let second = led_by_another(&space, &first).await;
    works(world, &space, &second).await;
    load.end().await;
    assert_nobody_wrote_while_another_led(world, &space).await;

    let requests = world.requests().await;
    let of_lease = |r: &&Request| r.resource == "leases" && r.namespace == space.name;
    let on_lease: Vec<_> = requests.iter().filter(of_lease).collect();
    let renewed = on_lease.iter().rposition(|r| r.user == first && r.changed);
    let after = &on_lease[renewed.expect("it led")..];
    let claimed = after.iter().position(|r| r.user != first && r.changed);
    let until = &after[..claimed.expect("another followed")];
    let looked = until.iter().filter(|r| is_look(r, &space, &second)).count();
    assert!(
        looked <= LOOKS,
        "{second} looked {looked} times at a lease of the dead"
    );
}

/// How often it is stopped, and the seed of the moments: a few times in passing, `BOATSWAIN_STOPS=50` to be sure.
fn stops() -> (usize, u64) {
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    let seed = number("BOATSWAIN_SEED").unwrap_or_else(|| Entropy::from_os().next());
    (number("BOATSWAIN_STOPS").map_or(3, |n| n as usize), seed)
}

pub(crate) async fn a_leader_that_stood_still_for_longer_than_its_lease_writes_nothing_when_it_goes_on(
    world: &World,
) {
    let (stops, seed) = stops();
    println!("{stops} stops; the same moments again: BOATSWAIN_SEED={seed}");
    let (clock, moments) = (Clock::system(), Entropy::seeded(seed));
    let space = space(world, "stopped").await;
    // far fewer requests than there is to do: every worker always waits for the limiter, with a write in its hands
    let program = program(world, &space).with(&["--qps", "10", "--burst", "1"]);
    let replicas: Vec<_> = (1..=2).map(|number| program.start(number)).collect();
    let load = Load::begin(&space, 12, Duration::from_millis(20)).await;
    for _ in 0..stops {
        let old = led_by_another(&space, "").await;
        works(world, &space, &old).await;
        eventually("writes are queued", async || match load.behind().await {
            Ok(behind) if behind.len() > 4 => Ok(()),
            few => Err(few),
        })
        .await;
        clock.sleep(Duration::from_secs_f64(moments.unit())).await;
        called(&replicas, &old).stop();
        let new = led_by_another(&space, &old).await;
        works(world, &space, &new).await;
        called(&replicas, &old).wake();
        looks_again(world, &space, &old).await;
        assert_nobody_wrote_while_another_led(world, &space).await;
    }
    load.end().await;
    assert_nobody_wrote_while_another_led(world, &space).await;
    let requests = world.requests().await;
    let takeovers = Reigns::of(&requests, &space.name, LEASE).takeovers();
    assert!(takeovers >= stops, "{takeovers} takeovers at {stops} stops");
}

pub(crate) async fn a_server_that_is_away_for_longer_than_the_lease_is_worked_with_by_one_when_it_is_back(
    world: &World,
) {
    let space = space(world, "away").await;
    let program = program(world, &space);
    let replicas: Vec<_> = (1..=3).map(|number| program.start(number)).collect();
    let load = Load::begin(&space, 8, Duration::from_millis(50)).await;
    let first = led_by_another(&space, "").await;
    works(world, &space, &first).await;
    world.kill().await;
    for replica in &replicas {
        eventually("nobody leads", async || {
            let (begun, ended) = (&["INFO leading "], &["leading no more"]);
            if replica.lines(begun) == replica.lines(ended) {
                Ok(())
            } else {
                Err(replica.log())
            }
        })
        .await;
    }
    // by now the lease has run out for everybody, too
    Clock::system().sleep(Duration::from_secs(3)).await;
    world.revive().await;
    load.end().await;
    assert_nobody_wrote_while_another_led(world, &space).await;
}

pub(crate) async fn a_lease_deleted_by_hand_lets_no_two_write(world: &World) {
    let space = space(world, "deleted").await;
    let program = program(world, &space);
    let replicas: Vec<_> = (1..=2).map(|number| program.start(number)).collect();
    let load = Load::begin(&space, 8, Duration::from_millis(20)).await;
    for _ in 0..5 {
        let leader = led_by_another(&space, "").await;
        works(world, &space, &leader).await;
        for replica in &replicas {
            looks_again_if_standby(world, &space, replica, &leader).await;
        }
        let deleted = leases(space.client(), &space)
            .delete(LEASE, &DeleteParams::default())
            .await;
        deleted.expect("deleted");
        works(world, &space, &led_by_another(&space, "").await).await;
    }
    load.end().await;
    assert_nobody_wrote_while_another_led(world, &space).await;
}

async fn looks_again_if_standby(world: &World, space: &Space, replica: &Replica, leader: &str) {
    if replica.user() != leader {
        looks_again(world, space, replica.user()).await;
    }
}

pub(crate) async fn a_lease_stolen_by_hand_is_respected_and_followed(world: &World) {
    let space = space(world, "stolen").await;
    let program = program(world, &space);
    let replicas: Vec<_> = (1..=2).map(|number| program.start(number)).collect();
    space.deploy("web", 1).await;
    space.autoscale("web", 2).await;
    space.is_settled("web", 2).await;
    let leader = led_by_another(&space, "").await;
    let seen = called(&replicas, &leader).lines(&["leading no more", "thief"]);
    let theft = json!({ "spec": { "holderIdentity": "thief", "leaseDurationSeconds": 3 } });
    let stolen = leases(space.client(), &space)
        .patch(LEASE, &PatchParams::default(), &Patch::Merge(theft))
        .await;
    stolen.expect("stolen");
    called(&replicas, &leader)
        .says(&["leading no more", "thief"], seen)
        .await;
    // nobody works now, and the thief never renews
    space.ask_for("web", 3).await;
    space.has_replicas("web", 3).await;
    space.is_synced("web", 3).await;

    let mut requests = world.requests().await;
    // what was said before the theft was heard may still be written down
    requests.retain(|request| request.resource != "events");
    let found = trespasses(&requests, &space.name, LEASE);
    assert!(found.is_empty(), "{found:#?}");
    let reigns = Reigns::of(&requests, &space.name, LEASE);
    let holders: Vec<_> = reigns
        .list()
        .into_iter()
        .map(|(_, holder)| holder)
        .collect();
    let theft = holders.iter().position(|holder| holder == "thief");
    let after = &holders[theft.expect("it was stolen") + 1..];
    assert!(!after.is_empty(), "nobody followed the thief: {holders:?}");
}

pub(crate) async fn a_rival_that_takes_the_lease_during_its_release_keeps_it(world: &World) {
    let clock = Clock::system();
    let chance = Entropy::from_os();
    for round in 0..5 {
        let space = space(world, "release").await;
        let replica = program(world, &space).start(1);
        let leases = leases(space.client(), &space);
        led_by_another(&space, "").await;
        replica.terminate();
        clock
            .sleep(Duration::from_millis(20).mul_f64(chance.unit()))
            .await;
        eventually("the rival has it", async || {
            let mut lease = leases.get(LEASE).await.map_err(|error| error.to_string())?;
            let spec = lease.spec.get_or_insert_default();
            spec.holder_identity = Some("rival".to_owned());
            spec.lease_duration_seconds = Some(3600);
            let taken = leases.replace(LEASE, &PostParams::default(), &lease).await;
            taken.map(drop).map_err(|error| error.to_string())
        })
        .await;
        let (status, log) = replica.ends().await;
        assert!(status.success(), "{status}: {log:#?}");
        let reigns = Reigns::of(&world.requests().await, &space.name, LEASE).list();
        let last = reigns.last().map(|(_, holder)| holder.as_str());
        assert_eq!(last, Some("rival"), "round {round}: {reigns:?}; {log:#?}");
    }
}

pub(crate) async fn a_rolling_restart_under_load_loses_nothing_and_logs_no_error(world: &World) {
    let space = space(world, "rolling").await;
    // who goes gives the lease back, so nobody waits for its end: it is as long as usual, that a slow machine makes nobody lose it
    let program = program(world, &space).with_usual_terms();
    let start = async |number| {
        let replica = program.start(number);
        eventually("the replica has found its place", async || {
            let placed = replica.lines(&["leading"]) + replica.lines(&["standing by"]);
            if placed > 0 {
                Ok(())
            } else {
                Err(replica.log())
            }
        })
        .await;
        replica
    };
    let end = async |replica: Replica| {
        replica.terminate();
        let (status, log) = replica.ends().await;
        assert!(status.success(), "{status}: {log:#?}");
        let complains = |line: &&String| line.contains("ERROR") || line.contains("cancel");
        let complaints: Vec<_> = log.iter().filter(complains).collect();
        assert!(complaints.is_empty(), "{complaints:#?}");
    };
    let mut replicas = [start(1).await, start(2).await, start(3).await];
    let load = Load::begin(&space, 8, Duration::from_millis(20)).await;
    for _ in 0..2 {
        for (place, replica) in replicas.iter_mut().enumerate() {
            let leader = led_by_another(&space, "").await;
            works(world, &space, &leader).await;
            // the new one is there before the old one goes, as a Deployment does it
            let old = std::mem::replace(replica, start(4).await);
            end(old).await;
            let fourth = std::mem::replace(replica, start(place + 1).await);
            end(fourth).await;
        }
    }
    load.end().await;
    for replica in replicas {
        end(replica).await;
    }
    assert_nobody_wrote_while_another_led(world, &space).await;
    let requests = world.requests().await;
    let takeovers = Reigns::of(&requests, &space.name, LEASE).takeovers();
    assert!(takeovers >= 2, "{takeovers} takeovers");
}

pub(crate) async fn machines_that_have_run_for_different_times_follow_each_other(world: &World) {
    let space = space(world, "uptime").await;
    // ten hours more on the clock that leases are measured by, two on that of timers
    let elsewhere = [
        "unshare",
        "--map-root-user",
        "--time",
        "--boottime",
        "36000",
    ];
    let elsewhere = [
        &elsewhere[..],
        &["--monotonic", "7200", "--fork", "--kill-child"],
    ]
    .concat();
    let near = program(world, &space).start(1);
    assert_eq!(led_by_another(&space, "").await, "replica-1");
    let load = Load::begin(&space, 8, Duration::from_millis(50)).await;
    let far = program(world, &space).under(&elsewhere).start(2);
    far.says(&["standing by", "replica-1"], 0).await;
    let clocks = |process: &str, which: &str| {
        std::fs::read_link(format!("/proc/{process}/ns/{which}")).expect("Linux 5.6 or later")
    };
    assert_ne!(
        clocks(&far.id().to_string(), "time_for_children"),
        clocks("self", "time"),
        "it has the clocks of everybody"
    );
    looks_again(world, &space, "replica-2").await;
    near.kill();
    assert_eq!(led_by_another(&space, "replica-1").await, "replica-2");
    works(world, &space, "replica-2").await;
    let near = program(world, &space).start(1);
    near.says(&["standing by", "replica-2"], 0).await;
    looks_again(world, &space, "replica-1").await;
    far.kill();
    works(world, &space, &led_by_another(&space, "replica-2").await).await;
    load.end().await;
    assert_nobody_wrote_while_another_led(world, &space).await;
}

pub(crate) async fn a_rival_whose_clock_is_hours_off_is_left_alone_as_long_as_it_renews(
    world: &World,
) {
    let clock = Clock::system();
    let duration = Duration::from_secs(3);
    for offset in ["-5h", "5h"] {
        let space = space(world, "offset").await;
        let leases = leases(space.client(), &space);
        let offset: jiff::Span = offset.parse().expect("a span");
        let renew = async || {
            let now = jiff::Timestamp::try_from(clock.wall()).expect("in range");
            let theirs = now.checked_add(offset).expect("in range");
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": { "name": LEASE },
                "spec": {
                    "holderIdentity": "rival", "leaseDurationSeconds": duration.as_secs(), "renewTime": format!("{theirs:.6}"),
                },
            });
            let params = PatchParams::apply("rival").force();
            let renewed = leases.patch(LEASE, &params, &Patch::Apply(&lease)).await;
            renewed.expect("renewed");
        };
        let mut renewed = clock.now();
        renew().await;
        let replica = program(world, &space).start(1);
        // for longer than the lease lasts, and as the replica sees it
        let before = looks(world, &space, "replica-1").await;
        while looks(world, &space, "replica-1").await < before + 2 * LOOKS {
            let holder = holder(&space).await.expect("there is a lease");
            let late = clock.now() - renewed >= duration;
            assert!(
                holder == "rival" || late,
                "{holder} took a lease that was renewed"
            );
            renewed = clock.now();
            renew().await;
            clock.sleep(Duration::from_millis(300)).await;
        }
        // and no longer
        led_by_another(&space, "").await;
        drop(replica);
    }
}
