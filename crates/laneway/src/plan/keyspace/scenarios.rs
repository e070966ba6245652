//! Tests complete listings, in virtual time, with keys of many shapes.

use std::collections::{BTreeSet, BinaryHeap, HashMap, VecDeque};
use std::time::Duration;

use super::*;
use crate::plan::random::RandomNumbers;

const PAGE: usize = 100;
const PAGE_TIME: Duration = Duration::from_millis(100);

/// A store with keys in order.
struct Store {
    keys: Vec<String>,
    /// True if the store stops at the requested end, as GCS does. Otherwise it returns keys behind the end
    /// too, and the client drops them.
    stops: bool,
    page: usize,
}

struct Answer {
    objects: Vec<String>,
    prefixes: Vec<String>,
    next: Option<String>,
}

impl Store {
    fn new(keys: impl IntoIterator<Item = String>, stops: bool) -> Self {
        let keys: BTreeSet<String> = keys.into_iter().collect();
        Self { keys: keys.into_iter().collect(), stops, page: PAGE }
    }

    fn answer(&self, listed: &ListingBounds, ask: &PageRequest) -> Answer {
        let from = ask.token.as_deref().or(ask.start_after.as_deref());
        let mut at = from.map_or(0, |from| self.keys.partition_point(|key| key.as_str() <= from));
        at = at.max(self.keys.partition_point(|key| *key < ask.prefix));
        let (mut objects, mut prefixes): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        let mut last = None;
        while let Some(key) = self.keys.get(at).filter(|key| key.starts_with(&ask.prefix)) {
            if self.stops && !ask.end.has(key) {
                return Answer { objects, prefixes, next: None };
            }
            if objects.len() + prefixes.len() == ask.max.map_or(self.page, |max| self.page.min(max as usize))
            {
                return Answer { objects, prefixes, next: last };
            }
            let below = &key[listed.prefix.len()..];
            let rolled = listed.delimiter.as_deref().and_then(|delimiter| below.split_once(delimiter));
            if let Some((first, _)) = rolled {
                let prefix = format!("{}{first}/", listed.prefix);
                at += self.keys[at..].partition_point(|key| key.starts_with(&prefix));
                last = self.keys.get(at - 1).cloned();
                prefixes.push(prefix);
                continue;
            }
            last = Some(key.clone());
            objects.push(key.clone());
            at += 1;
        }
        Answer { objects, prefixes, next: None }
    }
}

#[derive(Debug)]
struct Outcome {
    entries: Vec<String>,
    requests: usize,
    /// The duration of the listing, in multiples of the time for a page.
    turns: f64,
    held_max: usize,
}

/// Pages that have arrived, each with the keys that belong to its stretch.
type Shelf = HashMap<StretchId, VecDeque<Vec<String>>>;

