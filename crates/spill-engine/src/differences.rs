#![doc = include_str!("../DIFFERENCES.md")]
