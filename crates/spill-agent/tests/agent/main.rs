//! The step loop over in-memory ports, and its clients over real sockets.

mod answers;
mod calls;
mod capture;
mod composite;
mod endings;
mod files;
mod lifetime;
mod logs;
mod mcp;
mod openai;
mod policies;
mod ports;
mod spilling;
mod turns;
mod whole_job;
