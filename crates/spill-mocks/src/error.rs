/// A request that the mock LLM server refuses before the simulated model sees it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRequest {
    /// The body is not JSON, or a member has another type than the API defines.
    #[error("could not parse the request body at byte {at}: {message}")]
    Malformed {
        /// Offset in the body.
        at: usize,
        /// What is wrong there.
        message: String,
    },
    /// A member that every request needs is not there.
    #[error("you must provide the parameter '{0}'")]
    Missing(&'static str),
    /// `messages` is an empty array.
    #[error("'messages' is empty, at least one message is needed")]
    NoMessages,
    /// A member stands twice in the request.
    #[error("the parameter '{0}' is given twice")]
    Repeated(&'static str),
    /// A message that the API does not define.
    #[error("messages[{index}]: {message}")]
    Message {
        /// Its place in the array.
        index: usize,
        /// What is wrong with it.
        message: String,
    },
    /// A tool list that the API does not define.
    #[error("tools: {0}")]
    Tools(String),
}
