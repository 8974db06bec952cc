use serde::Serialize;
use spill_record::RulesRecord;
use spill_verdict::{Rule, figure};

/// How a rule is measured, for people.
#[derive(Serialize)]
pub(crate) struct Method {
    /// What is estimated, of what, over what.
    estimand: &'static str,
    formula: &'static str,
    bound: String,
}

/// The method of `rule` under the limits of a plan.
pub(crate) fn method(rule: Rule, rules: &RulesRecord) -> Method {
    let (estimand, formula, bound) = match rule {
        Rule::SuccessRate => (
            "The share of runs whose step completed with a non-empty answer, whatever its quality; on \
             one input, over the pairs of which both runs finished.",
            "succeeded(candidate) ÷ pairs, against succeeded(control) ÷ pairs",
            "at least the control's rate on the same pairs".to_owned(),
        ),
        Rule::IterationLimit => (
            "The number of pairs in which the candidate's run used up its iterations and the \
             control's did not; on one input, over the pairs of which both runs finished.",
            "#{pairs: hit(candidate) and not hit(control)}",
            "at most 0".to_owned(),
        ),
        Rule::InputTokens => (
            "The ratio of the median input tokens of a run, over all its LLM calls and cached ones \
             included; on one input, over all pairs when every run succeeded, else over those in \
             which both did. The median of the ratios within pairs stands beside it and decides \
             nothing. A median of an even count is the mean of the two middle values.",
            "median(input tokens, candidate) ÷ median(input tokens, control)",
            format!(
                "at most {} for small and medium inputs, below {} for large ones; documents are exempt",
                figure(rules.input_tokens_ratio_limit),
                figure(rules.large_input_tokens_ratio_limit)
            ),
        ),
        Rule::Quality => (
            "The lower of two mean differences within pairs: of the share of expected facts that the \
             final answer contains, and of the same share among the facts of the end, which is the \
             last tenth of what carries a fact; on one document.",
            "min(mean(quality(candidate) − quality(control)), mean(end(candidate) − end(control)))",
            format!("at least {}", figure(0.0 - rules.quality_allowance)),
        ),
        Rule::NothingLeaks => (
            "The number of the candidate's runs, lost ones included, that wrote a file outside what \
             the configuration declares, or let result content out into a file or a log line.",
            "#{runs: files written > 0 or findings > 0}",
            "at most 0".to_owned(),
        ),
    };
    Method {
        estimand,
        formula,
        bound,
    }
}
