//! The journal of a large download. It lists the ranges of the temporary file that are written, each with its
//! checksum. An entry of this list is a *claim*. After an interruption, the next run reads the journal and
//! fetches only the missing ranges.
//!
//! A header names the object and its version. Records of 32 bytes follow, each with its own CRC32C. A reader
//! ignores records that were not written, or only partly written. The other records stay valid. All numbers
//! are little endian.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

use crc_fast::CrcAlgorithm;
use laneway_store::Version;

use crate::content::checksum::{Crc, RangeChecksums};
use crate::plan::slices::CLAIM_LEN;

const MAGIC: &[u8; 16] = b"laneway journal\n";
/// The version of the format. Raise it when a field changes its meaning. Laneway doesn't resume from a
/// journal of another format.
const FORMAT: u8 = 1;
/// The bit of a record's length that is set if the store's checksums have confirmed the range.
const CHECKED: u32 = 1 << 31;
/// The size of a record in bytes: start (8), checksum (8), boot (8), length (4), the record's CRC32C (4). A
/// page holds a whole number of records, so no record crosses the end of a page.
const RECORD: usize = 32;
const CHECK_AT: usize = RECORD - 4;
/// A journal may have one record for each MiB of the object, and this many more. The reason is that claims
/// are shorter than a MiB at the ends of slices and where connections broke.
const RECORDS_SPARE: u64 = 1 << 16;

/// The object and version that the file receives, and the kind of checksum in its claims.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DownloadSubject {
    pub(crate) url: String,
    pub(crate) version: Version,
    pub(crate) size: u64,
    pub(crate) crc: Crc,
}

/// A range of the file that was written, with its checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Claim {
    pub(crate) start: u64,
    pub(crate) len: u32,
    /// The checksum, of the kind in the [`DownloadSubject`].
    pub(crate) sum: u64,
    /// Identifies the machine's boot at the time when the range was written; see [`crate::local::platform`].
    pub(crate) boot: u64,
    /// True if the store sent checksums of these bytes with the bytes, and they were right.
    pub(crate) is_checked: bool,
}

impl Claim {
    pub(crate) fn range(&self) -> std::ops::Range<u64> {
        self.start..self.start.saturating_add(u64::from(self.len))
    }

    pub(crate) fn run(&self, crc: Crc) -> RangeChecksums {
        RangeChecksums::known(u64::from(self.len), crc, self.sum).checked(self.is_checked)
    }
}

impl DownloadSubject {
    /// Returns the header of this subject's journal. A journal belongs to this object and version if it
    /// begins with exactly these bytes.
    pub(crate) fn header(&self) -> Vec<u8> {
        let (kind, version) = match &self.version {
            Version::Generation(generation) => (1, generation.to_string()),
            Version::ETag(etag) => (2, etag.clone()),
            // Later kinds of versions can share the number 0, because their text begins with the kind.
            other => (0, other.to_string()),
        };
        let crc = match self.crc {
            Crc::Crc32c => 1,
            Crc::Crc64nvme => 2,
            Crc::Crc32 => 3,
        };
        let mut header = MAGIC.to_vec();
        header.extend([FORMAT, kind, crc, 0]);
        header.extend(self.size.to_le_bytes());
        for text in [&self.url, &version] {
            header.extend((text.len() as u32).to_le_bytes());
            header.extend(text.as_bytes());
        }
        header.resize(header.len().next_multiple_of(RECORD), 0);
        header
    }

    /// Returns the maximum size in bytes of this subject's journal. A larger file can't be a journal of this
    /// subject.
    pub(crate) fn journal_max(&self) -> u64 {
        self.header().len() as u64 + (self.size / CLAIM_LEN + RECORDS_SPARE) * RECORD as u64
    }
}

/// Returns a number that is included in each record's CRC32C. If records of another object's journal remain
/// in the file, their CRC32C is wrong, so readers ignore them.
pub(super) fn seal(header: &[u8]) -> u32 {
    crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, header) as u32
}

fn check(seal: u32, record: &[u8]) -> u32 {
    let mut crc = crc_fast::Digest::new(CrcAlgorithm::Crc32Iscsi);
    crc.update(&seal.to_le_bytes());
    crc.update(record);
    crc.finalize() as u32
}

pub(super) fn encode(claim: &Claim, seal: u32) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    record[..8].copy_from_slice(&claim.start.to_le_bytes());
    record[8..16].copy_from_slice(&claim.sum.to_le_bytes());
    record[16..24].copy_from_slice(&claim.boot.to_le_bytes());
    let checked = if claim.is_checked { CHECKED } else { 0 };
    record[24..CHECK_AT].copy_from_slice(&(claim.len | checked).to_le_bytes());
    let check = check(seal, &record[..CHECK_AT]);
    record[CHECK_AT..].copy_from_slice(&check.to_le_bytes());
    record
}

