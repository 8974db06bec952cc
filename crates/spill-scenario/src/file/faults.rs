//! The tables `[[fault]]` and `[expect]`.

use std::collections::BTreeMap;

use spill_record::EndReason;
use toml::Spanned;

use super::SourceText;
use super::check::{Checked, choice};
use super::raw::{RawExpect, RawFault, Size};
use crate::fault::{Expect, Fault, FaultKind, LlmFault, ToolFault};

/// A time that no test waits for.
const LONG_MS: u64 = 600_000;
/// The time between the pieces of a slow answer.
const DRIP_MS: u64 = 2;
/// How long a slow tool takes.
const SLOW_MS: u64 = 50;
/// Bytes of a result that is made longer, at most.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// The figures of a fault that its kind has not asked for yet.
struct Figures<'a> {
    source: &'a SourceText<'a>,
    kind: String,
    given: BTreeMap<&'static str, (std::ops::Range<usize>, u64)>,
}

impl Figures<'_> {
    fn take(&mut self, name: &'static str) -> Option<u64> {
        self.given.remove(name).map(|(_, value)| value)
    }

    fn bytes(&mut self, span: std::ops::Range<usize>) -> Checked<u64> {
        let kind = &self.kind;
        match self.given.remove("bytes") {
            Some((_, bytes)) if (2..=MOST_BYTES).contains(&bytes) => Ok(bytes),
            Some((span, bytes)) => Err(self.source.invalid(
                span,
                format!("`bytes` is {bytes}"),
                format!("write a size from 2 to {MOST_BYTES}"),
            )),
            None => Err(self.source.invalid(
                span,
                format!("a fault of the kind `{kind}` needs `bytes`"),
                "write how many the result's JSON is to have, such as \"32KiB\" or 32767",
            )),
        }
    }

    /// What is left belongs to no figure of this kind.
    fn finish(self) -> Checked<()> {
        match self.given.into_iter().next() {
            None => Ok(()),
            Some((name, (span, _))) => Err(self.source.invalid(
                span,
                format!("a fault of the kind `{}` has no `{name}`", self.kind),
                "remove it, or choose another kind",
            )),
        }
    }
}

pub(super) fn faults(source: &SourceText<'_>, raw: &[RawFault]) -> Checked<Vec<Fault>> {
    raw.iter().map(|fault| one(source, fault)).collect()
}

fn one(source: &SourceText<'_>, raw: &RawFault) -> Checked<Fault> {
    let plain = |raw: &Option<Spanned<u64>>| {
        raw.as_ref()
            .map(|number| (number.span(), *number.get_ref()))
    };
    let size =
        |raw: &Option<Spanned<Size>>| raw.as_ref().map(|size| (size.span(), size.get_ref().0));
    let given = [
        ("retry_after_ms", plain(&raw.retry_after_ms)),
        ("delay_ms", plain(&raw.delay_ms)),
        ("status", plain(&raw.status)),
        ("bytes", size(&raw.bytes)),
    ];
    let mut figures = Figures {
        source,
        kind: raw.kind.get_ref().clone(),
        given: given
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .collect(),
    };
    let is_llm = choice(
        source,
        &raw.server,
        "server",
        &[("llm", true), ("tools", false)],
    )?;
    let kind = if is_llm {
        FaultKind::Llm(llm_kind(source, raw, &mut figures)?)
    } else {
        FaultKind::Tools(tool_kind(source, raw, &mut figures)?)
    };
    figures.finish()?;
    let from_one = |raw: &Option<Spanned<u64>>, key: &str, default| match raw {
        None => Ok(default),
        Some(number) if *number.get_ref() == 0 => Err(source.invalid(
            number.span(),
            format!("`{key}` is 0"),
            "write at least 1; calls are counted from 1",
        )),
        Some(number) => Ok(*number.get_ref()),
    };
    let call = from_one(&Some(raw.call.clone()), "call", 1)?;
    let last_call = from_one(&raw.last_call, "last_call", call)?;
    if last_call < call {
        return Err(source.invalid(
            raw.last_call.as_ref().map_or(0..0, Spanned::span),
            format!("`last_call` is {last_call} and `call` is {call}"),
            "write the first and the last call that it can hit",
        ));
    }
    Ok(Fault {
        kind,
        call,
        last_call,
        times: from_one(&raw.times, "times", 1)?,
        share: share(source, raw.share.as_ref())?,
        repetition: raw.repetition.as_ref().map(|number| *number.get_ref()),
        end_reason: raw
            .end_reason
            .as_ref()
            .map(|word| end(source, word))
            .transpose()?,
    })
}

fn share(source: &SourceText<'_>, raw: Option<&Spanned<f64>>) -> Checked<f64> {
    match raw {
        None => Ok(1.0),
        Some(share) if (0.0..=1.0).contains(share.get_ref()) => Ok(*share.get_ref()),
        Some(share) => Err(source.invalid(
            share.span(),
            format!("`share` is {}", share.get_ref()),
            "write the share of the pairs that it hits, from 0 to 1",
        )),
    }
}

