//! The log against a model: cut at any byte, killed during compaction, damaged, on a full disk.
#![allow(clippy::unwrap_used)]

use std::cell::RefCell;

use proptest::prelude::*;

use super::*;

/// One request: objects that are written (with a size) or deleted.
type Request = Vec<(u8, Option<u16>)>;

fn request() -> impl Strategy<Value = Request> {
    prop::collection::vec((0..12_u8, prop::option::weighted(0.7, 0..3000_u16)), 1..5)
}

fn changes(revision: u64, request: &Request) -> Changes {
    let objects = request.iter().map(|(name, size)| ObjectChange {
        collection: if name % 2 == 0 { "pods" } else { "jobs.batch" }.to_owned(),
        key: format!("default/\"é{name}\""),
        object: size.map(|size| format!("{{\"at\":{revision},\"text\":\"{}\"}}", "x".repeat(size.into())).into()),
    });
    Changes { revision, objects: objects.collect() }
}

/// The states after each request, the first of them before any.
fn states(start: Changes, requests: &[Request]) -> Vec<Changes> {
    let mut states = vec![start];
    for request in requests {
        let last = &states[states.len() - 1];
        let changes = changes(last.revision + 1, request);
        let known =
            last.objects.iter().cloned().map(|change| ((change.collection.clone(), change.key.clone()), change));
        let mut objects: BTreeMap<_, _> = known.collect();
        for change in changes.objects {
            let id = (change.collection.clone(), change.key.clone());
            match change.object {
                Some(_) => drop(objects.insert(id, change)),
                None => drop(objects.remove(&id)),
            }
        }
        states.push(Changes { revision: changes.revision, objects: objects.into_values().collect() });
    }
    states
}

struct World {
    directory: tempfile::TempDir,
    log: Log,
    states: Vec<Changes>,
    requests: Vec<Request>,
    /// How many requests the log has.
    done: usize,
}

impl World {
    /// A log that begins with the state after the first `begin` requests.
    fn new(requests: &[Request], begin: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let states = states(Changes { revision: 7, objects: Vec::new() }, requests);
        let log = Log::begin(&directory.path().join("state.log"), &states[begin]).unwrap();
        Self { directory, log, states, requests: requests.to_vec(), done: begin }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("state.log")
    }

    /// Records the next requests, as far as there are any.
    fn advance(&mut self, count: usize) {
        for _ in 0..count.min(self.requests.len() - self.done) {
            let changes = changes(self.states[self.done].revision + 1, &self.requests[self.done]);
            self.log.append(&changes).unwrap();
            self.done += 1;
        }
    }

    fn now(&self) -> Changes {
        self.states[self.done].clone()
    }

    fn length(&self) -> u64 {
        fs::metadata(self.path()).unwrap().len()
    }

    fn read_cut(&self, length: usize) -> Result<Contents, ReadError> {
        let copy = self.directory.path().join("cut.log");
        fs::write(&copy, &fs::read(self.path()).unwrap()[..length]).unwrap();
        read(&copy)
    }
}

