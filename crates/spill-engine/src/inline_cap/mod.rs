//! The `inline-cap` policy: a text over the cap is stored whole, and its ends with one notice stand for it, all within the cap.
//!
//! The behaviour is that of the spill policy of DeepSeek Harness, observed by running it, with its weaknesses mended:
//! nothing is written before the notice is known to fit, a marker shows where the cut is, and a read-back is recognised by
//! the reference that it reads. [`Layout::Glued`] gives the observed replacement byte for byte.

mod arriving;
mod options;
mod replacement;

use std::sync::Arc;

pub use options::{InlineCapOptions, Layout, Mixed, OptionsError};
pub(crate) use options::{number, share};

use crate::arriving::{ArrivingResult, Gathered, Overflowing};
use crate::by_content::{self, Previews};
use crate::measure::Bytes;
use crate::policy::Decision;
use crate::result::{Block, ToolResult, content_json};
use crate::shaped::{
    Arm, Call, Canonical, Kept, Opened, Policy, Shaped, Spilled, Verdict, Warning,
};
use crate::share::PreviewShare;
use crate::shared_text::SharedText;
use crate::stores::{ItemHead, Owner, SpillStore, StoreError};
use replacement::{Lean, Replacement, Whole};

/// Decides about a text of `size` bytes: stored when larger than the cap (`>`: the equal case stays), never without one.
#[must_use]
pub fn decide_inline_cap(size: Bytes, cap: Option<u64>) -> Decision {
    match cap {
        Some(cap) if size.get() > cap => Decision::Store,
        Some(_) | None => Decision::Inline,
    }
}

/// The `inline-cap` policy with its options and the store behind it.
///
/// A text over the cap is stored whole; its ends and one notice stand for it, all within the cap. Results that are not text
/// alone, calls of composite tools, read-backs and tools on the skip list stay as they are; so does everything when the store
/// fails, with a warning.
///
/// ```
/// use std::sync::Arc;
/// use spill_engine::{
///     ByteRange, Bytes, Call, CallId, InlineCap, InlineCapOptions, MemoryOptions, MemoryStore, Owner, Policy, Reader,
///     SpillStore, ToolResult, Verdict,
/// };
///
/// let store = Arc::new(MemoryStore::new(MemoryOptions::per_execution(Bytes::new(16 << 20))));
/// let policy = InlineCap::new(InlineCapOptions::capped(1_000), store.clone());
/// let session = Owner::new("session 1");
/// let call = Call::new("run_tests", CallId { iteration: 1, index: 0 }).owned_by(&session);
///
/// let output: String = (0..5_000).map(|n| format!("test {n} ... ok\n")).collect();
/// let shaped = policy.shape(&call, ToolResult::text(output.clone()));
/// assert!(shaped.prompt.len() <= 1_000, "what the model sees");
/// assert_eq!(*shaped.record_text, output, "what the record keeps");
///
/// let Verdict::Replace { spilled, .. } = shaped.verdict else { panic!("replaced") };
/// assert!(shaped.prompt.contains(&spilled.reference));
/// let key = store.key_of(&spilled.reference).expect("a reference of this store");
/// let whole = store.read(key, &Reader::Of(session.clone()), ByteRange::ALL, call.now)?;
/// assert_eq!(whole.bytes(), output.as_bytes());
///
/// // Reading it back, with any tool, does not spill again.
/// let arguments = serde_json::json!({"path": spilled.reference});
/// let read = Call { tool: "open", arguments: &arguments, ..call };
/// assert_eq!(*policy.shape(&read, ToolResult::text(output.clone())).prompt, output);
/// # Ok::<(), spill_engine::ReadFailure>(())
/// ```
pub struct InlineCap {
    options: InlineCapOptions,
    store: Arc<dyn SpillStore>,
}

impl InlineCap {
    /// Stores in `store`.
    pub fn new(options: InlineCapOptions, store: Arc<dyn SpillStore>) -> Self {
        Self { options, store }
    }

    /// The options.
    pub fn options(&self) -> &InlineCapOptions {
        &self.options
    }

    fn head_of(&self, owner: &Owner, call: &Call<'_>) -> ItemHead {
        ItemHead {
            time_to_live: self.options.time_to_live,
            ..ItemHead::text_of(owner, call.now)
        }
    }

    /// The copy of a result for the session's log of what a composite tool called: same cap, same text, and no tool is
    /// exempt. Side work: whoever called the tool has the whole result already.
    pub fn shape_log(&self, call: &Call<'_>, result: ToolResult) -> Shaped {
        self.shape_arm(call, Arm::Dispatch, result)
    }

    /// Bounds one text that is the whole result. `is_error` leans the preview towards the end.
    pub fn bound(&self, call: &Call<'_>, arm: Arm, text: &SharedText, is_error: bool) -> Verdict {
        self.bound_if(call, arm, text, is_error, &|_| true)
    }

    /// Replaces only by a text that `fits` accepts.
    fn bound_if(
        &self,
        call: &Call<'_>,
        arm: Arm,
        text: &SharedText,
        is_error: bool,
        fits: &dyn Fn(&SharedText) -> bool,
    ) -> Verdict {
        let Some(cap) = self.options.max_inline_bytes else {
            return Verdict::Keep(Kept::Off);
        };
        match decide_inline_cap(Bytes::of(text), Some(cap)) {
            Decision::Inline | Decision::InlineOverBudget => Verdict::Keep(Kept::WithinLimit),
            Decision::Store => self
                .replace(call, arm, text, is_error, fits)
                .unwrap_or_else(|warning| Verdict::Keep(Kept::Warned(warning))),
        }
    }

