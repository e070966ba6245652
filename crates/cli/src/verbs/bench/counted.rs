//! The output of small files, commits, cleaning, listings and ranges.

use laneway_experiments::report::Page;
use laneway_experiments::{Counted, Row, Table};
use serde_json::{Value, json};

use super::run::{self, Findings};

impl Findings for Counted {
    fn heading(&self) -> String {
        let path = run::path(self.rtt_s, self.floor_s);
        format!("{} at {}; {path}", self.what, self.store)
    }

    fn tables(&self) -> Vec<Table> {
        vec![self.table()]
    }

    fn records(&self) -> Vec<Value> {
        let bench = self.bench.name();
        let mut records: Vec<_> = self.rows.iter().map(|row| row.record(&self.rows, bench)).collect();
        records.push(json!({
            "kind": bench,
            "store": self.store,
            "objects": self.objects,
            "what": self.what,
            "rtt_s": self.rtt_s,
            "floor_s": self.floor_s,
        }));
        records
    }

    fn draw(&self, page: &mut Page) {
        page.counted(self);
    }

    fn is_fine(&self) -> bool {
        self.rows.iter().all(Row::is_fine)
    }
}
