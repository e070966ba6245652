//! Computes checksums of bytes while they are transferred, combines the checksums of slices, and compares the
//! result with the checksums that a store reports.

use std::io::{self, Read};
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crc_fast::{CrcAlgorithm, checksum_combine};
use laneway_store::{Checksums, PartsAlgorithm, PartsDigest};
use md5::{Digest as _, Md5};

use crate::event::Verified;
use crate::plan::slices::CLAIM_LEN;

/// The kinds of checksums that Laneway computes from a body's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct ChecksumSet {
    pub(crate) crc32c: bool,
    pub(crate) crc64nvme: bool,
    pub(crate) crc32: bool,
    /// The MD5s of two ranges can't be combined into the MD5 of both ranges. So a single sink must receive
    /// all bytes in order.
    pub(crate) md5: bool,
}

impl ChecksumSet {
    /// The checksum that uploads need.
    pub(crate) const CRC32C: Self = Self { crc32c: true, crc64nvme: false, crc32: false, md5: false };

    /// Returns the union of both sets.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            crc32c: self.crc32c || other.crc32c,
            crc64nvme: self.crc64nvme || other.crc64nvme,
            crc32: self.crc32 || other.crc32,
            md5: self.md5 || other.md5,
        }
    }

    /// Returns the checksum to compute while bytes arrive: the cheapest one that the store also reports. If
    /// the store reports none that Laneway can compute, returns CRC32C, so that a source and its copy can
    /// still be compared. `in_order` is true if the bytes arrive in order, as MD5 requires.
    pub(crate) fn to_compare_with(stored: &Checksums, in_order: bool) -> Self {
        let none = Self::default();
        if stored.crc32c.is_some() {
            Self::CRC32C
        } else if stored.crc64nvme.is_some() {
            Self { crc64nvme: true, ..none }
        } else if stored.crc32.is_some() {
            Self { crc32: true, ..none }
        } else if stored.md5.is_some() && in_order {
            Self { md5: true, ..none }
        } else if let Some(PartsDigest::Crc32(_)) = stored.parts.map(|parts| parts.digest) {
            Self { crc32: true, ..none }
        } else {
            Self::CRC32C
        }
    }
}

/// A kind of checksum that can be combined: the checksums of an object's parts give the checksum of the whole
/// object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Crc {
    Crc32c,
    Crc64nvme,
    Crc32,
}

impl Crc {
    /// Returns the kind of the combinable checksum that the store reports of an object, if it reports one.
    pub(crate) fn given_in(stored: &Checksums) -> Option<Self> {
        Self::of(ChecksumSet::to_compare_with(stored, false)).filter(|crc| crc.is_in(stored))
    }

    fn is_in(self, stored: &Checksums) -> bool {
        match self {
            Self::Crc32c => stored.crc32c.is_some(),
            Self::Crc64nvme => stored.crc64nvme.is_some(),
            Self::Crc32 => stored.crc32.is_some(),
        }
    }

    /// Returns the checksum that S3 computes of each part with this algorithm, or `None` if such checksums
    /// can't be combined.
    pub(crate) fn of_parts(algorithm: PartsAlgorithm) -> Option<Self> {
        match algorithm {
            PartsAlgorithm::Crc32c => Some(Self::Crc32c),
            PartsAlgorithm::Crc32 => Some(Self::Crc32),
            PartsAlgorithm::Sha256 | PartsAlgorithm::Sha1 | PartsAlgorithm::Md5 => None,
        }
    }

    pub(crate) fn of(wanted: ChecksumSet) -> Option<Self> {
        [Self::Crc32c, Self::Crc64nvme, Self::Crc32].into_iter().find(|crc| crc.wanted() == wanted)
    }

    /// Returns the set that holds only this checksum.
    pub(crate) fn wanted(self) -> ChecksumSet {
        match self {
            Self::Crc32c => ChecksumSet::CRC32C,
            Self::Crc64nvme => ChecksumSet { crc64nvme: true, ..ChecksumSet::default() },
            Self::Crc32 => ChecksumSet { crc32: true, ..ChecksumSet::default() },
        }
    }
}

