//! What a model's answers take, and what it recalls: `[model.latency]` and `recall`.

use spill_record::{LatencyRecord, RecallPoint};
use toml::Spanned;

use super::SourceText;
use super::check::Checked;
use super::raw::RawLatency;
use crate::defaults;

pub(super) fn latency(
    source: &SourceText<'_>,
    raw: Option<&RawLatency>,
) -> Checked<Option<LatencyRecord>> {
    /// More than this is no time that a model takes for one of anything.
    const MOST: f64 = 3_600_000.0;
    let Some(raw) = raw else { return Ok(None) };
    let number = |raw: &Option<Spanned<f64>>, key: &str, default: f64, most: f64| match raw {
        None => Ok(default),
        Some(number) if (0.0..=most).contains(number.get_ref()) => Ok(*number.get_ref()),
        Some(number) => Err(source.invalid(
            number.span(),
            format!("`{key}` is {}", number.get_ref()),
            format!("write a number from 0 to {most}; the default is {default}"),
        )),
    };
    let by = defaults::LATENCY;
    Ok(Some(LatencyRecord {
        overhead_ms: number(&raw.overhead_ms, "overhead_ms", by.overhead_ms, MOST)?,
        uncached_token_ms: number(
            &raw.uncached_token_ms,
            "uncached_token_ms",
            by.uncached_token_ms,
            MOST,
        )?,
        output_token_ms: number(
            &raw.output_token_ms,
            "output_token_ms",
            by.output_token_ms,
            MOST,
        )?,
        queue_ms: number(&raw.queue_ms, "queue_ms", by.queue_ms, MOST)?,
        sleep_scale: number(&raw.sleep_scale, "sleep_scale", by.sleep_scale, 1.0)?,
    }))
}

pub(super) fn recall(
    source: &SourceText<'_>,
    raw: Option<&Spanned<Vec<(u64, f64)>>>,
) -> Checked<Vec<RecallPoint>> {
    let Some(raw) = raw else {
        return Ok(defaults::RECALL.to_vec());
    };
    let points: Vec<RecallPoint> = raw
        .get_ref()
        .iter()
        .map(|(tokens, share)| RecallPoint {
            tokens: *tokens,
            share: *share,
        })
        .collect();
    let ascends = points.windows(2).all(|two| two[0].tokens < two[1].tokens);
    let are_shares = points
        .iter()
        .all(|point| point.tokens > 0 && (0.0..=1.0).contains(&point.share));
    if points.is_empty() || !ascends || !are_shares {
        return Err(source.invalid(
            raw.span(),
            "`recall` is no curve",
            "write pairs such as [[4096, 0.97], [131072, 0.81]]: tokens from 1, ascending, and shares from 0 to 1",
        ));
    }
    Ok(points)
}