/// Lists a store that takes some 100 ms for a page. `change` may change the store before each answer.
fn list(
    store: &mut Store,
    listed: &ListingBounds,
    order: KeyOrder,
    seed: u64,
    mut change: impl FnMut(&mut Store, &mut RandomNumbers),
) -> Result<Outcome, ListingFault> {
    let mut random = RandomNumbers(seed);
    let mut keyspace = Keyspace::new(listed.clone(), order, true, !store.stops);
    let mut under_way: BinaryHeap<(std::cmp::Reverse<u64>, u64)> = BinaryHeap::new();
    let mut asks: HashMap<u64, PageRequest> = HashMap::new();
    let (mut entries, mut shelf, mut now_us) = (Vec::new(), Shelf::new(), 0);
    let (mut requests, mut held_max) = (0_usize, 0);
    loop {
        while let Some(ask) = keyspace.ask() {
            requests += 1;
            assert!(requests < 200_000, "the listing doesn't end");
            let took = PAGE_TIME.as_micros() as u64 + random.below(20_000);
            under_way.push((std::cmp::Reverse(now_us + took), requests as u64));
            asks.insert(requests as u64, ask);
        }
        assert!(under_way.len() <= AT_ONCE_MAX);
        held_max = held_max.max(under_way.len() + shelf.values().map(VecDeque::len).sum::<usize>());
        let Some((std::cmp::Reverse(at), number)) = under_way.pop() else { break };
        now_us = at;
        let ask = asks.remove(&number).unwrap();
        change(store, &mut random);
        let answer = store.answer(listed, &ask);
        let mut page = Vec::new();
        // Each page arrives in two portions.
        let half = answer.objects.len() / 2;
        for (kind, keys) in [
            (EntryKind::Objects, &answer.objects[..half]),
            (EntryKind::Objects, &answer.objects[half..]),
            (EntryKind::Prefixes, &answer.prefixes[..]),
        ] {
            let taken = keyspace.came(ask.stretch, kind, keys.iter().map(String::as_str))?;
            page.extend_from_slice(&keys[..taken]);
        }
        page.sort();
        keyspace.ended(ask.stretch, answer.next, PAGE_TIME)?;
        match order {
            KeyOrder::Arrival => {
                entries.extend(page);
                keyspace.taken(ask.stretch);
            }
            KeyOrder::Keys => {
                shelf.entry(ask.stretch).or_default().push_back(page);
                while let Some(front) = keyspace.front()
                    && let Some(page) = shelf.get_mut(&front).and_then(VecDeque::pop_front)
                {
                    entries.extend(page);
                    keyspace.taken(front);
                }
            }
        }
    }
    assert!(keyspace.is_over(), "{keyspace:?}");
    let turns = now_us as f64 / PAGE_TIME.as_micros() as f64;
    Ok(Outcome { entries, requests, turns, held_max })
}

fn unchanged(_: &mut Store, _: &mut RandomNumbers) {}

/// Returns the maximum number of requests that a listing of this many keys may take.
fn bound(keys: usize) -> usize {
    let pages = keys.div_ceil(PAGE).max(1);
    pages + 1 + (2 * pages).min(24) + pages / 4
}

fn text(random: &mut RandomNumbers, alphabet: &[char], len: u64) -> String {
    (0..len).map(|_| alphabet[random.below(alphabet.len() as u64) as usize]).collect()
}

/// Returns keys of a named shape.
fn shaped(shape: &str, keys: usize, random: &mut RandomNumbers) -> Vec<String> {
    let hex: Vec<char> = "0123456789abcdef".chars().collect();
    let letters: Vec<char> = ('a'..='z').collect();
    let n = keys as u64;
    let one = |i: u64, random: &mut RandomNumbers| match shape {
        "numbered" => format!("k/{i:06}"),
        "parts" => format!("warehouse/db/table/part-{i:05}-7f3a1c.parquet"),
        "folders" => format!("d{}/f{:04}", i / 100, i % 100),
        "unpadded" => format!("k/{i}"),
        "hex" => text(random, &hex, 32),
        "uuid" => format!(
            "{}-{}-4{}-{}",
            text(random, &hex, 8),
            text(random, &hex, 4),
            text(random, &hex, 3),
            text(random, &hex, 12)
        ),
        "dates" => format!(
            "logs/20{:02}/{:02}/{:02}/{}.gz",
            20 + i * 6 / n,
            1 + i * 72 / n % 12,
            1 + random.below(28),
            text(random, &hex, 8)
        ),
        "deep" => {
            let depth = 1 + random.below(8);
            let folders: Vec<_> = (0..depth).map(|_| text(random, &letters[..4], 3)).collect();
            format!("{}/{i}", folders.join("/"))
        }
        "skewed" if i.is_multiple_of(20) => format!("{}/{i}", text(random, &letters, 2)),
        "skewed" => format!("m/very/deep/hot/{}", text(random, &hex, 12)),
        "long prefix" => format!("{}{}", "x".repeat(900), text(random, &hex, 8)),
        "unicode" => text(random, &['é', 'ü', '中', '文', '鍵', '😀', '~', 'a'], 8),
        "base64" => {
            let all: Vec<char> = ('0'..='9').chain('A'..='Z').chain('_'..='_').chain('a'..='z').collect();
            text(random, &all, 11)
        }
        "any" => {
            let len = 1 + random.below(40);
            (0..len).map(|_| char::from_u32(1 + random.below(0x2fff) as u32).unwrap_or('x')).collect()
        }
        _ => panic!("{shape}"),
    };
    (0..n).map(|i| one(i, random)).collect()
}

