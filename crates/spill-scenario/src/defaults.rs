//! The defaults that a verdict hangs on, in one place, with where each comes from.
//!
//! The inputs and all but three of these were written before anything was measured; those counted in
//! transcripts were replaced after the first whole acceptances. A change of one says why in the
//! changelog. `scenarios/README.md` shows the same table, and the built-in
//! scenarios spell every value out; tests compare all three.
//!
//! | default | value | source |
//! |---|---|---|
//! | `context_window_tokens` | 400000 | the window OpenAI publishes for GPT-5 (<https://platform.openai.com/docs/models/gpt-5>, checked against <https://vercel.com/ai-gateway/models/gpt-5-fast.md>: 400,000, of it 128,000 output). The API takes at most 272,000 of it as input (<https://community.openai.com/t/1344734>); the simulated model checks the prompt against the whole window. |
//! | `iteration_limit` | 250 | mini-swe-agent's published step limit, as its 29 transcripts counted below record it; their runs took 80 model calls in the median and 157 at most. |
//! | `parallel_calls` | 1 | counted over 4,130 turns with tool calls in public transcripts of six agents (mini-swe-agent, tau-bench, tau2-bench, Claude Code, SWE-agent's API captures, Gemini CLI): 4,126 of them have one call, the largest has three. `scripts/transcript_habits.py DIR` counts it. |
//! | `slice_bytes` | 32768 | assumption, no published figure for a model's choice: it is the largest read that every candidate allows, because one read returns at most the threshold. Coding agents cap one read in the same range (opencode: 50 KB, <https://github.com/anomalyco/opencode/issues/29604>). |
//! | `window_lines` | 100 | SWE-agent's published viewer shows 100 lines at a time; the same transcripts read files by ranges of 21 lines in the median and 61 in the ninth tenth (300 ranges), so it is on the generous side. |
//! | `reading_budget_bytes` | 131072 | assumption, no published figure: four slices; as many bytes as the largest result that the shipped default leaves in the prompt. |
//! | `population` | selective 0.6, diligent 0.3, hasty 0.1 | assumption, no published figure: reading what is needed is taken as the rule, answering from previews as the exception. The report shows the decision under each pure profile beside it. |
//! | `max_findings` | 400 | assumption, no published figure: above the facts of any built-in input several times over, so that the bound stops echoing and not answering. |
//! | `recall` | 4096: 0.966, 8192: 0.963, 16384: 0.952, 32768: 0.932, 65536: 0.870, 131072: 0.812 | assumption for `forgetful` alone: the average scores of GPT-4-1106-preview at these context lengths in RULER (Hsieh et al. 2024, <https://arxiv.org/abs/2404.06654>, table 3), taken as the share that is recalled at that distance; between the points straight in the logarithm of the distance, beyond them on in the last slope. |
//! | `[model.latency]` | overhead 500, uncached token 0.1, output token 10, queue 0 | assumption, no published figure: the order of hosted models, 10,000 prompt tokens and 100 output tokens a second. No rule hangs on it. |

use spill_record::{LatencyRecord, RecallPoint};

use crate::scenario::Profile;

/// Context window of the simulated model.
pub const CONTEXT_WINDOW_TOKENS: u64 = 400_000;
/// Iterations of one step at most.
pub const ITERATION_LIMIT: u64 = 250;
/// Tool calls that one answer asks for at most.
pub const PARALLEL_CALLS: u64 = 1;
/// Bytes that one read asks for at most.
pub const SLICE_BYTES: u64 = 32_768;
/// Lines that `selective` reads around a place that a diff names.
pub const WINDOW_LINES: u64 = 100;
/// Bytes that `selective` reads back of one result at most.
pub const READING_BUDGET_BYTES: u64 = 131_072;
/// Shares of the profiles.
pub const POPULATION: [(Profile, f64); 3] = [
    (Profile::Selective, 0.6),
    (Profile::Diligent, 0.3),
    (Profile::Hasty, 0.1),
];
/// Lines of the final answer at most.
pub const MAX_FINDINGS: u64 = 400;

/// What `forgetful` recalls of what stands so far back.
pub const RECALL: [RecallPoint; 6] = {
    const fn at(tokens: u64, share: f64) -> RecallPoint {
        RecallPoint { tokens, share }
    }
    [
        at(4_096, 0.966),
        at(8_192, 0.963),
        at(16_384, 0.952),
        at(32_768, 0.932),
        at(65_536, 0.870),
        at(131_072, 0.812),
    ]
};
/// What a scenario's `[model.latency]` takes for what it leaves out.
pub const LATENCY: LatencyRecord = LatencyRecord {
    overhead_ms: 500.0,
    uncached_token_ms: 0.1,
    output_token_ms: 10.0,
    queue_ms: 0.0,
    sleep_scale: 0.0,
};

/// The model's name as requests spell it.
pub const MODEL_NAME: &str = "simulated-1";
/// Repetitions of each cell at stage `full`.
pub const REPETITIONS: u32 = 5;
/// Repetitions of each cell at stage `quick`.
pub const QUICK_REPETITIONS: u32 = 2;
/// Time for one step: hundreds of times what one takes against mock servers on the same machine.
pub const STEP_TIMEOUT_MS: u64 = 60_000;
/// Time for one process; a step has to end by its own timeout first.
pub const RUN_TIMEOUT_MS: u64 = 90_000;
/// Runs of one plan at most.
pub const MAX_RUNS: u64 = 1_000;

/// Rule 3 for small and medium: candidate over control at most this; set by the owners' rules.
pub const INPUT_TOKENS_RATIO_LIMIT: f64 = 1.10;
/// Rule 3 for large: candidate over control below this; set by the owners' rules.
pub const LARGE_INPUT_TOKENS_RATIO_LIMIT: f64 = 1.0;
/// Rule 4: a lower quality by at most this is still "not lower".
pub const QUALITY_ALLOWANCE: f64 = 0.0;
/// Rules 1 and 4 in live mode: a share lower by less than this is still "not lower".
pub const MARGIN: f64 = 0.10;
/// Rule 4: derived facts fewer than this prove nothing.
pub const DERIVED_FACTS_NEEDED: u64 = 5;
/// Share of planned runs that may end as infrastructure failures.
pub const INFRASTRUCTURE_BUDGET: f64 = 0.0;
/// A scenario file larger than this is not read.
pub const MAX_SCENARIO_BYTES: u64 = 1024 * 1024;
/// A document, or a file of an input's folder, larger than this is not read.
pub const MAX_DOCUMENT_BYTES: u64 = 16 * 1024 * 1024;
/// A file of recorded calls larger than this is not read.
pub const MAX_RECORDED_BYTES: u64 = 64 * 1024 * 1024;
/// Recorded calls of one input at most.
pub const MAX_RECORDED_CALLS: usize = 10_000;
