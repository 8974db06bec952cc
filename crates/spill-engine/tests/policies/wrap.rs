use std::sync::Arc;

use serde_json::{Value, json};
use spill_engine::{
    Accepted, Around, Block, Call, Canonical, Decision, Kept, OptionsError, Passed, Pipeline,
    Policy, Settings, SpillStore, StepId, StepSpill, ToolResult, Transformed, Verdict, configure,
};

use super::{CALL, capped, limited, memory, owner, spilled, structured};

fn upper(_: &Call<'_>, result: &ToolResult) -> Transformed {
    let blocks = result.blocks.iter().map(|block| match block {
        Block::Text(text) => Block::Text(text.to_uppercase()),
        Block::Other(value) => Block::Other(value.clone()),
    });
    Transformed::Accept(Accepted {
        content: Some(blocks.collect()),
        additional_contexts: vec!["upper".to_owned()],
        ..Accepted::default()
    })
}

fn doubled(_: &Call<'_>, result: &ToolResult) -> Transformed {
    Transformed::Accept(Accepted {
        content: Some([result.blocks.clone(), result.blocks.clone()].concat()),
        additional_contexts: vec!["doubled".to_owned()],
        ..Accepted::default()
    })
}

#[test]
fn the_cap_runs_after_every_transform_whatever_the_order_of_registration() {
    let orders: [fn(Arc<dyn Policy>) -> Pipeline; 3] = [
        |cap| {
            Pipeline::new()
                .around_all(cap)
                .transform(upper)
                .transform(doubled)
        },
        |cap| {
            Pipeline::new()
                .transform(upper)
                .around_all(cap)
                .transform(doubled)
        },
        |cap| {
            Pipeline::new()
                .transform(upper)
                .transform(doubled)
                .around_all(cap)
        },
    ];
    for order in orders {
        let bench = capped(300);
        let owner = owner();
        let call = Call::new("tool", CALL).owned_by(&owner);
        let passed = order(bench.policy.clone()).run(&call, ToolResult::text("x".repeat(200)));
        let Passed::Shaped {
            shaped,
            additional_contexts,
        } = passed
        else {
            panic!("shaped")
        };
        assert_eq!(
            bench.stored(&shaped),
            "X".repeat(400),
            "the final text is stored"
        );
        assert_eq!(additional_contexts, ["upper", "doubled"]);
    }
}

#[test]
fn one_tool_has_its_own_policy_and_another_has_none() {
    let (all, one) = (capped(300), limited(700));
    let off = configure("inline-cap", &json!({}), memory(1)).expect("off");
    let pipeline = Pipeline::new()
        .around("query", one.policy.clone())
        .around_all(all.policy.clone())
        .around("free", off);
    let owner = owner();
    let run = |tool| {
        let call = Call::new(tool, CALL).owned_by(&owner);
        match pipeline.run(&call, ToolResult::text("x".repeat(1_000))) {
            Passed::Shaped { shaped, .. } => shaped,
            other => panic!("{other:?}"),
        }
    };
    assert!(spilled(&run("query")).reference.starts_with("resource://"));
    assert!(!spilled(&run("other")).reference.starts_with("resource://"));
    assert_eq!(run("free").verdict, Verdict::Keep(Kept::Off));
    let bare = Pipeline::new().run(&Call::new("tool", CALL), ToolResult::text("x"));
    assert!(
        matches!(bare, Passed::Shaped { shaped, .. } if shaped.verdict == Verdict::Keep(Kept::Off))
    );
}

#[test]
fn a_blocked_result_and_another_value_pass_by_the_cap() {
    let bench = capped(10);
    let pipeline = |transformed: Transformed| {
        Pipeline::new()
            .transform(move |_: &Call<'_>, _: &ToolResult| transformed.clone())
            .around_all(bench.policy.clone())
            .run(&Call::new("tool", CALL), ToolResult::text("x".repeat(100)))
    };
    let feedback = "no".to_owned();
    assert_eq!(
        pipeline(Transformed::Block {
            feedback: feedback.clone()
        }),
        Passed::Blocked { feedback }
    );
    let value = json!([1]);
    let accepted = Accepted {
        value: Some(value.clone()),
        additional_contexts: vec!["why".to_owned()],
        ..Accepted::default()
    };
    let expected = Passed::Value {
        value,
        additional_contexts: vec!["why".to_owned()],
    };
    assert_eq!(pipeline(Transformed::Accept(accepted)), expected);
    assert_eq!(bench.store.usage().stored, 0);
}

#[test]
fn a_wrapped_tool_is_called_and_bounded() {
    let options = json!({"maxPayloadBytes": 600});
    let policy = configure("envelope", &options, memory(1 << 20)).expect("good options");
    let tool = Around::new(policy, |call: &Call<'_>| {
        let times = call.arguments["times"].as_u64().unwrap_or(0);
        ToolResult::text("row ".repeat(usize::try_from(times).unwrap_or(0)))
    });
    let owner = owner();
    let call = |times| {
        (
            Call::new("rows", CALL).owned_by(&owner),
            json!({"times": times}),
        )
    };
    for (times, decision) in [(150, Decision::Inline), (151, Decision::Store)] {
        let (call, arguments) = call(times);
        let call = Call {
            arguments: &arguments,
            ..call
        };
        assert_eq!(
            tool.call(&call).verdict.decision(),
            decision,
            "{times} rows"
        );
    }
}