fn settings() -> ProptestConfig {
    ProptestConfig { cases: 64, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(settings())]

    #[test]
    fn log_cut_at_any_byte_is_the_answered_requests(
        requests in prop::collection::vec(request(), 1..12),
        begin in any::<prop::sample::Index>(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 20),
    ) {
        let begin = begin.index(requests.len());
        let mut world = World::new(&requests, begin);
        let mut ends = vec![world.length()];
        for _ in begin..requests.len() {
            world.advance(1);
            ends.push(world.length());
        }
        let all = usize::try_from(world.length()).unwrap();
        for cut in cuts.iter().map(|cut| cut.index(all + 1)).chain(ends.iter().map(|end| usize::try_from(*end).unwrap())) {
            let answered = ends.partition_point(|end| *end <= cut as u64);
            match world.read_cut(cut) {
                Ok(contents) => {
                    prop_assert_eq!(&contents.state, &world.states[begin + answered - 1], "cut at {} of {}", cut, all);
                    let whole = ends.contains(&(cut as u64));
                    prop_assert_eq!(contents.torn, (!whole).then_some(ends[answered - 1]));
                }
                Err(error) => prop_assert!(answered == 0, "cut at {cut} of {all}: {error}"),
            }
        }
    }

    #[test]
    fn process_that_ends_while_it_compacts_loses_nothing(
        requests in prop::collection::vec(request(), 4..40),
        begin in 0..2_usize,
        counts in prop::collection::vec(0..4_usize, 12),
    ) {
        let world = RefCell::new(World::new(&requests, begin));
        let mut counts = counts.into_iter();
        for _ in 0..3 {
            let log = world.borrow().log.clone();
            let state = || {
                world.borrow_mut().advance(1);
                world.borrow().now()
            };
            let step = || {
                world.borrow_mut().advance(counts.next().unwrap_or_default());
                let left = read(&world.borrow().path()).unwrap();
                assert_eq!(left, Contents { state: world.borrow().now(), torn: None }, "what a kill leaves at this point");
            };
            log.compact_in_steps(state, step).unwrap();
        }
        let mut world = world.into_inner();
        world.advance(1);
        assert_eq!(read(&world.path()).unwrap().state, world.now());
        assert!(!next_path(&world.path()).exists());
    }

    #[test]
    fn damaged_byte_before_the_last_record_is_reported_with_its_offset(
        requests in prop::collection::vec(request(), 3..8),
        place in any::<prop::sample::Index>(),
        bit in 0..8_u32,
    ) {
        let mut world = World::new(&requests, 1);
        let mut ends = vec![world.length()];
        for _ in 1..requests.len() {
            world.advance(1);
            ends.push(world.length());
        }
        let mut bytes = fs::read(world.path()).unwrap();
        let last = usize::try_from(ends[ends.len() - 2]).unwrap();
        let place = place.index(last);
        bytes[place] ^= 1 << bit;
        fs::write(world.path(), &bytes).unwrap();
        let error = read(&world.path()).unwrap_err();
        match &error {
            ReadError::Foreign => prop_assert!(place < MAGIC.len()),
            ReadError::Lost { offset, .. } => prop_assert!(*offset <= place as u64 && (place as u64) < ends[0]),
            ReadError::Damaged { offset, .. } => {
                let before = ends.partition_point(|end| *end <= place as u64);
                prop_assert_eq!(*offset, ends[before - 1], "{}", error);
                let advice = format!("`truncate -s {offset} {}`", world.path().display());
                prop_assert!(error.to_string().contains(&advice), "{}", error);
                fs::write(world.path(), &bytes[..usize::try_from(*offset).unwrap()]).unwrap();
                let rest = read(&world.path()).unwrap();
                prop_assert_eq!(&rest.state, &world.states[before], "what the message proposes keeps all before it");
            }
            ReadError::Io(_) => prop_assert!(false, "{}", error),
        }
    }
}

#[test]
fn zeros_at_the_end_are_dropped() {
    let mut world = World::new(&vec![vec![(1, Some(10))]; 3], 0);
    world.advance(1);
    let end = world.length();
    let mut bytes = fs::read(world.path()).unwrap();
    bytes.extend_from_slice(&[0; 5000]);
    fs::write(world.path(), bytes).unwrap();
    assert_eq!(read(&world.path()).unwrap(), Contents { state: world.now(), torn: Some(end) });
}

#[test]
fn failed_write_leaves_no_trace_in_the_next() {
    let mut world = World::new(&vec![vec![(1, Some(10))]; 3], 0);
    world.advance(1);
    {
        // As after a write that failed half-way.
        let mut open = world.log.open.lock();
        open.file.write_all(b"half a record").unwrap();
        open.is_torn = true;
    }
    world.advance(1);
    assert_eq!(read(&world.path()).unwrap(), Contents { state: world.now(), torn: None });
}

#[test]
fn log_that_cannot_be_written_is_an_error_and_stays() {
    let mut world = World::new(&vec![vec![(1, Some(10))]; 3], 0);
    world.advance(1);
    world.log.open.lock().file = File::open(world.path()).unwrap();
    let refused = changes(world.states[1].revision + 1, &world.requests[1]);
    assert!(world.log.append(&refused).is_err(), "a file that is open for reading only");
    assert_eq!(read(&world.path()).unwrap().state, world.states[1]);
}

/// The length of the log stays bounded, however many changes are made to a state of constant size.
#[test]
fn log_stays_short() {
    let state = Changes { revision: 1, objects: Vec::new() };
    let directory = tempfile::tempdir().unwrap();
    let mut log = Log::begin(&directory.path().join("state.log"), &state).unwrap();
    let (mut longest, mut compactions) = (0, 0);
    let last = |revision| changes(revision, &(0..12).map(|name| (name, Some(3000))).collect());
    for revision in 2..3000 {
        log.append(&last(revision)).unwrap();
        longest = longest.max(fs::metadata(directory.path().join("state.log")).unwrap().len());
        if log.is_long() {
            log.compact(|| last(revision)).unwrap();
            compactions += 1;
        }
    }
    assert!(compactions >= 10, "{compactions}");
    assert!(longest < SLACK + 300_000, "{longest}");
    let contents = read(&directory.path().join("state.log")).unwrap();
    assert_eq!(contents.state.revision, 2999);
}