const SHAPES: [&str; 13] = [
    "numbered",
    "parts",
    "folders",
    "unpadded",
    "hex",
    "uuid",
    "dates",
    "deep",
    "skewed",
    "long prefix",
    "unicode",
    "base64",
    "any",
];

#[test]
fn keys_of_every_shape_are_listed_once_and_for_few_requests_more() {
    for shape in SHAPES {
        for (seed, keys) in [(1, 50), (2, 250), (3, 1000), (4, 5000), (5, 30_000)] {
            for (stops, order) in [
                (false, KeyOrder::Keys),
                (true, KeyOrder::Keys),
                (false, KeyOrder::Arrival),
                (true, KeyOrder::Arrival),
            ] {
                let mut random = RandomNumbers(seed);
                let mut store = Store::new(shaped(shape, keys, &mut random), stops);
                let mut outcome =
                    list(&mut store, &ListingBounds::default(), order, seed, unchanged).unwrap();
                if order == KeyOrder::Arrival {
                    outcome.entries.sort();
                }
                assert!(outcome.entries == store.keys, "{shape} {keys} {order:?}");
                let allowed = bound(store.keys.len());
                assert!(
                    outcome.requests <= allowed,
                    "{shape} {keys} {order:?}: {} requests, {allowed} allowed",
                    outcome.requests
                );
                assert!(
                    outcome.held_max <= PAGES_HELD_EACH * AT_ONCE_MAX + 1,
                    "{shape}: {}",
                    outcome.held_max
                );
            }
        }
    }
}

#[test]
fn a_long_listing_takes_a_part_of_the_time_that_it_takes_page_by_page() {
    // For each order, the maximum duration with any seed, in multiples of the time for a page. Page by page,
    // a listing takes 300 of these times. Sixteen perfectly cut stretches would take 19.
    for (shape, in_order, as_they_arrive) in [
        ("numbered", 90.0, 50.0),
        ("parts", 150.0, 60.0),
        ("folders", 190.0, 60.0),
        ("unpadded", 110.0, 60.0),
        ("hex", 90.0, 60.0),
        ("uuid", 90.0, 60.0),
        ("dates", 150.0, 80.0),
        ("deep", 150.0, 100.0),
        ("skewed", 110.0, 70.0),
        ("long prefix", 90.0, 60.0),
        ("unicode", 90.0, 60.0),
        ("base64", 90.0, 60.0),
        ("any", 90.0, 60.0),
    ] {
        for seed in 1..4 {
            let mut store = Store::new(shaped(shape, 30_000, &mut RandomNumbers(seed)), false);
            for (order, turns) in [(KeyOrder::Keys, in_order), (KeyOrder::Arrival, as_they_arrive)] {
                let outcome = list(&mut store, &ListingBounds::default(), order, seed, unchanged).unwrap();
                assert!(outcome.turns <= turns, "{shape} {order:?}: {outcome:?}", outcome = outcome.turns);
            }
        }
    }
}