/// Computes the checksums of a series of bytes.
#[derive(Clone, Debug)]
pub(crate) struct ChecksumHasher {
    crc32c: Option<crc_fast::Digest>,
    crc64nvme: Option<crc_fast::Digest>,
    crc32: Option<crc_fast::Digest>,
    md5: Option<Md5>,
    len: u64,
}

impl ChecksumHasher {
    pub(crate) fn new(wanted: ChecksumSet) -> Self {
        Self {
            crc32c: wanted.crc32c.then(|| crc_fast::Digest::new(CrcAlgorithm::Crc32Iscsi)),
            crc64nvme: wanted.crc64nvme.then(|| crc_fast::Digest::new(CrcAlgorithm::Crc64Nvme)),
            crc32: wanted.crc32.then(|| crc_fast::Digest::new(CrcAlgorithm::Crc32IsoHdlc)),
            md5: wanted.md5.then(Md5::new),
            len: 0,
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        if let Some(crc) = &mut self.crc32c {
            crc.update(bytes);
        }
        if let Some(crc) = &mut self.crc64nvme {
            crc.update(bytes);
        }
        if let Some(crc) = &mut self.crc32 {
            crc.update(bytes);
        }
        if let Some(md5) = &mut self.md5 {
            md5.update(bytes);
        }
        self.len += bytes.len() as u64;
    }

    /// Returns how many bytes have been added.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn finish(self) -> RangeChecksums {
        RangeChecksums {
            len: self.len,
            crc32c: self.crc32c.map(|crc| crc.finalize() as u32),
            crc64nvme: self.crc64nvme.map(|crc| crc.finalize()),
            crc32: self.crc32.map(|crc| crc.finalize() as u32),
            md5: self.md5.map(|md5| md5.finalize().into()),
            is_checked: false,
        }
    }
}

/// The number of bytes of a range, and their checksums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RangeChecksums {
    pub(crate) len: u64,
    pub(crate) crc32c: Option<u32>,
    pub(crate) crc64nvme: Option<u64>,
    pub(crate) crc32: Option<u32>,
    md5: Option<[u8; 16]>,
    /// True if the store sent checksums of these bytes with the bytes, and they were right.
    pub(crate) is_checked: bool,
}

impl RangeChecksums {
    /// Returns the same checksums of bytes that the store's own checksums have confirmed, or not.
    pub(crate) fn checked(self, is_checked: bool) -> Self {
        Self { is_checked, ..self }
    }

    pub(crate) fn of(bytes: &[u8], wanted: ChecksumSet) -> Self {
        let mut hashing = ChecksumHasher::new(wanted);
        hashing.update(bytes);
        hashing.finish()
    }

    /// Returns the checksums of these bytes followed by the bytes of `next`. The result has an MD5 only if
    /// one of the two ranges is empty.
    pub(crate) fn then(self, next: Self) -> Self {
        if next.len == 0 {
            return self;
        }
        if self.len == 0 {
            return next;
        }
        let crc32c = self
            .crc32c
            .zip(next.crc32c)
            .map(|(a, b)| combine(CrcAlgorithm::Crc32Iscsi, u64::from(a), u64::from(b), next.len) as u32);
        let crc64nvme =
            self.crc64nvme.zip(next.crc64nvme).map(|(a, b)| combine(CrcAlgorithm::Crc64Nvme, a, b, next.len));
        let crc32 = self
            .crc32
            .zip(next.crc32)
            .map(|(a, b)| combine(CrcAlgorithm::Crc32IsoHdlc, u64::from(a), u64::from(b), next.len) as u32);
        let is_checked = self.is_checked && next.is_checked;
        Self { len: self.len + next.len, crc32c, crc64nvme, crc32, md5: None, is_checked }
    }

