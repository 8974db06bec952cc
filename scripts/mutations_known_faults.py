"""Takes the fixes of known faults out, one at a time: for mutations.py. Names start with the faults' numbers in the catalogue
(crates/spillgate/tests/it/known_faults.rs). Tests are (crate, test binary or `lib`, name)."""

VERDICT = "crates/spill-verdict/src/"
REPORT = "crates/spill-report/src/"
RECORD = "crates/spill-record/src/"
SCENARIO = "crates/spill-scenario/src/"
RUNNER = "crates/spill-runner/src/"
TRACES = "crates/spill-traces/src/"
MOCKS = "crates/spill-mocks/src/"
AGENT = "crates/spill-agent/src/"


def in_verdict(*names):
    return [("spill-verdict", "it", name) for name in names]


def in_report(*names):
    return [("spill-report", "it", name) for name in names]


def in_lib(crate, *names):
    return [(crate, "lib", name) for name in names]


VERDICT_FAULTS = [
    (
        "75, 111: lost runs leave the denominator",
        in_verdict("faults::runs_with_errors_do_not_leave_the_denominator"),
        [(VERDICT + "rules.rs", "                } else if n < self.planned {\n", "                } else if false {\n")],
    ),
    (
        "76, 92: nothing divided by nothing is a number",
        in_lib("spill-verdict", "estimate::tests::nothing_is_divided_by_nothing"),
        [(VERDICT + "estimate.rs", "(whole > 0).then(|| part as f64 / whole as f64)", "Some(part as f64 / whole as f64)")],
    ),
    (
        "77: a control that never succeeds passes unnoticed",
        in_verdict("completeness::a_control_that_never_succeeds_is_noticed"),
        [(VERDICT + "judge.rs", "    warnings.extend(notes::failing_controls(set));\n", "")],
    ),
    (
        "87, 95, 102: no finished run is no problem",
        in_verdict("completeness::no_data_is_never_a_pass"),
        [(VERDICT + "judge.rs", "    if finished == 0 {\n", "    if false {\n")],
    ),
    (
        "88: a dropped cell is not missed",
        in_verdict("completeness::a_cell_that_the_plan_drops_or_renames_is_missed"),
        [(VERDICT + "contradiction.rs", "if u32::try_from(found).ok() != Some(plan.repetitions) {", "if false {")],
    ),
    (
        "89, 99: a regression ends with 0",
        in_verdict("faults::a_regression_is_an_exit_code"),
        [
            (
                VERDICT + "judge.rs",
                "Decision::Change | Decision::Disable => exit::REJECTED,",
                "Decision::Change | Decision::Disable => exit::ACCEPTED,",
            )
        ],
    ),
    (
        "91: what was not scored is a pass",
        in_verdict("faults::a_measure_without_a_sample_is_not_judged"),
        [
            (
                VERDICT + "rules/quality.rs",
                "} else if facts.difference().is_none() || end.difference().is_none() {",
                "} else if false {",
            )
        ],
    ),
    (
        "95: a cell without a run is judged",
        in_verdict("faults::a_measure_without_a_sample_is_not_judged"),
        [(VERDICT + "rules.rs", "if self.missing > 0 || self.planned == 0 {", "if self.planned == 0 {")],
    ),
    (
        "96: blanks belong to a key",
        in_verdict("faults::blanks_in_a_key_do_not_make_it_match_nothing"),
        [(VERDICT + "replay/expression.rs", "match key.trim() {", "match key {")],
    ),
    (
        "98, 106: the lightest input decides",
        in_verdict("faults::one_input_that_always_fails_is_not_hidden_in_the_whole"),
        [(VERDICT + "ladder.rs", ".max_by_key(|state| state.weight())", ".min_by_key(|state| state.weight())")],
    ),
    (
        "100: the mean decides, and not the bound",
        in_verdict("faults::a_mean_beyond_the_limit_is_not_enough"),
        [(VERDICT + "rules.rs", "Mode::Live => self.weigh(rule, literal),", "Mode::Live => literal,")],
    ),
    (
        "104: the best run decides",
        in_verdict("faults::the_best_of_several_runs_does_not_decide"),
        [
            (
                VERDICT + "rules/tokens.rs",
                "values.and_then(|values| median(&values))",
                "values.and_then(|values| values.into_iter().reduce(f64::min))",
            )
        ],
    ),
    (
        "107: the harness may lose any number",
        in_verdict(
            "faults::lost_runs_are_a_bracket_and_not_dropped",
            "completeness::the_harness_may_lose_runs_within_its_budget_only",
        ),
        [(VERDICT + "judge.rs", "    if !within {\n", "    let _ = within;\n    if false {\n")],
    ),
    (
        "108: a missing run is no gap",
        in_verdict("completeness::a_missing_run_is_incomplete_whatever_the_others_say"),
        [(VERDICT + "judge.rs", "    if missing > 0 {\n", "    if false {\n")],
    ),
    (
        "109: an end by the limit is not marked",
        in_verdict("rules::rule_2_new_hits_of_the_iteration_limit"),
        [(VERDICT + "rules.rs", "if record.end_reason == EndReason::IterationLimit {", "if false {")],
    ),
    (
        "110: a success is a whole quality",
        in_verdict("faults::successes_are_counted_and_not_added_up"),
        [
            (
                VERDICT + "rules.rs",
                "let won = |record: &RunRecord| record.outcome == Outcome::Succeeded;",
                "let won = |record: &RunRecord| record.quality.is_some_and(|quality| quality >= 1.0);",
            )
        ],
    ),
    (
        "112: what was lost is taken for lost by the candidate",
        in_verdict("rules::rule_1_success_rate"),
        [(VERDICT + "rules.rs", "settled: losses > gains + (self.planned - n),", "settled: losses > gains,")],
    ),
    (
        "114: failed runs are not among the finished",
        in_verdict("faults::kinds_of_errors_are_not_counted_in_place_of_runs"),
        [(VERDICT + "inventory.rs", "counts.finished = counts.succeeded + counts.failed;", "counts.finished = counts.succeeded;")],
    ),
]