#[test]
fn few_pages_and_quick_ones_stay_one_chain() {
    let mut store = Store::new(shaped("hex", 200, &mut RandomNumbers(1)), false);
    let outcome = list(&mut store, &ListingBounds::default(), KeyOrder::Keys, 1, unchanged).unwrap();
    assert_eq!(outcome.requests, 2);
    let mut keyspace = Keyspace::new(ListingBounds::default(), KeyOrder::Arrival, true, true);
    let mut store = Store::new(shaped("hex", 2000, &mut RandomNumbers(1)), false);
    store.page = 50;
    let mut requests = 0;
    while let Some(ask) = keyspace.ask() {
        assert_eq!(keyspace.ask(), None, "a second page at once");
        let answer = store.answer(&ListingBounds::default(), &ask);
        keyspace.came(ask.stretch, EntryKind::Objects, answer.objects.iter().map(String::as_str)).unwrap();
        keyspace.ended(ask.stretch, answer.next, Duration::from_millis(2)).unwrap();
        keyspace.taken(ask.stretch);
        requests += 1;
    }
    assert_eq!(requests, 40);
}

#[test]
fn what_is_there_all_the_time_is_listed_once_in_a_bucket_that_changes() {
    for shape in SHAPES {
        for seed in 0..6 {
            let mut random = RandomNumbers(seed);
            let keys = shaped(shape, 6000, &mut random);
            let (stays, goes): (Vec<_>, Vec<_>) =
                keys.into_iter().partition(|key| key.len() % 2 == 0 || key.ends_with('7'));
            let comes: Vec<_> =
                shaped(shape, 500, &mut random).into_iter().map(|key| format!("{key}+")).collect();
            let mut store = Store::new(stays.iter().chain(&goes).cloned(), seed % 2 == 0);
            let order = if seed % 3 == 0 { KeyOrder::Arrival } else { KeyOrder::Keys };
            let change = |store: &mut Store, random: &mut RandomNumbers| {
                let (coming, going) =
                    (random.below(1 + comes.len() as u64), random.below(1 + goes.len() as u64));
                if let Some(key) = goes.get(going as usize)
                    && let Ok(at) = store.keys.binary_search(key)
                {
                    store.keys.remove(at);
                }
                if let Some(key) = comes.get(coming as usize)
                    && let Err(at) = store.keys.binary_search(key)
                {
                    store.keys.insert(at, key.clone());
                }
            };
            let outcome = list(&mut store, &ListingBounds::default(), order, seed, change).unwrap();
            let mut times: HashMap<&str, usize> = HashMap::new();
            outcome.entries.iter().for_each(|key| *times.entry(key).or_default() += 1);
            assert!(order == KeyOrder::Arrival || outcome.entries.is_sorted());
            assert!(times.values().all(|times| *times == 1), "{shape} {seed}");
            let lost = stays.iter().find(|key| !times.contains_key(key.as_str()));
            assert_eq!(lost, None, "{shape} {seed}");
        }
    }
}

#[test]
fn what_is_rolled_up_is_told_once_however_the_level_is_cut() {
    for seed in 0..20 {
        let mut random = RandomNumbers(seed);
        let hex: Vec<char> = "0123456789abcdef".chars().collect();
        let keys = (0..20_000).map(|i| match i % 3 {
            0 => format!("p/{}/{i}", text(&mut random, &hex, 3)),
            1 => format!("p/{}", text(&mut random, &hex, 6)),
            _ => format!("p/{}/x/{i}", text(&mut random, &hex, 2)),
        });
        let mut store = Store::new(keys, seed % 2 == 0);
        let listed =
            ListingBounds { prefix: "p/".into(), delimiter: Some("/".into()), ..ListingBounds::default() };
        let outcome = list(&mut store, &listed, KeyOrder::Keys, seed, unchanged).unwrap();
        let level: BTreeSet<String> = store
            .keys
            .iter()
            .map(|key| match key[2..].split_once('/') {
                Some((first, _)) => format!("p/{first}/"),
                None => key.clone(),
            })
            .collect();
        assert!(outcome.entries.iter().eq(&level), "{seed}");
        assert!(outcome.turns < level.len() as f64 / PAGE as f64 * 0.8, "{}", outcome.turns);
    }
}

