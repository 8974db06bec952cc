//! The step loop over in-memory ports, and its clients over real sockets.

mod answers;
mod calls;
mod capture;
mod endings;
mod lifetime;
mod logs;
mod mcp;
mod openai;
mod policies;
mod ports;
mod spilling;
mod whole_job;