REPORT_FAULTS = [
    (
        "75, 111, 112: one reading of a rate stands alone",
        in_report("faults::a_success_rate_is_shown_with_and_without_what_was_lost"),
        [
            (
                REPORT + "cells.rs",
                "share(self.succeeded(), self.finished() + self.infrastructure())",
                "share(self.succeeded(), self.finished())",
            )
        ],
    ),
    (
        "76, 85, 94: nothing is 0",
        in_report("faults::nothing_run_is_no_figure_of_zero"),
        [(REPORT + "cells.rs", "let median = median(values)?;", "let median = median(values).unwrap_or(0.0);")],
    ),
    (
        "77, 85: failed runs have durations",
        in_report("faults::latency_is_that_of_completed_runs"),
        [
            (
                REPORT + "cells.rs",
                "            .filter(|record| record.outcome == Outcome::Succeeded);\n"
                "        Durations::collect(succeeded.filter_map(|record| record.duration_ms))",
                "            .filter(|_| true);\n        Durations::collect(succeeded.filter_map(|record| record.duration_ms))",
            )
        ],
    ),
    (
        "78: a percentile of any sample",
        in_lib("spill-report", "durations::tests::a_percentile_needs_a_sample_that_reaches_beyond_it"),
        [(REPORT + "durations.rs", "(beyond >= 100)", "(beyond > 0)")],
    ),
    (
        "93: a bar in a cell stays",
        in_lib("spill-report", "markdown::tests::every_row_has_as_many_columns_as_its_header"),
        [(REPORT + "markdown.rs", "'\\\\' | '|' | '`'", "'\\\\' | '`'")],
    ),
    (
        "105: the table counts other rows than the gate",
        in_report("faults::report_and_gate_read_the_same_rows"),
        [(REPORT + "cells.rs", ".zip(counted_records(set)) {", ".zip(set.runs.iter().map(Some)) {")],
    ),
    (
        "113: what was lost is a zero of the mean",
        in_report("faults::what_the_harness_lost_is_no_zero_in_a_mean"),
        [(REPORT + "cells.rs", ".filter(|record| record.outcome != Outcome::Infrastructure)", ".filter(|_| true)")],
    ),
    (
        "128: texts are markup",
        in_report("hostile::pages_keep_their_shape"),
        [
            (
                REPORT + "html.rs",
                "    environment.set_undefined_behavior(UndefinedBehavior::Strict);\n",
                "    environment.set_undefined_behavior(UndefinedBehavior::Strict);\n"
                "    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);\n",
            )
        ],
    ),
    (
        "130: some rules are in no test case",
        in_report("ci_files::junit_has_every_rule_and_its_state"),
        [(REPORT + "junit.rs", "    for row in &candidate.rules {\n", "    for row in candidate.rules.iter().take(5) {\n")],
    ),
]