#[test]
fn bounds_of_the_caller_hold_for_every_stretch() {
    for seed in 0..20 {
        let mut store = Store::new(shaped("hex", 8000, &mut RandomNumbers(seed)), seed % 2 == 0);
        let listed = ListingBounds {
            start_after: Some("2".into()),
            end_before: Some(["d", "zz", "2f"][seed as usize % 3].into()),
            ..ListingBounds::default()
        };
        let outcome = list(&mut store, &listed, KeyOrder::Keys, seed, unchanged).unwrap();
        let inside = |key: &&String| key.as_str() > "2" && Some(key.as_str()) < listed.end_before.as_deref();
        assert!(outcome.entries.iter().eq(store.keys.iter().filter(inside)), "{seed}");
    }
}

/// Returns a keyspace after its first page of 100 numbered keys. More pages follow.
fn begun() -> (Keyspace, PageRequest) {
    let mut keyspace = Keyspace::new(
        ListingBounds { prefix: "k/".into(), ..ListingBounds::default() },
        KeyOrder::Keys,
        true,
        false,
    );
    let first = keyspace.ask().unwrap();
    come(&mut keyspace, &first, 0..100).unwrap();
    keyspace.ended(first.stretch, Some("t".into()), PAGE_TIME).unwrap();
    let second = keyspace.ask().unwrap();
    assert_eq!(second.token.as_deref(), Some("t"));
    (keyspace, second)
}

fn come(
    keyspace: &mut Keyspace,
    ask: &PageRequest,
    numbers: std::ops::Range<usize>,
) -> Result<usize, ListingFault> {
    let keys: Vec<_> = numbers.map(|n| format!("k/{n:04}")).collect();
    keyspace.came(ask.stretch, EntryKind::Objects, keys.iter().map(String::as_str))
}

#[test]
fn a_listing_out_of_order_is_an_error_that_names_the_key() {
    let (mut keyspace, ask) = begun();
    let repeated = come(&mut keyspace, &ask, 0..100).unwrap_err();
    assert_eq!(repeated, ListingFault::Backwards("k/0099".into(), "k/0000".into()));
    assert_eq!(repeated.key(), Some("k/0000"));
    let (mut keyspace, ask) = begun();
    let keys = ["k/0200", "k/0202", "k/0201"];
    let unsorted = keyspace.came(ask.stretch, EntryKind::Objects, keys.into_iter()).unwrap_err();
    assert_eq!(unsorted, ListingFault::Backwards("k/0202".into(), "k/0201".into()));
    let (mut keyspace, ask) = begun();
    let twice = keyspace.came(ask.stretch, EntryKind::Objects, ["k/0200", "k/0200"].into_iter()).unwrap_err();
    assert!(matches!(twice, ListingFault::Backwards(..)));
    let (mut keyspace, ask) = begun();
    let outside = keyspace.came(ask.stretch, EntryKind::Objects, ["l/0200"].into_iter()).unwrap_err();
    assert_eq!(outside, ListingFault::Outside("l/0200".into()));
}

#[test]
fn a_token_that_has_come_before_ends_the_listing_with_an_error() {
    let (mut keyspace, ask) = begun();
    assert_eq!(
        keyspace.ended(ask.stretch, Some("t".into()), PAGE_TIME),
        Err(ListingFault::Repeated(Some("k/0099".into())))
    );
    // The store returns pages without keys, and a later page's token has come before.
    let (mut keyspace, mut ask) = begun();
    let mut ended = Ok(());
    for token in ["a", "b", "a"] {
        ended = keyspace.ended(ask.stretch, Some(token.into()), PAGE_TIME);
        keyspace.taken(ask.stretch);
        if let Some(next) = keyspace.ask() {
            ask = next;
        }
    }
    assert!(matches!(ended, Err(ListingFault::Repeated(_))));
    // The store keeps returning pages without keys, each with a new token.
    let (mut keyspace, mut ask) = begun();
    let endless = (0..).find_map(|n| {
        let ended = keyspace.ended(ask.stretch, Some(n.to_string()), PAGE_TIME);
        keyspace.taken(ask.stretch);
        if let Some(next) = keyspace.ask() {
            ask = next;
        }
        ended.err()
    });
    assert!(matches!(endless, Some(ListingFault::Endless(_))));
}

