//! What a measurement was made on.

use crate::room::kibibytes_in;

/// A machine, for people.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Kernel and its release.
    pub system: String,
    /// The processor's name.
    pub processor: String,
    /// Threads that it runs at once.
    pub cores: usize,
    /// Its memory.
    pub memory: String,
}

impl Machine {
    /// The machine that this runs on.
    pub fn this() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let uname = rustix::system::uname();
        let part = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        let memory = kibibytes_in(&read("/proc/meminfo"), "MemTotal:");
        Self {
            system: format!("{} {}", part(uname.sysname()), part(uname.release())),
            processor: processor_in(&read("/proc/cpuinfo")).unwrap_or_else(|| part(uname.machine())),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory: match memory {
                0 => "unknown memory".to_owned(),
                bytes => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
            },
        }
    }
}

fn processor_in(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    let name = line.split_once(':')?.1.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_is_named_where_the_system_names_it() {
        assert_eq!(processor_in("processor\t: 0\nmodel name\t: Fast 9000\n").as_deref(), Some("Fast 9000"));
        assert_eq!(processor_in("model name\t:\n"), None);
    }
}
