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
    /// The list of messages is an empty array.
    #[error("'{0}' is empty, at least one message is needed")]
    Empty(&'static str),
    /// A member stands twice in the request.
    #[error("the parameter '{0}' is given twice")]
    Repeated(&'static str),
    /// A message that the API does not define.
    #[error("{list}[{index}]: {message}")]
    Message {
        /// What the API calls the array.
        list: &'static str,
        /// Its place in the array.
        index: usize,
        /// What is wrong with it.
        message: String,
    },
    /// A parameter that only a server which keeps conversations can serve.
    #[error("'{0}' is not supported: send the whole conversation with each request")]
    Stateful(&'static str),
    /// A tool list that the API does not define.
    #[error("tools: {0}")]
    Tools(String),
}