fn llm_kind(
    source: &SourceText<'_>,
    raw: &RawFault,
    figures: &mut Figures<'_>,
) -> Checked<LlmFault> {
    let kinds = [
        LlmFault::RateLimit {
            retry_after_ms: None,
        },
        LlmFault::ServerError,
        LlmFault::Unavailable,
        LlmFault::Unauthorized,
        LlmFault::ContextWindow,
        LlmFault::Timeout { delay_ms: LONG_MS },
        LlmFault::Reset,
        LlmFault::CutStream,
        LlmFault::StreamError,
        LlmFault::MalformedJson,
        LlmFault::MalformedArguments,
        LlmFault::UnknownTool,
        LlmFault::HallucinatedReference,
        LlmFault::OutOfRangeRead,
        LlmFault::DuplicateCallId,
        LlmFault::EmptyChoice,
        LlmFault::EmptyAnswer,
        LlmFault::SlowDrip { delay_ms: DRIP_MS },
    ]
    .map(|kind| (kind.name(), kind));
    Ok(
        match choice(source, &raw.kind, "kind of fault of the LLM", &kinds)? {
            LlmFault::RateLimit { .. } => LlmFault::RateLimit {
                retry_after_ms: figures.take("retry_after_ms"),
            },
            LlmFault::Timeout { delay_ms } => LlmFault::Timeout {
                delay_ms: figures.take("delay_ms").unwrap_or(delay_ms),
            },
            LlmFault::SlowDrip { delay_ms } => LlmFault::SlowDrip {
                delay_ms: figures.take("delay_ms").unwrap_or(delay_ms),
            },
            other => other,
        },
    )
}

fn tool_kind(
    source: &SourceText<'_>,
    raw: &RawFault,
    figures: &mut Figures<'_>,
) -> Checked<ToolFault> {
    let kinds = [
        ToolFault::ErrorResult,
        ToolFault::Slow { delay_ms: SLOW_MS },
        ToolFault::Timeout { delay_ms: LONG_MS },
        ToolFault::Cut,
        ToolFault::WrongContentType,
        ToolFault::HttpError { status: 500 },
        ToolFault::MalformedJson,
        ToolFault::ResultBytes { bytes: 0 },
        ToolFault::OneLineJson { bytes: 0 },
        ToolFault::MultiByte { bytes: 0 },
        ToolFault::LoneSurrogate,
        ToolFault::Nul,
        ToolFault::Binary,
    ]
    .map(|kind| (kind.name(), kind));
    let span = raw.kind.span();
    Ok(
        match choice(source, &raw.kind, "kind of fault of the tools", &kinds)? {
            ToolFault::Slow { delay_ms } => ToolFault::Slow {
                delay_ms: figures.take("delay_ms").unwrap_or(delay_ms),
            },
            ToolFault::Timeout { delay_ms } => ToolFault::Timeout {
                delay_ms: figures.take("delay_ms").unwrap_or(delay_ms),
            },
            ToolFault::HttpError { status } => ToolFault::HttpError {
                status: http_status(source, raw, figures, status)?,
            },
            ToolFault::ResultBytes { .. } => ToolFault::ResultBytes {
                bytes: figures.bytes(span)?,
            },
            ToolFault::OneLineJson { .. } => ToolFault::OneLineJson {
                bytes: figures.bytes(span)?,
            },
            ToolFault::MultiByte { .. } => ToolFault::MultiByte {
                bytes: figures.bytes(span)?,
            },
            other => other,
        },
    )
}

fn http_status(
    source: &SourceText<'_>,
    raw: &RawFault,
    figures: &mut Figures<'_>,
    default: u16,
) -> Checked<u16> {
    let Some(given) = figures.take("status") else {
        return Ok(default);
    };
    let status = u16::try_from(given).ok();
    let status = status.filter(|status| (400..600).contains(status));
    status.ok_or_else(|| {
        let span = raw.status.as_ref().map_or(0..0, Spanned::span);
        source.invalid(
            span,
            format!("`status` is {given}"),
            "write an HTTP status from 400 to 599",
        )
    })
}

/// The ends that a scenario can expect: those that are not the harness's own.
const ENDS: [EndReason; 10] = [
    EndReason::Answered,
    EndReason::EmptyAnswer,
    EndReason::IterationLimit,
    EndReason::ContextWindow,
    EndReason::Timeout,
    EndReason::Aborted,
    EndReason::ModelError,
    EndReason::ToolError,
    EndReason::Crashed,
    EndReason::BadSettings,
];

pub(super) fn expect(source: &SourceText<'_>, raw: Option<&RawExpect>) -> Checked<Option<Expect>> {
    let Some(raw) = raw else { return Ok(None) };
    Ok(Some(Expect {
        end_reason: end(source, &raw.end_reason)?,
        otherwise: match &raw.otherwise {
            Some(word) => end(source, word)?,
            None => EndReason::Answered,
        },
    }))
}

fn end(source: &SourceText<'_>, word: &Spanned<String>) -> Checked<EndReason> {
    let ends = ENDS.map(|end| (end.as_str(), end));
    choice(source, word, "way to end", &ends)
}