fn decode(record: &[u8], seal: u32) -> Option<Claim> {
    let number = |from: usize| Some(u64::from_le_bytes(record.get(from..from + 8)?.try_into().ok()?));
    let short = |from: usize| Some(u32::from_le_bytes(record.get(from..from + 4)?.try_into().ok()?));
    let len = short(24)?;
    let (is_checked, len) = (len & CHECKED != 0, len & !CHECKED);
    let claim = Claim { start: number(0)?, sum: number(8)?, boot: number(16)?, len, is_checked };
    (claim.len > 0 && short(CHECK_AT)? == check(seal, &record[..CHECK_AT])).then_some(claim)
}

pub(super) fn url(header: &[u8]) -> Option<&str> {
    let rest = header.strip_prefix(MAGIC).filter(|rest| rest.first() == Some(&FORMAT))?;
    // Skip the format, the two kinds, a zero byte and the size.
    let rest = rest.get(4 + 8..)?;
    let len = u32::from_le_bytes(rest.get(..4)?.try_into().ok()?) as usize;
    std::str::from_utf8(rest.get(4..4 + len)?).ok()
}

/// Returns the claims in a journal, or `None` if the bytes don't begin with this header.
pub(crate) fn read(bytes: &[u8], header: &[u8]) -> Option<Vec<Claim>> {
    Some(claims(bytes.strip_prefix(header)?, seal(header)).collect())
}

fn claims(records: &[u8], seal: u32) -> impl Iterator<Item = Claim> {
    records.chunks_exact(RECORD).filter_map(move |record| decode(record, seal))
}

#[derive(Debug)]
pub(crate) struct DownloadJournal {
    file: File,
    /// The header's length in bytes.
    header: u64,
    seal: u32,
    crc: Crc,
    boot: u64,
    /// The offset in the file at which the next record is written.
    end: AtomicU64,
    /// The number of the download's bytes that claims cover.
    claimed: AtomicU64,
}

impl DownloadJournal {
    /// Continues the journal in `file`, whose valid claims cover `claimed` bytes. Begins a new journal if
    /// `claimed` is `None`.
    ///
    /// # Errors
    /// The file system's error.
    pub(crate) fn new(
        file: File,
        subject: &DownloadSubject,
        boot: u64,
        claimed: Option<u64>,
    ) -> io::Result<Self> {
        let header = subject.header();
        let end = match claimed {
            // If the last record was only partly written, let the next one overwrite it.
            Some(_) => {
                let len = file.metadata()?.len();
                len - len % RECORD as u64
            }
            None => {
                file.set_len(0)?;
                file.write_all_at(&header, 0)?;
                header.len() as u64
            }
        };
        let (end, claimed) = (AtomicU64::new(end), AtomicU64::new(claimed.unwrap_or(0)));
        let (seal, header) = (seal(&header), header.len() as u64);
        Ok(Self { file, header, seal, crc: subject.crc, boot, end, claimed })
    }

    /// Records that a range of bytes has been written to the file at `start`. Several threads may call this
    /// at the same time.
    pub(crate) fn claim(&self, start: u64, run: &RangeChecksums) {
        self.claimed.fetch_add(run.len, Ordering::Relaxed);
        self.record(start, run);
    }

    /// Writes the record of a claim. Doesn't add the claim's bytes to `claimed`, because the caller has
    /// already counted them.
    pub(crate) fn record(&self, start: u64, run: &RangeChecksums) {
        let (Some(sum), Ok(len)) = (run.value(self.crc), u32::try_from(run.len)) else { return };
        let claim = Claim { start, len, sum, boot: self.boot, is_checked: run.is_checked };
        let record = encode(&claim, self.seal);
        let at = self.end.fetch_add(RECORD as u64, Ordering::Relaxed);
        // Continue without the record: a later run would only have to fetch the range again.
        if let Err(e) = self.file.write_all_at(&record, at) {
            tracing::debug!(error = %e, "a record of the journal could not be written");
        }
    }

    /// Returns the claims from the machine's current boot, in no particular order. Claims from earlier boots
    /// are uncertain, because a crash may have lost the bytes. If boots can't be distinguished, returns no
    /// claims.
    ///
    /// # Errors
    /// The file system's error.
    pub(crate) fn claims(&self) -> io::Result<Vec<Claim>> {
        // Another thread may have increased `end` and not written its record yet, so read only what the file has.
        let end = self.end.load(Ordering::Relaxed).min(self.file.metadata()?.len());
        let mut bytes = vec![0; end.saturating_sub(self.header) as usize];
        self.file.read_exact_at(&mut bytes, self.header)?;
        let is_sure = |claim: &Claim| self.boot != 0 && claim.boot == self.boot;
        Ok(claims(&bytes, self.seal).filter(is_sure).collect())
    }