RECORD_FAULTS = [
    (
        "79: the later of two records wins",
        [("spill-record", "folder", "a_foreign_and_a_contradicting_record_are_refused_and_a_repeated_one_is_not")],
        [(RECORD + "folder.rs", "Some(known) if *known != record => {", "Some(known) if false && *known != record => {")],
    ),
    (
        "119: a torn line is read as a record",
        [("spill-record", "folder", "a_torn_last_line_is_named_and_not_counted")],
        [(RECORD + "files.rs", "        if line.last() != Some(&b'\\n') {\n", "        if false {\n")],
    ),
    (
        "119: a torn line in the middle is passed over",
        [("spill-record", "folder", "a_torn_middle_line_is_refused")],
        [
            (
                RECORD + "files.rs",
                "        check_schema(&path, number, line)?;\n        let record =\n",
                "        if serde_json::from_slice::<serde_json::Value>(line).is_err() {\n            return Ok(());\n        }\n"
                "        check_schema(&path, number, line)?;\n        let record =\n",
            )
        ],
    ),
    (
        "120: a run's sums are not held against its calls",
        [("spill-record", "folder", "a_run_whose_calls_say_otherwise_is_refused")],
        [(RECORD + "folder.rs", "Some(_) | None => compare_calls(folder, &runs, &mut torn)?,", "Some(_) | None => {}")],
    ),
    (
        "131: a newer format is read as ours",
        [("spill-record", "folder", "a_record_of_a_newer_schema_is_refused")],
        [(RECORD + "files.rs", "    if found.schema > SCHEMA {\n", "    if false {\n")],
    ),
]

