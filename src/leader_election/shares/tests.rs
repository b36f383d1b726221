//! The decision, first as a table, then as a model of many replicas with a clock of whole seconds.
#![allow(clippy::unwrap_used)]

use chrono::DateTime;
use proptest::prelude::*;

use super::*;
use crate::leader_election::LeaderElectionRecord;

const DURATION: i32 = 15;
/// The duration of a replica's own lease, in seconds.
const LIVES: i32 = 10;
/// How often a replica lists the leases, in seconds.
const PERIOD: u64 = 2;

fn names(count: u32) -> Names {
    Names::new("cron", NonZeroU32::new(count).unwrap())
}

fn record(holder: &str, seconds: i32, renewed: i64) -> LeaderElectionRecord {
    LeaderElectionRecord {
        holder_identity: holder.to_owned(),
        lease_duration_seconds: seconds,
        renew_time: DateTime::from_timestamp(1_800_000_000 + renewed, 0),
        ..LeaderElectionRecord::default()
    }
}

/// An observation of that record in that version at that moment.
fn seen_as(record: LeaderElectionRecord, version: u64, at: Instant) -> Observed {
    Observed { record, resource_version: Some(version.to_string()), at }
}

#[test]
fn each_lease_name_has_one_role() {
    let names = names(4);
    let rows = [
        ("cron-shard-0-of-4", Role::Shard(0)),
        ("cron-shard-3-of-4", Role::Shard(3)),
        ("cron-shard-4-of-4", Role::Foreign),
        ("cron-shard-x-of-4", Role::Unrelated),
        ("cron-shard-0-of-2", Role::Foreign),
        ("cron-shard-0-of-0", Role::Unrelated),
        ("cron", Role::Foreign),
        ("cron-replica-00ff-of-4", Role::Replica),
        ("cron-replica-00ff-of-5", Role::Stranger),
        ("cron-other", Role::Unrelated),
        ("other", Role::Unrelated),
    ];
    for (lease, role) in rows {
        assert_eq!(names.role(lease), role, "{lease}");
    }
    assert_eq!(names.role(&names.shard(2)), Role::Shard(2));
    assert_eq!(names.role(&names.replica("host_1")), Role::Replica);
}

/// The observations of the replica `a`.
struct Seen {
    shards: &'static [(&'static str, &'static [u32])],
    live: &'static [&'static str],
    mine: &'static [(u32, ShardState)],
    foreign: bool,
    /// For how long the replicas have existed.
    for_seconds: u64,
    /// For how long no lease has been renewed.
    silent: u64,
}

const NOTHING: Seen = Seen { shards: &[], live: &["a", "b"], mine: &[], foreign: false, for_seconds: 100, silent: 0 };

