//! What became of the largest result of a run: how it came into the prompt, and what was read back of it.

use std::collections::{BTreeMap, BTreeSet};

use spill_record::{CallRecord, ToolCallRecord, ToolResultForm};

/// How a result stands in the prompt when it comes there first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Came {
    /// Whole.
    Whole,
    /// Stored, with a part of it shown.
    Stored,
    /// Cut, with no way to the rest.
    Cut,
}

impl Came {
    /// As tables spell it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Stored => "stored",
            Self::Cut => "cut",
        }
    }

    fn of(form: ToolResultForm) -> Option<Self> {
        match form {
            ToolResultForm::Inline => Some(Self::Whole),
            ToolResultForm::Preview => Some(Self::Stored),
            ToolResultForm::Cut => Some(Self::Cut),
            ToolResultForm::Slice | ToolResultForm::Error => None,
        }
    }
}

/// What became of the largest result of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Largest {
    pub(crate) came: Came,
    /// How it stood there last, where that was another way: some agents take old results out again.
    pub(crate) later: Option<Came>,
    /// Bytes of it in the prompt when it first came there.
    pub(crate) shown_bytes: u64,
    /// How often it came there: what cannot be gone on with is asked for once more.
    pub(crate) times: u64,
    /// Reads of what was stored of it.
    pub(crate) reads: u64,
    /// Bytes that they put into the prompt.
    pub(crate) read_bytes: u64,
    /// Reads that failed.
    pub(crate) failed_reads: u64,
}

/// What became of the largest result of each run of a folder, taken from its calls one at a time.
#[derive(Clone, Debug, Default)]
pub struct LargestResults {
    runs: BTreeMap<String, Results>,
}

impl LargestResults {
    /// Takes one call, in the order in which a run made them.
    pub fn take(&mut self, call: &CallRecord) {
        if !self.runs.contains_key(&call.run_id) {
            self.runs.insert(call.run_id.clone(), Results::default());
        }
        if let Some(results) = self.runs.get_mut(&call.run_id) {
            call.new_results.iter().for_each(|new| results.take(new));
        }
    }

    /// Whether the folder has calls of the run.
    pub(crate) fn knows(&self, run_id: &str) -> bool {
        self.runs.contains_key(run_id)
    }

    /// The run's largest result; `None` where none came into a prompt.
    pub(crate) fn of(&self, run_id: &str) -> Option<Largest> {
        self.runs.get(run_id)?.largest()
    }
}

/// What may stand around a whole result in the prompt, and is no part of it.
const DELIMITERS_BYTES: u64 = 256;

/// Sums of reads.
#[derive(Clone, Copy, Debug, Default)]
struct Reads {
    reads: u64,
    bytes: u64,
    failed: u64,
}

/// The results of one run that are needed to tell.
#[derive(Clone, Debug, Default)]
struct Results {
    came: Vec<First>,
    reads: BTreeMap<String, Reads>,
}

/// A result that is no read of another one.
#[derive(Clone, Debug)]
struct First {
    came: Came,
    /// Tool and bytes of the arguments: what is asked for twice is asked for alike.
    call: (String, u64),
    shown_bytes: u64,
    /// As far as anybody told.
    bytes: u64,
    reference: Option<String>,
}

impl Results {
    fn take(&mut self, new: &ToolCallRecord) {
        if let Some(came) = Came::of(new.form) {
            self.came.push(First {
                came,
                call: (new.tool.clone(), new.argument_bytes),
                shown_bytes: new.prompt_bytes,
                bytes: new.stored_bytes.unwrap_or(new.prompt_bytes),
                reference: new.reference.clone(),
            });
        } else if let Some(reference) = &new.reference {
            let reads = self.reads.entry(reference.clone()).or_default();
            match new.form {
                ToolResultForm::Slice => {
                    reads.reads += 1;
                    reads.bytes = reads.bytes.saturating_add(new.prompt_bytes);
                }
                ToolResultForm::Error => reads.failed += 1,
                ToolResultForm::Inline | ToolResultForm::Preview | ToolResultForm::Cut => {}
            }
        }
    }

    fn largest(&self) -> Option<Largest> {
        let most = self.came.iter().max_by_key(|first| first.bytes)?;
        let alike = || {
            let same = |first: &&First| {
                first.call == most.call && most.bytes - first.bytes <= DELIMITERS_BYTES
            };
            self.came.iter().filter(same)
        };
        let (first, last) = (alike().next()?, alike().next_back()?);
        let references: BTreeSet<&str> = alike()
            .filter_map(|first| first.reference.as_deref())
            .collect();
        let reads = references.iter().filter_map(|one| self.reads.get(*one));
        let reads = reads.fold(Reads::default(), |sum, one| Reads {
            reads: sum.reads + one.reads,
            bytes: sum.bytes.saturating_add(one.bytes),
            failed: sum.failed + one.failed,
        });
        Some(Largest {
            came: first.came,
            later: (last.came != first.came).then_some(last.came),
            shown_bytes: first.shown_bytes,
            times: alike().count() as u64,
            reads: reads.reads,
            read_bytes: reads.bytes,
            failed_reads: reads.failed,
        })
    }
}