    /// Returns the checksums of a range of bytes, from its length and the only checksum that is known.
    pub(crate) fn known(len: u64, crc: Crc, value: u64) -> Self {
        let none = Self { len, crc32c: None, crc64nvme: None, crc32: None, md5: None, is_checked: false };
        match crc {
            Crc::Crc32c => Self { crc32c: Some(value as u32), ..none },
            Crc::Crc64nvme => Self { crc64nvme: Some(value), ..none },
            Crc::Crc32 => Self { crc32: Some(value as u32), ..none },
        }
    }

    /// Returns the checksum of this kind, if it was computed.
    pub(crate) fn value(&self, crc: Crc) -> Option<u64> {
        match crc {
            Crc::Crc32c => self.crc32c.map(u64::from),
            Crc::Crc64nvme => self.crc64nvme,
            Crc::Crc32 => self.crc32.map(u64::from),
        }
    }

    pub(crate) fn checksums(&self) -> Checksums {
        let mut sums = Checksums::default();
        sums.crc32c = self.crc32c;
        sums.crc64nvme = self.crc64nvme;
        sums.crc32 = self.crc32;
        sums.md5 = self.md5;
        sums
    }

    /// Compares these checksums with the checksums that a store reports for the same bytes. Returns the kind
    /// of checksum that was compared. If the two have no kind in common, returns `InTransit` if the store's
    /// checksums of the sent bytes were right, and else `Unverified`.
    ///
    /// # Errors
    /// A text with the name of the checksum that differs, and both values.
    pub(crate) fn verify(&self, stored: &Checksums) -> Result<Verified, String> {
        let differs = |name: &str, ours: &[u8], theirs: &[u8]| {
            let (ours, theirs) = (written(ours), written(theirs));
            Err(format!("the {name} of the bytes is {ours}, but the store reports {theirs}"))
        };
        if let (Some(ours), Some(theirs)) = (self.crc32c, stored.crc32c) {
            if ours != theirs {
                return differs("crc32c", &ours.to_be_bytes(), &theirs.to_be_bytes());
            }
            return Ok(Verified::Crc32c);
        }
        if let (Some(ours), Some(theirs)) = (self.crc64nvme, stored.crc64nvme) {
            if ours != theirs {
                return differs("crc64nvme", &ours.to_be_bytes(), &theirs.to_be_bytes());
            }
            return Ok(Verified::Crc64nvme);
        }
        if let (Some(ours), Some(theirs)) = (self.crc32, stored.crc32) {
            if ours != theirs {
                return differs("crc32", &ours.to_be_bytes(), &theirs.to_be_bytes());
            }
            return Ok(Verified::Crc32);
        }
        // If an object has only one part, the part's digest is the digest of all bytes.
        if let Some(theirs) = stored.parts.filter(|theirs| theirs.parts == 1)
            && let algorithm = theirs.digest.algorithm()
            && let Some(part) = Crc::of_parts(algorithm).and_then(|crc| self.value(crc))
            && let Some(ours) = algorithm.over(&(part as u32).to_be_bytes())
        {
            if ours != theirs.digest {
                let name = format!("{} of parts", algorithm.name());
                return differs(&name, &ours.bytes(), &theirs.digest.bytes());
            }
            return Ok(Verified::of_parts(algorithm));
        }
        if let (Some(ours), Some(theirs)) = (self.md5, stored.md5) {
            if ours != theirs {
                return differs("md5", &ours, &theirs);
            }
            return Ok(Verified::Md5);
        }
        Ok(if self.is_checked { Verified::InTransit } else { Verified::Unverified })
    }
}

/// Returns S3's composite CRC32C of an object whose parts have these CRC32Cs. S3 writes the parts' CRC32Cs in
/// big endian, one after the other, and computes the CRC32C of these bytes.
pub(crate) fn composite_crc32c(parts: impl IntoIterator<Item = u32>) -> u32 {
    let mut crc = crc_fast::Digest::new(CrcAlgorithm::Crc32Iscsi);
    for part in parts {
        crc.update(&part.to_be_bytes());
    }
    crc.finalize() as u32
}

