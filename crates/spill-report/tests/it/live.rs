//! The report of a live acceptance.

use spill_record::{Api, EndpointRecord, Mode, PromptTokens, RunSet, Spending};

use crate::builder::Case;
use crate::calls::{NAMES, rendered};
use crate::html::text;

fn set() -> RunSet {
    let case = Case::full().every(|run| {
        "live".clone_into(&mut run.profile);
        run.model_time_ms = Some(1_500.0);
    });
    case.set(|set| {
        set.manifest.mode = Mode::Live;
        set.manifest.endpoint = Some(EndpointRecord {
            api: Api::Openai,
            host: "models.example:8443".to_owned(),
        });
        for model in &mut set.manifest.plan.models {
            model.population.clear();
            "real-1".clone_into(&mut model.model);
        }
        for run in &mut set.manifest.plan.runs {
            "live".clone_into(&mut run.profile);
        }
        set.sensitivity.clear();
        set.spending = Some(Spending {
            limit_tokens: Some(5_000_000),
            calls: 240,
            calls_without_answer: 2,
            billed: PromptTokens {
                uncached_input_tokens: 1_234_567,
                ..PromptTokens::default()
            },
            estimated: PromptTokens {
                output_tokens: 42,
                ..PromptTokens::default()
            },
            ..Spending::default()
        });
    })
    .set
}

#[test]
fn a_live_report_names_endpoint_model_and_spending_and_nothing_simulated() {
    let rendered = rendered(&set(), &NAMES);
    let page = text(&rendered.report_html);
    for said in [
        "live mode",
        "openai at models.example:8443, model real-1",
        "1,234,567 tokens billed in 240 requests",
        "2 requests without a whole answer",
        "42 tokens more by our own count",
        "the cap was 5,000,000 tokens",
    ] {
        assert!(page.contains(said), "{said} is not in {page}");
        let is_subtitle = said == "live mode";
        assert!(
            is_subtitle || rendered.summary_md.contains(said),
            "{said}: {}",
            rendered.summary_md
        );
    }
    let claims = page.replace("under this plan's limits, in simulated mode", "");
    for word in [
        "simulated",
        "population",
        "profile mix",
        "one profile",
        "virtual clock",
    ] {
        assert!(!claims.contains(word), "{word} is in {claims}");
    }
}