    /// The notice is tested first, so that nothing is stored that nobody is told of.
    fn replace(
        &self,
        call: &Call<'_>,
        arm: Arm,
        text: &SharedText,
        is_error: bool,
        fits: &dyn Fn(&SharedText) -> bool,
    ) -> Result<Verdict, Warning> {
        let owner = call.owner.ok_or_else(|| Warning::NoOwner {
            tool: call.tool.to_owned(),
            arm,
        })?;
        let failed = |error: StoreError| Warning::of_store(call, &error);
        let name = self.store.name(&arriving::label(call)).map_err(failed)?;
        let reference = name.locator().to_owned();
        let replacement = self.replacement(&reference, is_error);
        let shown = self
            .by_content(&replacement, text)
            .or_else(|| replacement.render(&Whole(text)))
            .map(SharedText::from)
            .filter(fits)
            .ok_or_else(|| self.too_large(call))?;
        let head = self.head_of(owner, call);
        let content = text.clone().into();
        let stored = self.store.put(name, head, content).map_err(failed)?;
        debug_assert_eq!(stored.locator, reference, "a store keeps the name it gave");
        let spilled = Spilled::new(reference, &stored, call, arm);
        Ok(Verdict::Replace {
            text: shown,
            spilled,
        })
    }

    fn by_content(&self, replacement: &Replacement<'_>, text: &str) -> Option<String> {
        match self.options.preview {
            Previews::Plain => None,
            Previews::Content => replacement.by_content(text, by_content::kind_of(text)?),
        }
    }

    fn replacement<'a>(&'a self, locator: &'a str, is_error: bool) -> Replacement<'a> {
        let cap = self.options.max_inline_bytes.unwrap_or(u64::MAX);
        let cap = self.options.preview_share.of(cap);
        Replacement {
            cap: usize::try_from(cap).unwrap_or(usize::MAX),
            locator,
            hint: &self.options.retrieval_hint,
            layout: self.options.layout,
            lean: if is_error { Lean::Tail } else { Lean::Even },
        }
    }

    fn too_large(&self, call: &Call<'_>) -> Warning {
        Warning::NoticeTooLarge {
            tool: call.tool.to_owned(),
            limit: match self.options.preview_share {
                PreviewShare::ALL => "maxInlineBytes",
                _ => "previewShare of maxInlineBytes",
            },
        }
    }

    fn exempt(&self, call: &Call<'_>) -> Option<Kept> {
        if self.options.max_inline_bytes.is_none() {
            return Some(Kept::Off);
        }
        if call.sub_call.is_some() {
            return Some(Kept::Nested);
        }
        if self.options.skip.contains(call.tool) {
            return Some(Kept::ByName);
        }
        let stored_here = |text: &str| {
            self.store
                .key_of(text)
                .is_some_and(|key| self.store.describe(key, &call.reader(), call.now).is_ok())
        };
        call.reads_back(&stored_here).then_some(Kept::ReadBack)
    }

    fn shape_arm(&self, call: &Call<'_>, arm: Arm, result: ToolResult) -> Shaped {
        let opened = Opened::new(result);
        let text = match self.text_part(&opened) {
            Ok(text) => text,
            Err(kept) => return opened.shaped(None, Verdict::Keep(kept), None),
        };
        let whole = opened.text.len();
        let smaller = |text: &SharedText| rejoined(&opened.canonical, text).len() < whole;
        let verdict = self.bound_if(call, arm, &text, opened.is_error, &smaller);
        let prompt = match &verdict {
            Verdict::Keep(_) => None,
            Verdict::Replace { text, .. } => Some(rejoined(&opened.canonical, text)),
        };
        opened.shaped(Some(Bytes::of(&text)), verdict, prompt)
    }

    /// The text that is measured and stored: all text blocks joined with nothing between.
    fn text_part(&self, opened: &Opened) -> Result<SharedText, Kept> {
        match &opened.canonical {
            Canonical::Text | Canonical::Value(_) => Ok(opened.text.clone()),
            Canonical::Blocks(blocks) => {
                let plain = blocks.iter().all(|block| matches!(block, Block::Text(_)));
                if plain || self.options.mixed == Mixed::BoundText {
                    Ok(joined(blocks).into())
                } else {
                    Err(Kept::NotText)
                }
            }
        }
    }
}

impl Policy for InlineCap {
    fn name(&self) -> &'static str {
        "inline-cap"
    }

    fn shape(&self, call: &Call<'_>, result: ToolResult) -> Shaped {
        match self.exempt(call) {
            Some(kept) => Shaped::kept(result, kept),
            None => self.shape_arm(call, Arm::Result, result),
        }
    }

    fn begin<'a>(&'a self, call: Call<'a>) -> Box<dyn ArrivingResult + 'a> {
        match self.exempt(&call) {
            Some(_) => Box::new(Gathered::new(self, call)),
            None => Box::new(Overflowing::new(self, call)),
        }
    }
}

fn joined(blocks: &[Block]) -> String {
    let texts = blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.as_str()),
        Block::Other(_) => None,
    });
    texts.collect()
}

/// The prompt text when `replacement` stands for the text part: alone, or in the place of the first text block with all
/// other blocks kept.
fn rejoined(canonical: &Canonical, replacement: &SharedText) -> SharedText {
    let Canonical::Blocks(blocks) = canonical else {
        return replacement.clone();
    };
    let mut waiting = Some(replacement);
    let content: Vec<Block> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::Other(_) => Some(block.clone()),
            Block::Text(_) => waiting.take().map(|text| Block::Text(text.to_string())),
        })
        .collect();
    match content.as_slice() {
        [Block::Text(_)] => replacement.clone(),
        _ => content_json(&content).into(),
    }
}