#[test]
fn a_store_that_ignores_cuts_is_listed_page_by_page() {
    let mut keyspace = Keyspace::new(ListingBounds::default(), KeyOrder::Arrival, true, true);
    let keys: Vec<String> = (0..3000).map(|n| format!("{n:05}")).collect();
    let (mut entries, mut waiting, mut requests) = (Vec::new(), VecDeque::new(), 0);
    loop {
        while let Some(ask) = keyspace.ask() {
            requests += 1;
            waiting.push_back(ask);
        }
        // Answer the last request first, so that requests behind cuts are answered before the first stretch
        // continues.
        let Some(ask) = waiting.pop_back() else { break };
        let from: usize = ask.token.as_deref().map_or(0, |token| token.parse().unwrap());
        let page = &keys[from..keys.len().min(from + PAGE)];
        let taken = keyspace.came(ask.stretch, EntryKind::Objects, page.iter().map(String::as_str)).unwrap();
        entries.extend_from_slice(&page[..taken]);
        let next = (from + PAGE < keys.len()).then(|| (from + PAGE).to_string());
        keyspace.ended(ask.stretch, next, PAGE_TIME).unwrap();
        keyspace.taken(ask.stretch);
    }
    assert!(keyspace.is_over() && entries == keys);
    assert!((31..45).contains(&requests), "{requests}");
}

#[test]
fn a_page_by_key_whose_keys_were_all_dropped_is_requested_by_token() {
    let mut keyspace = Keyspace::new(ListingBounds::default(), KeyOrder::Keys, true, true);
    let keys: Vec<String> = (0..250).map(|n| format!("{n:05}")).collect();
    let (mut entries, mut by_token) = (Vec::new(), 0);
    while let Some(ask) = keyspace.ask() {
        // The store ignores the key at which a page should start, and its client drops the keys before that key.
        let from: usize = ask.token.as_deref().map_or(0, |token| token.parse().unwrap());
        by_token += usize::from(ask.token.is_some());
        let page = keys[from..keys.len().min(from + PAGE)].iter();
        let start = ask.start_after.as_deref().unwrap_or_default();
        let page: Vec<&str> = page.map(String::as_str).filter(|key| *key > start).collect();
        let taken = keyspace.came(ask.stretch, EntryKind::Objects, page.iter().copied()).unwrap();
        entries.extend(page[..taken].iter().map(|key| (*key).to_owned()));
        let next = (from + PAGE < keys.len()).then(|| (from + PAGE).to_string());
        keyspace.ended(ask.stretch, next, Duration::from_millis(10)).unwrap();
        keyspace.taken(ask.stretch);
    }
    assert!(keyspace.is_over() && entries == keys, "{}", entries.len());
    assert_eq!(by_token, 2);
}

#[test]
fn keys_skipped_behind_an_ignored_cut_are_an_error() {
    let mut keyspace = Keyspace::new(ListingBounds::default(), KeyOrder::Arrival, true, true);
    let keys: Vec<String> = (0..200).chain(900_000..900_250).map(|n| format!("{n:06}")).collect();
    let (mut entries, mut listing_fault) = (0, None);
    let ranges = |ask: &PageRequest| {
        let from: usize = ask.token.as_deref().map_or(0, |token| token.parse().unwrap());
        let end = keys.len().min(from + PAGE);
        (from, from + (end - from) / 2, end)
    };
    while listing_fault.is_none() && !keyspace.is_over() {
        let asked: Vec<PageRequest> = std::iter::from_fn(|| keyspace.ask()).collect();
        // The first halves of all pages arrive before any second half.
        let halves = asked.iter().map(|ask| (ask, false)).chain(asked.iter().map(|ask| (ask, true)));
        for (ask, is_second) in halves {
            let (from, middle, end) = ranges(ask);
            let some = if is_second { &keys[middle..end] } else { &keys[from..middle] };
            let came = keyspace.came(ask.stretch, EntryKind::Objects, some.iter().map(String::as_str));
            let ended = came.and_then(|taken| {
                entries += taken;
                let next = (end < keys.len()).then(|| end.to_string());
                if is_second { keyspace.ended(ask.stretch, next, PAGE_TIME) } else { Ok(()) }
            });
            match ended {
                Ok(()) if is_second => keyspace.taken(ask.stretch),
                Ok(()) => {}
                Err(error) => {
                    listing_fault = Some(error);
                    break;
                }
            }
        }
    }
    assert!(listing_fault.is_some() || entries == keys.len(), "{entries} of {}", keys.len());
}