/// Returns a checksum as base64 text. Laneway shows all checksums in this form, with the highest byte first.
/// GCS and S3 use the same form in headers and listings, so users can compare the texts by eye.
pub(crate) fn written(sum: &[u8]) -> String {
    STANDARD.encode(sum)
}

/// The number of bytes that [`hash`] reads at a time.
const BUFFER: usize = 256 * 1024;

/// Reads all bytes, and returns their number and their CRC32C, CRC64NVME and MD5. You can compare these
/// checksums with those that a store reports.
///
/// ```
/// let (size, sums) = laneway::hash(&b"123456789"[..])?;
/// assert_eq!((size, sums.crc32c), (9, Some(0xe306_9283)));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// If reading fails.
pub fn hash(mut bytes: impl Read) -> io::Result<(u64, Checksums)> {
    let mut hashing =
        ChecksumHasher::new(ChecksumSet { crc32c: true, crc64nvme: true, crc32: false, md5: true });
    let mut buffer = vec![0; BUFFER];
    loop {
        match bytes.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => hashing.update(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let run = hashing.finish();
    Ok((run.len, run.checksums()))
}

/// Returns the CRC of bytes with the CRC `first`, followed by `len` bytes with the CRC `second`.
///
/// The general algorithm takes 16 us (57 us for 64 bits), about as long as hashing 1 MiB. The result is
/// linear in `first`. So for a second range of the usual length, the effect of each bit of `first` is
/// computed only once per process.
fn combine(algorithm: CrcAlgorithm, first: u64, second: u64, len: u64) -> u64 {
    static CRC32C: OnceLock<Shift> = OnceLock::new();
    static CRC32: OnceLock<Shift> = OnceLock::new();
    static CRC64NVME: OnceLock<Shift> = OnceLock::new();
    let shift = match algorithm {
        _ if len != CLAIM_LEN => None,
        CrcAlgorithm::Crc32Iscsi => Some((&CRC32C, 32)),
        CrcAlgorithm::Crc32IsoHdlc => Some((&CRC32, 32)),
        CrcAlgorithm::Crc64Nvme => Some((&CRC64NVME, 64)),
        _ => None,
    };
    match shift {
        Some((shift, bits)) => shift.get_or_init(|| Shift::new(algorithm, bits, len)).of(first) ^ second,
        None => checksum_combine(algorithm, first, second, len),
    }
}

/// A table that shows how appending a fixed number of zero bytes changes a CRC. Entry n is the result for
/// a CRC in which only bit n is set. The result for any CRC is the XOR of the entries of its set bits.
#[derive(Debug)]
struct Shift(Vec<u64>);

impl Shift {
    fn new(algorithm: CrcAlgorithm, bits: u32, len: u64) -> Self {
        Self((0..bits).map(|bit| checksum_combine(algorithm, 1 << bit, 0, len)).collect())
    }

    fn of(&self, crc: u64) -> u64 {
        let becomes = |(bit, image): (usize, &u64)| if crc >> bit & 1 == 1 { *image } else { 0 };
        self.0.iter().enumerate().map(becomes).fold(0, |sum, image| sum ^ image)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::random::RandomNumbers;
    use crate::plan::slices::CLAIM_LEN;

    const ALL: ChecksumSet = ChecksumSet { crc32c: true, crc64nvme: true, crc32: true, md5: true };

    #[test]
    fn the_published_check_values_come_out() {
        let run = RangeChecksums::of(b"123456789", ALL);
        assert_eq!(run.crc32c, Some(0xe306_9283));
        assert_eq!(run.crc64nvme, Some(0xae8b_1486_0a79_9888));
        assert_eq!(run.crc32, Some(0xcbf4_3926));
        assert_eq!(run.md5.map(|md5| written(&md5)).as_deref(), Some("JfnnlDI7RTiF9RgfG2JNCw=="));
    }

    #[test]
    fn runs_combine_to_the_checksum_of_the_whole_wherever_they_are_cut() {
        let bytes: Vec<u8> = (0..10_000u32).map(|i| (i * 7 + i / 251) as u8).collect();
        let wanted = ChecksumSet { md5: false, ..ALL };
        let whole = RangeChecksums::of(&bytes, wanted);
        for cut in [0, 1, 15, 4096, 9_999, 10_000] {
            let (head, tail) = bytes.split_at(cut);
            assert_eq!(
                RangeChecksums::of(head, wanted).then(RangeChecksums::of(tail, wanted)),
                whole,
                "cut at {cut}"
            );
        }
    }

    /// Combines the checksums of neighbouring ranges, as a download does.
    fn combined(ranges: &[&RangeChecksums]) -> RangeChecksums {
        let nothing = RangeChecksums::of(b"", WANTED_OF_PARTS);
        ranges.iter().fold(nothing, |whole, run| whole.then(**run))
    }

    const WANTED_OF_PARTS: ChecksumSet = ChecksumSet { crc32: false, md5: false, ..ALL };

    /// A fault can drop a range, write it twice, or swap two ranges.
    #[test]
    fn dropped_repeated_or_swapped_ranges_combine_to_a_wrong_checksum() {
        const CASES: u64 = 10_000;
        let mut random = RandomNumbers(15);
        let mut bytes = |len: usize| (0..len).map(|_| random.below(256) as u8).collect::<Vec<_>>();
        // In most cases all ranges but the last have the same length. Only every 20th case has ranges of
        // different lengths, because combining these takes longer.
        let claim = CLAIM_LEN as usize;
        let alike: Vec<_> = [claim; 12].into_iter().chain([5003]).map(&mut bytes).collect();
        let lens = [1, 2, 3, 8, 31, 64, 255, 1000, 4096, 5003, 65_536, claim - 1, claim, claim + 1];
        let any: Vec<_> = lens.into_iter().map(&mut bytes).chain([vec![0; 4096]]).collect();
        let runs = |pool: &[Vec<u8>]| -> Vec<RangeChecksums> {
            pool.iter().map(|bytes| RangeChecksums::of(bytes, WANTED_OF_PARTS)).collect()
        };
        let pools = [(runs(&alike), alike), (runs(&any), any)];
        let sums = |run: &RangeChecksums| (run.crc32c.unwrap(), run.crc64nvme.unwrap());
        let mut random = RandomNumbers(16);
        for case in 0..CASES {
            let (runs, pool) = &pools[usize::from(case.is_multiple_of(20))];
            let count = 2 + random.below(11) as usize;
            // Take each range once, because swapping two equal ranges would be no fault.
            let mut order: Vec<usize> = (0..runs.len()).collect();
            for i in 0..count {
                order.swap(i, i + random.below((runs.len() - i) as u64) as usize);
            }
            let right: Vec<&RangeChecksums> = order[..count].iter().map(|i| &runs[*i]).collect();
            let whole = combined(&right);
            let (one, mut other) = (random.below(count as u64) as usize, random.below(count as u64) as usize);
            if one == other {
                other = (other + 1) % count;
            }
            let mut wrong = [right.clone(), right.clone(), right.clone()];
            wrong[0].remove(one);
            wrong[1].insert(other, right[one]);
            wrong[2].swap(one, other);
            for (wrong, what) in wrong.iter().zip(["dropped", "repeated", "swapped"]) {
                let (right, wrong) = (sums(&whole), sums(&combined(wrong)));
                assert!(right.0 != wrong.0 && right.1 != wrong.1, "case {case}: {one}, {other} {what}");
            }
            // To save time, compute the checksum of all bytes only in every 500th case.
            if case.is_multiple_of(500) {
                let all: Vec<u8> = order[..count].iter().flat_map(|i| pool[*i].clone()).collect();
                assert_eq!(RangeChecksums::of(&all, WANTED_OF_PARTS), whole, "case {case}");
            }
        }
    }

    #[test]
    fn a_difference_is_told_and_an_unknown_checksum_is_no_success() {
        let run = RangeChecksums::of(b"abc", ChecksumSet::CRC32C);
        assert_eq!(run.verify(&Checksums::crc32c(0x364b_3fb7)), Ok(Verified::Crc32c));
        assert!(run.verify(&Checksums::crc32c(1)).unwrap_err().contains("crc32c"));
        let mut stored = Checksums::default();
        stored.md5 = Some([0; 16]);
        assert_eq!(run.verify(&stored), Ok(Verified::Unverified));
    }

    #[test]
    fn a_composite_of_one_part_is_compared_and_one_of_several_is_not() {
        let run = RangeChecksums::of(b"abc", ChecksumSet::CRC32C);
        let stored = |value, parts| {
            let mut stored = Checksums::default();
            let digest = PartsDigest::Crc32c(value);
            stored.parts = Some(laneway_store::Composite { digest, parts });
            stored
        };
        let value = composite_crc32c([0x364b_3fb7]);
        assert_eq!(run.verify(&stored(value, 1)), Ok(Verified::Composite));
        assert!(run.verify(&stored(value + 1, 1)).unwrap_err().contains("parts"));
        assert_eq!(run.verify(&stored(value, 2)), Ok(Verified::Unverified));
    }

    #[test]
    fn each_combinable_checksum_is_wanted_alone_and_known_again() {
        for crc in [Crc::Crc32c, Crc::Crc64nvme, Crc::Crc32] {
            assert_eq!(Crc::of(crc.wanted()), Some(crc));
            let run = RangeChecksums::of(b"abc", crc.wanted());
            assert_eq!(RangeChecksums::known(3, crc, run.value(crc).unwrap()), run);
        }
        assert_eq!(Crc::of(ALL), None);
        assert_eq!(Crc::of(ChecksumSet::default()), None);
    }

    #[test]
    fn only_what_can_be_compared_is_computed() {
        let mut stored = Checksums::default();
        stored.md5 = Some([0; 16]);
        assert!(ChecksumSet::to_compare_with(&stored, true).md5);
        assert_eq!(ChecksumSet::to_compare_with(&stored, false), ChecksumSet::CRC32C);
        stored.crc64nvme = Some(1);
        assert_eq!(
            ChecksumSet::to_compare_with(&stored, true),
            ChecksumSet { crc64nvme: true, ..ChecksumSet::default() }
        );
    }

    #[test]
    fn a_composite_is_the_crc_of_the_parts_crcs() {
        assert_eq!(composite_crc32c([]), 0);
        assert_eq!(
            Some(composite_crc32c([1, 2])),
            RangeChecksums::of(&[0, 0, 0, 1, 0, 0, 0, 2], ChecksumSet::CRC32C).crc32c
        );
    }

    #[test]
    fn the_short_way_comes_out_where_the_long_one_does() {
        let algorithms =
            [(CrcAlgorithm::Crc32Iscsi, 32), (CrcAlgorithm::Crc32IsoHdlc, 32), (CrcAlgorithm::Crc64Nvme, 64)];
        for (algorithm, bits) in algorithms {
            let mut random = RandomNumbers(7);
            for len in [CLAIM_LEN, CLAIM_LEN, CLAIM_LEN - 1, 0] {
                for _ in 0..50 {
                    let mut crc = || (random.below(u64::MAX) << 33 ^ random.below(u64::MAX)) >> (64 - bits);
                    let (first, second) = (crc(), crc());
                    let long = checksum_combine(algorithm, first, second, len);
                    assert_eq!(combine(algorithm, first, second, len), long, "{algorithm:?} {len}");
                }
            }
        }
    }
}