    pub(crate) fn claimed(&self) -> u64 {
        self.claimed.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::random::RandomNumbers;

    fn subject() -> DownloadSubject {
        DownloadSubject {
            url: "gs://b/k".into(),
            version: Version::Generation(7),
            size: 1 << 30,
            crc: Crc::Crc32c,
        }
    }

    fn written(subject: &DownloadSubject, claims: &[Claim]) -> Vec<u8> {
        let header = subject.header();
        let seal = seal(&header);
        [header]
            .into_iter()
            .chain(claims.iter().map(|claim| encode(claim, seal).to_vec()))
            .flatten()
            .collect()
    }

    fn some_claims(random: &mut RandomNumbers) -> Vec<Claim> {
        let claim = |random: &mut RandomNumbers| Claim {
            start: random.below(1 << 30),
            len: 1 + random.below(CLAIM_LEN) as u32,
            sum: random.below(u64::MAX),
            boot: random.below(3),
            is_checked: random.below(2) == 0,
        };
        (0..random.below(50)).map(|_| claim(random)).collect()
    }

    #[test]
    fn what_was_claimed_is_read_back() {
        for seed in 0..200 {
            let claims = some_claims(&mut RandomNumbers(seed));
            let bytes = written(&subject(), &claims);
            assert_eq!(read(&bytes, &subject().header()), Some(claims), "seed {seed}");
        }
    }

    #[test]
    fn a_journal_of_anything_else_says_nothing() {
        let bytes = written(&subject(), &some_claims(&mut RandomNumbers(1)));
        let others = [
            DownloadSubject { url: "gs://b/K".into(), ..subject() },
            DownloadSubject { url: "s3://b/k".into(), ..subject() },
            DownloadSubject { version: Version::Generation(8), ..subject() },
            DownloadSubject { version: Version::ETag("7".into()), ..subject() },
            DownloadSubject { size: (1 << 30) + 1, ..subject() },
            DownloadSubject { crc: Crc::Crc64nvme, ..subject() },
        ];
        for other in others {
            assert_eq!(read(&bytes, &other.header()), None, "{other:?}");
        }
        assert_eq!(read(b"", &subject().header()), None);
        assert_eq!(read(&subject().header()[..40], &subject().header()), None, "a torn header");
    }

    #[test]
    fn records_of_an_older_journal_in_the_same_file_say_nothing() {
        let older = DownloadSubject { version: Version::Generation(6), ..subject() };
        let claims = some_claims(&mut RandomNumbers(2));
        let mut bytes = subject().header();
        bytes.extend(&written(&older, &claims)[older.header().len()..]);
        assert_eq!(read(&bytes, &subject().header()), Some(Vec::new()));
    }

    /// Cuts a journal anywhere, and changes or zeroes random bytes. Every claim that can still be read must
    /// be one that was made.
    #[test]
    fn of_a_torn_or_damaged_journal_only_whole_records_are_believed() {
        let header = subject().header();
        for seed in 0..2_000 {
            let mut random = RandomNumbers(seed);
            let claims = some_claims(&mut random);
            let mut bytes = written(&subject(), &claims);
            let records = bytes.len() - header.len();
            bytes.truncate(header.len() + random.below(records as u64 + 1) as usize);
            let mut damaged = 0;
            for _ in 0..random.below(4) {
                let at = random.below((bytes.len() - header.len()) as u64) as usize + header.len();
                let Some(byte) = bytes.get_mut(at) else { continue };
                *byte = if random.below(2) == 0 { 0 } else { *byte ^ (1 << random.below(8)) };
                damaged += 1;
            }
            let left = read(&bytes, &header).unwrap();
            assert!(left.iter().all(|claim| claims.contains(claim)), "seed {seed}");
            let whole = (bytes.len() - header.len()) / RECORD;
            assert!(left.len() + damaged >= whole, "seed {seed}: a whole record was ignored");
        }
    }

    #[test]
    fn a_hole_between_records_hides_none_of_them() {
        let claims = some_claims(&mut RandomNumbers(3));
        let mut bytes = written(&subject(), &claims);
        let at = subject().header().len() + RECORD;
        bytes[at..at + RECORD].fill(0);
        let left = read(&bytes, &subject().header()).unwrap();
        assert_eq!(left.len(), claims.len() - 1);
    }

    #[test]
    fn records_are_appended_behind_what_holds() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j");
        let open =
            || File::options().read(true).write(true).create(true).truncate(false).open(&path).unwrap();
        let run = |len| RangeChecksums::known(len, Crc::Crc32c, len);
        let journal = DownloadJournal::new(open(), &subject(), 1, None).unwrap();
        journal.claim(0, &run(10));
        journal.claim(20, &run(5));
        assert_eq!(journal.claimed(), 15);
        // Add a third record that is torn.
        let len = std::fs::metadata(&path).unwrap().len();
        open().write_all_at(&[9; 7], len).unwrap();
        let journal = DownloadJournal::new(open(), &subject(), 2, Some(15)).unwrap();
        journal.claim(30, &run(1));
        let starts = |bytes: &[u8]| {
            let claims = read(bytes, &subject().header()).unwrap();
            claims.iter().map(|claim| (claim.start, claim.boot)).collect::<Vec<_>>()
        };
        assert_eq!(starts(&std::fs::read(&path).unwrap()), [(0, 1), (20, 1), (30, 2)]);
        assert_eq!(journal.claimed(), 16);
        DownloadJournal::new(open(), &subject(), 2, None).unwrap();
        assert_eq!(starts(&std::fs::read(&path).unwrap()), []);
    }
}