#[test]
fn what_a_store_lists_in_no_order_is_one_chain() {
    let mut keyspace = Keyspace::new(ListingBounds::default(), KeyOrder::Keys, false, true);
    for token in [Some("1"), Some("2"), Some("3"), None] {
        let ask = keyspace.ask().unwrap();
        assert_eq!(keyspace.ask(), None);
        assert_eq!(keyspace.came(ask.stretch, EntryKind::Objects, ["b", "c", "a"].into_iter()), Ok(3));
        keyspace.ended(ask.stretch, token.map(str::to_owned), PAGE_TIME).unwrap();
        keyspace.taken(ask.stretch);
    }
    assert!(keyspace.is_over());
}

#[test]
fn a_store_that_slows_down_is_asked_for_fewer_pages_at_once() {
    let pages_at_once = |time: fn(u64) -> Duration| {
        let mut keyspace = Keyspace::new(ListingBounds::default(), KeyOrder::Arrival, true, true);
        let store = Store::new(shaped("hex", 30_000, &mut RandomNumbers(1)), false);
        let mut asks = VecDeque::new();
        let mut most = 0;
        for turn in 0.. {
            while let Some(ask) = keyspace.ask() {
                asks.push_back(ask);
            }
            if turn > 60 {
                most = most.max(asks.len());
            }
            let took = time(asks.len() as u64);
            let Some(ask) = asks.pop_front() else { break };
            let answer = store.answer(&ListingBounds::default(), &ask);
            keyspace
                .came(ask.stretch, EntryKind::Objects, answer.objects.iter().map(String::as_str))
                .unwrap();
            keyspace.ended(ask.stretch, answer.next, took).unwrap();
            keyspace.taken(ask.stretch);
        }
        most
    };
    assert_eq!(pages_at_once(|_| Duration::from_millis(50)), AT_ONCE_MAX);
    // This store sends one page after the other, however many are requested.
    assert!(pages_at_once(|n| Duration::from_millis(50 * n)) <= 4);
    // This store has four cores, so it works on four pages at once.
    assert!((5..12).contains(&pages_at_once(|n| Duration::from_millis(50 * n.div_ceil(4)))));
}

/// The cost of a listing of a store that is 20 ms away and has two cores.
#[derive(Debug)]
struct Cost {
    requests: usize,
    /// Entries that the store sent, including those behind the requested stretch.
    sent: usize,
    seconds: f64,
}