#[test]
fn a_replica_moves_towards_its_share() {
    use Move::{GiveUp, Remove, Take};
    use ShardState::{Contending, Holding, Leaving};
    let rows: Vec<(&str, Seen, Vec<Move>)> = vec![
        ("alone it takes all", Seen { live: &[], ..NOTHING }, vec![Take(0), Take(1), Take(2), Take(3)]),
        ("of two the first takes the first half", NOTHING, vec![Take(0), Take(1)]),
        ("what it contends for is its own already", Seen { mine: &[(0, Contending)], ..NOTHING }, vec![Take(1)]),
        (
            "what another got first is no longer contended for",
            Seen { mine: &[(0, Contending)], shards: &[("b", &[0])], ..NOTHING },
            vec![GiveUp(0), Take(2), Take(3)],
        ),
        (
            "a newcomer is given one shard at a time",
            Seen { mine: &[(0, Holding), (1, Holding), (2, Holding), (3, Holding)], ..NOTHING },
            vec![GiveUp(3)],
        ),
        (
            "but not before it has lived for a while",
            Seen { mine: &[(0, Holding), (1, Holding), (2, Holding), (3, Holding)], for_seconds: 9, ..NOTHING },
            vec![],
        ),
        ("what is free it gets at once", Seen { for_seconds: 0, ..NOTHING }, vec![Take(0), Take(1)]),
        (
            "while one is being given up no other is",
            Seen { mine: &[(0, Holding), (1, Holding), (2, Holding), (3, Leaving)], ..NOTHING },
            vec![],
        ),
        (
            "in a stable set no shard moves",
            Seen { mine: &[(0, Holding), (1, Holding)], shards: &[("a", &[0, 1]), ("b", &[2, 3])], ..NOTHING },
            vec![],
        ),
        (
            "the replica with the odd shard keeps it",
            Seen {
                mine: &[(0, Holding), (1, Holding)],
                shards: &[("a", &[0, 1]), ("b", &[2]), ("c", &[3])],
                live: &["a", "b", "c"],
                ..NOTHING
            },
            vec![],
        ),
        (
            "a free shard goes to the replica with the fewest",
            Seen { mine: &[(0, Holding)], shards: &[("a", &[0]), ("b", &[1, 2])], ..NOTHING },
            vec![Take(3)],
        ),
        (
            "and not for one that has its share",
            Seen { mine: &[(0, Holding), (1, Holding)], shards: &[("a", &[0, 1]), ("b", &[2])], ..NOTHING },
            vec![],
        ),
        (
            "what a replica held that is gone is free when its leases have run out",
            Seen { mine: &[(0, Holding)], shards: &[("b", &[1, 2, 3])], silent: 15, ..NOTHING },
            vec![Take(1), Take(2), Take(3)],
        ),
        ("and not before", Seen { mine: &[(0, Holding)], shards: &[("b", &[1, 2, 3])], silent: 14, ..NOTHING }, vec![]),
        (
            "its own lease is removed when it has been silent for long",
            Seen { mine: &[(0, Holding), (1, Holding), (2, Holding), (3, Holding)], silent: 60, ..NOTHING },
            vec![Remove(names(4).replica("b"))],
        ),
        ("beside another number of shards nothing is taken", Seen { foreign: true, ..NOTHING }, vec![]),
        (
            "and nothing given up",
            Seen { foreign: true, mine: &[(0, Holding), (1, Holding), (2, Holding)], ..NOTHING },
            vec![],
        ),
        (
            "what was its own and is no longer has to run out",
            Seen { shards: &[("a", &[0, 1]), ("b", &[2, 3])], ..NOTHING },
            vec![],
        ),
    ];
    let start = Instant::now();
    for (sentence, seen, expected) in rows {
        let names = names(4);
        let shard = |(holder, shards): &(&'static str, &'static [u32])| {
            let holder = *holder;
            shards.iter().map(|index| (names.shard(*index), record(holder, DURATION, 0))).collect::<Vec<_>>()
        };
        let mut leases: Vec<_> = seen.shards.iter().flat_map(shard).collect();
        leases.extend(seen.live.iter().map(|who| (names.replica(who), record(who, LIVES, 0))));
        leases.extend(seen.foreign.then(|| ("cron".to_owned(), record("z", DURATION, 0))));
        let mut sightings = LeaseObservations::default();
        let before =
            |(name, _): &(String, LeaderElectionRecord)| (name.clone(), seen_as(record("before", 1, 0), 1, start));
        sightings.see(&names, leases.iter().map(before));
        let start = start + Duration::from_secs(seen.for_seconds);
        sightings.see(&names, leases.into_iter().map(|(name, record)| (name, seen_as(record, 2, start))));
        let mine = seen.mine.iter().copied().collect();
        let moves = decide("a", &names, &mine, &sightings, start + Duration::from_secs(seen.silent));
        assert_eq!(moves, expected, "{sentence}");
    }
}

#[test]
fn next_check_is_when_a_lease_expires() {
    let (names, start) = (names(2), Instant::now());
    let mut seen = LeaseObservations::default();
    let after = |seconds| start + Duration::from_secs(seconds);
    let leases = |version: u64, at| {
        let renewed = i64::try_from(version).unwrap();
        let held = seen_as(record("b", DURATION, renewed), version, at);
        [(names.shard(0), held), (names.shard(1), seen_as(record("", 1, 0), 1, at))]
    };
    seen.see(&names, leases(1, start));
    seen.see(&names, leases(1, after(2)));
    assert_eq!(seen.next_end(after(2)), Some(after(15)), "seen again, it counts from the first time");
    seen.see(&names, leases(2, after(4)));
    assert_eq!(seen.next_end(after(4)), Some(after(19)), "renewed");
    assert_eq!(seen.next_end(after(19)), None);
}

/// The holder's clock is set back by the time for which its lease was not observed, and it renews with the observed record.
#[test]
fn renewal_with_an_earlier_record_in_a_new_version_is_recognised() {
    let (names, start) = (names(2), Instant::now());
    let mut seen = LeaseObservations::default();
    let leases = |version, at| {
        let held = seen_as(record("b", DURATION, 0), version, at);
        [(names.shard(0), held.clone()), (names.shard(1), held.clone()), (names.replica("b"), held)]
    };
    seen.see(&names, leases(7, start));
    let later = start + Duration::from_secs(100);
    seen.see(&names, leases(57, later));
    assert_eq!(decide("a", &names, &BTreeMap::new(), &seen, later), [], "none is free, and no replica is gone");
    assert_eq!(seen.shard(0).unwrap().at, later);
}

/// One replica of the model.
struct Peer {
    name: String,
    seen: LeaseObservations,
    mine: BTreeMap<u32, ShardState>,
    /// When it was killed, or asked to stop.
    is_dead: bool,
    phase: u64,
}

/// The actual leases, and the replicas.
struct World {
    names: Names,
    start: Instant,
    now: u64,
    /// Each lease with its version.
    leases: BTreeMap<String, (LeaderElectionRecord, u64)>,
    version: u64,
    /// When each lease was last written.
    written: BTreeMap<String, u64>,
    peers: Vec<Peer>,
    moves: usize,
}