#[cfg(test)]
mod tests {
    use spill_record::{ContextBytes, SCHEMA};

    use super::*;

    fn result(form: ToolResultForm, prompt_bytes: u64, stored: Option<u64>) -> ToolCallRecord {
        ToolCallRecord {
            tool: "read_document".to_owned(),
            argument_bytes: 20,
            prompt_bytes,
            form,
            reference: None,
            offset_bytes: None,
            stored_bytes: stored,
        }
    }

    fn at(mut result: ToolCallRecord, reference: &str) -> ToolCallRecord {
        result.reference = Some(reference.to_owned());
        result
    }

    fn largest(results: &[ToolCallRecord]) -> Option<Largest> {
        let mut taken = LargestResults::default();
        for (call, result) in (0..).zip(results) {
            taken.take(&CallRecord {
                schema: SCHEMA,
                run_id: "r".to_owned(),
                call,
                iteration: call + 1,
                status: 200,
                tokens: None,
                request_bytes: 0,
                request_digest: String::new(),
                tools_digest: String::new(),
                context: ContextBytes::default(),
                new_results: vec![result.clone()],
                calls_tools: Vec::new(),
                finish_reason: String::new(),
                model_time_ms: None,
            });
        }
        assert!(taken.knows("r") != results.is_empty() && !taken.knows("other"));
        taken.of("r")
    }

    /// Form, bytes shown, times, reads, their bytes, failed reads.
    fn check(results: &[ToolCallRecord], expected: (Came, u64, u64, u64, u64, u64)) {
        let found = largest(results).expect("there is a result");
        let Largest {
            came,
            later,
            shown_bytes,
            times,
            reads,
            read_bytes,
            failed_reads,
        } = found;
        let found = (came, shown_bytes, times, reads, read_bytes, failed_reads);
        assert_eq!(found, expected, "{results:?}");
        assert_eq!(later, None, "{results:?}");
    }

    use ToolResultForm::{Cut, Error, Inline, Preview, Slice};

    #[test]
    fn the_largest_result_is_told_by_what_it_stands_for() {
        let small = || result(Inline, 5_000, None);
        check(&[small()], (Came::Whole, 5_000, 1, 0, 0, 0));
        check(
            &[small(), result(Inline, 300_000, None)],
            (Came::Whole, 300_000, 1, 0, 0, 0),
        );
        check(
            &[small(), result(Preview, 2_000, Some(300_000))],
            (Came::Stored, 2_000, 1, 0, 0, 0),
        );
        check(
            &[small(), result(Cut, 2_000, Some(300_000))],
            (Came::Cut, 2_000, 1, 0, 0, 0),
        );
        // Nobody told how much there is: what is there.
        check(
            &[small(), result(Cut, 4_000, None)],
            (Came::Whole, 5_000, 1, 0, 0, 0),
        );
    }

    #[test]
    fn a_stub_that_takes_the_place_of_an_old_result_is_the_same_result() {
        let found = largest(&[
            result(Inline, 7_034, None),
            at(result(Preview, 90, Some(7_000)), "f"),
            at(result(Slice, 500, None), "f"),
        ]);
        let expected = Largest {
            came: Came::Whole,
            later: Some(Came::Stored),
            shown_bytes: 7_034,
            times: 2,
            reads: 1,
            read_bytes: 500,
            failed_reads: 0,
        };
        assert_eq!(found, Some(expected));
        let other = result(Preview, 90, Some(7_034 - DELIMITERS_BYTES - 1));
        check(
            &[result(Inline, 7_034, None), at(other, "f")],
            (Came::Whole, 7_034, 1, 0, 0, 0),
        );
    }

    #[test]
    fn what_was_read_back_is_that_of_the_largest_result() {
        let stored = || at(result(Preview, 2_000, Some(300_000)), "/d/large");
        let other = || ToolCallRecord {
            argument_bytes: 9,
            ..at(result(Preview, 1_000, Some(70_000)), "/d/other")
        };
        let read = |reference, bytes| at(result(Slice, bytes, None), reference);
        check(
            &[
                stored(),
                other(),
                read("/d/large", 30_000),
                read("/d/other", 5),
                read("/d/large", 31_000),
                at(result(Error, 100, None), "/d/large"),
                at(result(Error, 100, None), "/d/other"),
                result(Error, 100, None),
            ],
            (Came::Stored, 2_000, 1, 2, 61_000, 1),
        );
        // The same stored twice, under two names.
        let again = at(stored(), "/d/again");
        check(
            &[stored(), again, read("/d/again", 8), read("/d/large", 4)],
            (Came::Stored, 2_000, 2, 2, 12, 0),
        );
        let cut = || result(Cut, 12_022, Some(312_317));
        check(&[cut(), cut()], (Came::Cut, 12_022, 2, 0, 0, 0));
    }

    #[test]
    fn a_run_without_a_result_has_no_largest_one() {
        assert_eq!(largest(&[]), None);
        assert_eq!(largest(&[result(Error, 9, None)]), None);
        assert_eq!(largest(&[at(result(Slice, 9, Some(9)), "f")]), None);
    }
}