OTHER_FAULTS = [
    (
        "59: results wait for their siblings",
        [("spill-agent", "agent", "endings::a_timeout_keeps_what_is_done")],
        [
            (
                AGENT + "step.rs",
                "            self.records.extend(done.map(|done| done.record));\n",
                "            drop(done);\n",
            )
        ],
    ),
    (
        "60: equal ids are taken",
        [("spill-agent", "agent", "endings::calls_that_cannot_be_told_apart_are_a_model_error")],
        [(AGENT + "calls.rs", "if !ids.insert(call.id.as_str()) {", "if !ids.insert(call.id.as_str()) && false {")],
    ),
    (
        "60: a missing branch is not named",
        [("spill-traces", "reported", "parallel_results_are_all_there_after_a_resume")],
        [(TRACES + "builder.rs", ".filter(|(id, _)| !answered.contains_key(*id))", ".filter(|(id, _)| answered.contains_key(*id) && false)")],
    ),
    (
        "62, 72, 121: nothing feeds the prompt cache",
        in_lib("spill-mocks", "state::tests::completed_requests_alone_feed_the_prompt_cache")
        + [("spill-mocks", "mocks", "reported::cached_tokens_are_a_part_of_the_prompt_and_counted_once")],
        [(MOCKS + "state.rs", "        self.cache.feed(prompt);\n", "        let _ = prompt;\n")],
    ),
    (
        "70: a missing usage is 0",
        in_lib("spill-agent", "tally::tests::buckets_are_disjoint_and_a_gap_is_not_zero"),
        [(AGENT + "tally.rs", "(self.answered > 0 && self.without_usage == 0)", "(self.answered > 0)")],
    ),
    (
        "71: a stream tells its usage unasked, and first",
        [("spill-mocks", "mocks", "reported::a_streams_usage_comes_last_and_on_request")],
        [
            (
                MOCKS + "dialect/chat/write.rs",
                "    if completion.include_usage {\n        let mut last",
                "    if !completion.include_usage {\n        let mut last",
            )
        ],
    ),
    (
        "72: the cached part is counted twice",
        in_lib("spill-agent", "tally::tests::buckets_are_disjoint_and_a_gap_is_not_zero"),
        [(AGENT + "tally.rs", "usage.prompt_tokens.saturating_sub(usage.cached_tokens);", "usage.prompt_tokens;")],
    ),
    (
        "72: the cached part of a transcript is counted twice",
        [("spill-traces", "reported", "cached_tokens_are_not_counted_twice")],
        [(TRACES + "usage.rs", ".and_then(|(i, c)| i.checked_sub(c)),", ".map(|(i, _)| i),")],
    ),
    (
        "73: a repeated usage counts again",
        [("spill-traces", "reported", "a_usage_that_is_told_twice_counts_once")],
        [
            (
                TRACES + "import/codex.rs",
                "        let usage = difference(self.last_total.as_ref(), total)\n            .or_else(|| info.get(\"last_token_usage\").map(of_tokens));\n",
                "        let usage = Some(of_tokens(total));\n",
            )
        ],
    ),
    (
        "73, 74: a client's retries are not counted",
        [("spill-agent", "agent", "openai::passing_failures_are_retried_and_counted")],
        [(AGENT + "openai.rs", "            self.retries.fetch_add(1, Ordering::Relaxed);\n", "")],
    ),
    (
        "73, 74: requests have no number of their own at the server",
        [("spill-mocks", "mocks", "reported::every_attempt_is_counted_at_the_server")],
        [(MOCKS + "state.rs", "        let call = self.journal.len() as u64;\n", "        let call = 0;\n")],
    ),
    (
        "80, 117: the plan's hash does not know the facts",
        in_lib("spill-scenario", "plan::tests::the_plan_hash_changes_with_whatever_a_result_depends_on"),
        [
            (
                SCENARIO + "plan.rs",
                "            parts.push(digest_of(input.facts.iter().map(|fact| &fact.expect)));\n",
                "            let _ = input;\n",
            )
        ],
    ),
    (
        "81, 115: repetitions are one run",
        in_lib("spill-scenario", "plan::tests::the_runs_of_a_pair_share_seed_and_profile_and_have_ids_of_their_own"),
        [(SCENARIO + "plan.rs", "        let repetition = self.repetition.to_string();\n", "        let repetition = String::new();\n")],
    ),
    (
        "82, 124: the order of arguments makes another call",
        in_lib("spill-scenario", "recorded::tests::a_key_is_of_tool_and_arguments_whatever_their_order"),
        [(SCENARIO + "recorded.rs", "        other => sorted(other),\n", "        other => other.clone(),\n")],
    ),
    (
        "83: peak memory has one unit everywhere",
        in_lib("spill-runner", "launcher::tests::peak_memory_has_one_unit_everywhere"),
        [(RUNNER + "launcher/mod.rs", "own.maxrss.max(", "(own.maxrss / 1024).max(")],
    ),
    (
        "122: every request is a conversation of its own",
        [("spill-traces", "reported", "a_history_that_is_repeated_is_not_doubled")],
        [(TRACES + "chain.rs", "self.find(&digests, root).unwrap_or_else(|| {", "self.find(&digests, root).filter(|_| false).unwrap_or_else(|| {")],
    ),
    (
        "123: a planned fault may never come to pass",
        in_lib("spill-runner", "expected::tests::another_end_and_a_fault_that_never_came_are_told"),
        [(RUNNER + "expected.rs", "if self.faults > 0 && hit == 0 {", "if false {")],
    ),
    (
        "127: a key stands in what is printed for debugging",
        in_lib("spill-agent", "job::tests::no_debug_output_shows_the_key"),
        [(AGENT + "job.rs", "            \"ApiKey(set)\"\n", "            &*self.0\n")],
    ),
]

FAULTS = VERDICT_FAULTS + REPORT_FAULTS + RECORD_FAULTS + OTHER_FAULTS