impl World {
    fn write(&mut self, lease: String, holder: &str, seconds: i32) {
        let record = record(holder, seconds, i64::try_from(self.now).unwrap());
        self.written.insert(lease.clone(), self.now);
        self.version += 1;
        self.leases.insert(lease, (record, self.version));
    }

    fn join(&mut self) {
        let name = format!("r{}", self.peers.len());
        let phase = self.now % PERIOD;
        self.peers.push(Peer {
            name,
            seen: LeaseObservations::default(),
            mine: BTreeMap::new(),
            is_dead: false,
            phase,
        });
    }

    fn end(&mut self, number: usize, is_orderly: bool) {
        let peer = &mut self.peers[number];
        peer.is_dead = true;
        let held = std::mem::take(&mut peer.mine).into_iter().filter(|(_, tenure)| *tenure != ShardState::Contending);
        let (name, held): (_, Vec<_>) = (peer.name.clone(), held.map(|(index, _)| index).collect());
        if is_orderly {
            self.leases.remove(&self.names.replica(&name));
            for index in held {
                self.write(self.names.shard(index), "", 1);
            }
        }
    }

    /// A second passes.
    fn tick(&mut self) {
        self.now += 1;
        for number in 0..self.peers.len() {
            if !self.peers[number].is_dead && self.now % PERIOD == self.peers[number].phase {
                self.look(number);
            }
        }
    }

    /// The actions of a replica in each period.
    fn look(&mut self, number: usize) {
        let (me, now) = (self.peers[number].name.clone(), self.start + Duration::from_secs(self.now));
        self.write(self.names.replica(&me), &me, LIVES);
        // The replica's electors.
        for (index, tenure) in self.peers[number].mine.clone() {
            let lease = self.names.shard(index);
            let true_holder =
                self.leases.get(&lease).map(|(lease, _)| lease.holder_identity.clone()).unwrap_or_default();
            let has_run_out = self.written.get(&lease).is_none_or(|at| self.now - at >= DURATION.unsigned_abs().into());
            let mine = &mut self.peers[number].mine;
            match tenure {
                ShardState::Contending if true_holder.is_empty() || has_run_out => {
                    mine.insert(index, ShardState::Holding);
                    self.write(lease, &me, DURATION);
                }
                ShardState::Contending => {}
                ShardState::Holding => {
                    assert_eq!(true_holder, me, "{me} holds shard {index}");
                    self.write(lease, &me, DURATION);
                }
                ShardState::Leaving => {
                    mine.remove(&index);
                    self.write(lease, "", 1);
                }
            }
        }
        let peer = &mut self.peers[number];
        let shown = self.leases.iter();
        peer.seen.see(
            &self.names,
            shown.map(|(name, (record, version))| (name.clone(), seen_as(record.clone(), *version, now))),
        );
        for what in decide(&me, &self.names, &peer.mine, &peer.seen, now) {
            self.moves += 1;
            match what {
                Move::Take(index) => assert_eq!(peer.mine.insert(index, ShardState::Contending), None),
                Move::GiveUp(index) if peer.mine[&index] == ShardState::Contending => drop(peer.mine.remove(&index)),
                Move::GiveUp(index) => drop(peer.mine.insert(index, ShardState::Leaving)),
                Move::Remove(lease) => drop(self.leases.remove(&lease)),
            }
        }
    }
}

proptest! {
    #[test]
    fn replicas_converge_to_equal_shares(
        count in 1_u32..24,
        first in 1_usize..6,
        deeds in prop::collection::vec((0_u64..12, 0_usize..3, any::<prop::sample::Index>()), 0..12),
    ) {
        let mut world = World {
            names: names(count),
            start: Instant::now(),
            now: 0,
            leases: BTreeMap::new(),
            version: 0,
            written: BTreeMap::new(),
            peers: Vec::new(),
            moves: 0,
        };
        (0..first).for_each(|_| world.join());
        for (pause, deed, who) in deeds {
            (0..pause).for_each(|_| world.tick());
            let living: Vec<usize> = (0..world.peers.len()).filter(|number| !world.peers[*number].is_dead).collect();
            match deed {
                0 => world.join(),
                kind if living.len() > 1 => world.end(living[who.index(living.len())], kind == 1),
                _ => {}
            }
        }
        // The leases of crashed replicas expire, one shard after the other changes hands, and the replicas are forgotten.
        (0..120).for_each(|_| world.tick());
        let shares: Vec<usize> = world.peers.iter().filter(|peer| !peer.is_dead).map(|peer| peer.mine.len()).collect();
        prop_assert_eq!(shares.iter().sum::<usize>(), usize::try_from(count).unwrap(), "every shard has its holder");
        prop_assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1, "{:?}", shares);
        let replicas = world.leases.keys().filter(|lease| lease.contains("replica")).count();
        prop_assert_eq!(replicas, shares.len(), "the dead are forgotten");
        world.moves = 0;
        (0..60).for_each(|_| world.tick());
        prop_assert_eq!(world.moves, 0, "in a stable set no shard moves");
    }
}
