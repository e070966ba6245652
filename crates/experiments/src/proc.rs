//! Facts about the machine and this process from Linux's `/proc`. On other systems, each function returns `None`, and
//! reports show the fact as unknown.

/// Returns the processor's name.
pub(crate) fn processor() -> Option<String> {
    let text = read("/proc/cpuinfo")?;
    field(&text, "model name").filter(|name| !name.is_empty()).map(str::to_owned)
}

/// Returns the machine's memory in bytes.
pub(crate) fn memory_total() -> Option<u64> {
    kibibytes(&read("/proc/meminfo")?, "MemTotal")
}

/// Returns the bytes of memory that programs can still allocate, as the kernel estimates them.
pub(crate) fn memory_available() -> Option<u64> {
    kibibytes(&read("/proc/meminfo")?, "MemAvailable")
}

/// Returns this process's peak resident memory in bytes. `getrusage` can't be used for this, because for the child of a
/// large process it reports at least the parent's size.
pub(crate) fn memory_peak() -> Option<u64> {
    kibibytes(&read("/proc/self/status")?, "VmHWM")
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// Returns the text after `name:` in the first line that begins with it.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(key, _)| key.trim_end() == name).map(|(_, value)| value.trim())
}

fn kibibytes(text: &str, name: &str) -> Option<u64> {
    field(text, name)?.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_kibibytes() {
        let text = "MemTotal:       24689764 kB\nMemFree:        21000000 kB\nMemAvailable:   22000000 kB\n";
        assert_eq!(kibibytes(text, "MemAvailable"), Some(22_000_000 * 1024));
        assert_eq!(kibibytes("Name:\tx\nVmPeak:\t  9 kB\nVmHWM:\t    1234 kB\n", "VmHWM"), Some(1234 * 1024));
        assert_eq!((kibibytes("MemTotal: 1 kB\n", "MemAvailable"), kibibytes("", "VmHWM")), (None, None));
    }

    #[test]
    fn a_field_is_known_by_its_whole_name() {
        assert_eq!(
            field("processor\t: 0\nmodel\t: 4\nmodel name\t: Fast 9000\n", "model name"),
            Some("Fast 9000")
        );
        assert_eq!(field("model name\t:\n", "model name"), Some(""));
        assert_eq!(field("MemTotal: 1 kB", "Mem"), None);
    }
}