/// Lists a store that takes 2 ms of one of its cores for each page and 24 us for each key, as MinIO does.
fn cost_on_two_cores(store: &Store, order: KeyOrder) -> Cost {
    let mut keyspace = Keyspace::new(ListingBounds::default(), order, true, !store.stops);
    let mut cores = [0_u64; 2];
    let mut under_way: BinaryHeap<(std::cmp::Reverse<u64>, u64)> = BinaryHeap::new();
    let mut asked: HashMap<u64, (PageRequest, Answer, u64)> = HashMap::new();
    let (mut now_us, mut requests, mut sent) = (0, 0, 0);
    let mut shelf: HashMap<StretchId, usize> = HashMap::new();
    loop {
        while let Some(ask) = keyspace.ask() {
            requests += 1;
            let answer = store.answer(&ListingBounds::default(), &ask);
            sent += answer.objects.len();
            let core = usize::from(cores[1] < cores[0]);
            cores[core] = cores[core].max(now_us + 10_000) + 2_000 + 24 * answer.objects.len() as u64;
            under_way.push((std::cmp::Reverse(cores[core] + 10_000), requests));
            asked.insert(requests, (ask, answer, now_us));
        }
        let Some((std::cmp::Reverse(at), number)) = under_way.pop() else { break };
        now_us = at;
        let (ask, answer, since) = asked.remove(&number).unwrap();
        keyspace.came(ask.stretch, EntryKind::Objects, answer.objects.iter().map(String::as_str)).unwrap();
        keyspace.ended(ask.stretch, answer.next, Duration::from_micros(now_us - since)).unwrap();
        match order {
            KeyOrder::Arrival => keyspace.taken(ask.stretch),
            KeyOrder::Keys => {
                *shelf.entry(ask.stretch).or_default() += 1;
                while let Some(front) = keyspace.front()
                    && let Some(pages) = shelf.get_mut(&front).filter(|pages| **pages > 0)
                {
                    *pages -= 1;
                    keyspace.taken(front);
                }
            }
        }
    }
    assert!(keyspace.is_over());
    Cost { requests: requests as usize, sent, seconds: now_us as f64 / 1e6 }
}

#[test]
fn little_of_what_a_store_of_two_cores_sends_is_thrown_away() {
    // 50 full pages keep the store's two cores busy for 0.65 s. A client that knew the best keys for cuts
    // would list them in 0.67 s. Requesting one page after the other takes 2.3 s.
    let tenfold = (0..50_000).map(|i| format!("list/d{}/{:05}.txt", i / 5000, i % 5000)).collect();
    let shapes = SHAPES.iter().map(|shape| (*shape, shaped(shape, 50_000, &mut RandomNumbers(1))));
    for (shape, keys) in shapes.chain([("tenfold", tenfold)]) {
        let mut store = Store::new(keys, false);
        store.page = 1000;
        for order in [KeyOrder::Keys, KeyOrder::Arrival] {
            let cost = cost_on_two_cores(&store, order);
            assert!(cost.requests <= 90, "{shape} {order:?}: {cost:?}");
            assert!(cost.sent as f64 <= 1.3 * store.keys.len() as f64, "{shape} {order:?}: {cost:?}");
            assert!(cost.seconds <= 1.05, "{shape} {order:?}: {cost:?}");
        }
    }
}

#[test]
fn a_stretch_is_asked_for_by_what_its_keys_begin_with() {
    let keys = (0..30_000).map(|i| format!("d{}/{:05}", i / 5000, i % 5000));
    let mut store = Store::new(keys, false);
    store.page = 1000;
    let mut keyspace = Keyspace::new(ListingBounds::default(), KeyOrder::Keys, true, true);
    let (mut narrow, mut asks) = (0, VecDeque::new());
    while !keyspace.is_over() {
        while let Some(ask) = keyspace.ask() {
            asks.push_back(ask);
        }
        let ask = asks.pop_front().unwrap();
        let inside = store.keys.iter().filter(|key| ask.start_after.as_ref() < Some(key) && ask.end.has(key));
        assert!(inside.into_iter().all(|key| key.starts_with(&ask.prefix)), "{ask:?}");
        narrow += usize::from(ask.prefix.contains('/'));
        let answer = store.answer(&ListingBounds::default(), &ask);
        keyspace.came(ask.stretch, EntryKind::Objects, answer.objects.iter().map(String::as_str)).unwrap();
        keyspace.ended(ask.stretch, answer.next, PAGE_TIME).unwrap();
        keyspace.taken(ask.stretch);
    }
    assert!(narrow >= 10, "{narrow}");
}
