//! Forwarding to a real endpoint: the mock LLM server as a recorder.
//!
//! The subject talks to the same addresses as ever. What it sends is read and journalled as the
//! simulated model's requests are, then sent on with the real key; the answer is handed back as it
//! comes while it is read for its usage. Nothing is sent twice here: a refusal or a lost connection
//! goes to the subject, which tries again or not, and each attempt is a request of its own in the
//! journal. Only this module holds the key.

mod answer;
mod chat;
mod client;
mod endpoint;
mod flight;
mod key;
mod messages;
mod relay;
mod responses;
mod scrub;
mod sse;
mod stream;
mod upstream;

pub use answer::BilledTokens;
pub use endpoint::{Endpoint, EndpointApi, EndpointError};
pub use flight::{Attempt, Gate};
pub use key::{EndpointKey, KeyError};
pub use upstream::{Upstream, UpstreamError, UpstreamOptions};

pub(crate) use relay::relay;