#[test]
fn policies_are_configured_by_name() {
    let named = |name: &str| configure(name, &json!({}), memory(1)).map(|policy| policy.name());
    assert_eq!(named("inline-cap"), Ok("inline-cap"));
    assert_eq!(named("envelope"), Ok("envelope"));
    assert_eq!(
        named("cap"),
        Err(OptionsError::NoSuchPolicy("cap".to_owned()))
    );
    assert!(configure("inline-cap", &json!({"maxInlineBytes": -1}), memory(1)).is_err());
}

#[test]
fn the_step_policy_goes_around_a_tool_too() {
    let step = || {
        let id = StepId::new("step").expect("an id");
        Arc::new(StepSpill::new(
            Settings::DEFAULT,
            id,
            StepSpill::unobserved(),
        ))
    };
    let run = |step: Arc<StepSpill>, call: Call<'_>, result| match Pipeline::new()
        .around_all(step)
        .run(&call, result)
    {
        Passed::Shaped { shaped, .. } => *shaped,
        other => panic!("{other:?}"),
    };
    let call = Call::new("tool", CALL);
    let value = super::rows(5_000);
    let shaped = run(step(), call, structured(value.clone()));
    assert_eq!(shaped.verdict.decision(), Decision::Store);
    assert_eq!(spilled(&shaped).reference, "spillover://step/i1c0.json");
    assert_eq!(shaped.canonical, Canonical::Value(value));
    let kept = run(step(), call, ToolResult::text("small"));
    assert_eq!(kept.verdict, Verdict::Keep(Kept::WithinLimit));
    let nested = Call {
        sub_call: Some(1),
        ..call
    };
    let big = ToolResult::text("x".repeat(200_000));
    assert_eq!(
        run(step(), nested, big.clone()).verdict,
        Verdict::Keep(Kept::Nested)
    );
    let held = step();
    assert_eq!(
        run(held.clone(), call, big.clone()).verdict.decision(),
        Decision::Store
    );
    assert_eq!(
        run(held.clone(), call, big.clone()).verdict,
        Verdict::Keep(Kept::Taken)
    );
    held.release();
    assert_eq!(run(held, call, big).verdict, Verdict::Keep(Kept::Released));
    let huge = ToolResult::text("x".repeat(17 << 20));
    assert_eq!(
        run(step(), call, huge).verdict.decision(),
        Decision::InlineOverBudget
    );
}

fn opened(
    options: &Value,
    base: &std::path::Path,
) -> Result<Arc<dyn Policy>, spill_engine::OptionsError> {
    spill_engine::open_policy("envelope", options, base, Arc::new(spill_engine::OsNames))
}

/// `storage` and `storagePath` decide where the records are.
#[test]
fn an_envelope_opens_the_store_that_its_options_name() {
    let home = tempfile::tempdir().expect("a directory");
    let base = home.path().canonicalize().expect("it exists");
    let owner = owner();
    let call = Call::new("tool", CALL).owned_by(&owner);
    let shape = |policy: Arc<dyn Policy>| policy.shape(&call, ToolResult::text("x".repeat(20_000)));
    let in_memory = shape(opened(&json!({}), &base).expect("good options"));
    assert!(matches!(in_memory.verdict, Verdict::Replace { .. }));
    assert_eq!(std::fs::read_dir(&base).expect("a directory").count(), 0);
    let files = |root: &std::path::Path| {
        let entries = std::fs::read_dir(root).expect("a directory");
        entries
            .filter(|entry| {
                let name = entry.as_ref().expect("an entry").file_name();
                name.to_string_lossy().contains("-tool")
            })
            .count()
    };
    let absolute = base.join("elsewhere");
    for (options, root) in [
        (
            json!({"storage": "filesystem"}),
            base.join(".spillover_cache"),
        ),
        (
            json!({"storage": "filesystem", "storagePath": "./a/./b/"}),
            base.join("a/b"),
        ),
        (
            json!({"storage": "filesystem", "storagePath": absolute}),
            absolute.clone(),
        ),
    ] {
        let shaped = shape(opened(&options, &base).expect("a usable place"));
        assert!(matches!(shaped.verdict, Verdict::Replace { .. }));
        assert_eq!(files(&root), 1, "{options}");
    }
}

#[test]
fn a_place_that_cannot_be_used_fails_the_load() {
    let home = tempfile::tempdir().expect("a directory");
    let base = home.path().canonicalize().expect("it exists");
    std::fs::write(base.join("file"), "untouched").expect("a file");
    for path in ["file", "file/below", "../up"] {
        let options = json!({"storage": "filesystem", "storagePath": path});
        let refusal = opened(&options, &base).err().expect("refused").to_string();
        assert!(refusal.contains("the store cannot be used"), "{refusal}");
    }
    let other =
        spill_engine::open_policy("other", &json!({}), &base, Arc::new(spill_engine::OsNames));
    assert!(other.is_err());
}

/// A transform sees results whole, so nothing leaves before it has.
#[test]
fn a_stream_passes_at_once_only_where_no_transform_stands_before_the_cap() {
    let owner = owner();
    let call = Call::new("tool", CALL).owned_by(&owner);
    let plain = Pipeline::new().around("tool", capped(1_000).policy);
    let mut arriving = plain.begin(call).expect("a policy and no transform");
    arriving.push(&[b'x'; 5_000]);
    assert!(arriving.finish(false).prompt.len() <= 1_000);
    let other = Call::new("other", CALL).owned_by(&owner);
    assert!(plain.begin(other).is_none(), "no policy is around it");
    let first = Pipeline::new()
        .around_all(capped(1_000).policy)
        .transform(upper);
    assert!(first.begin(call).is_none());
}
