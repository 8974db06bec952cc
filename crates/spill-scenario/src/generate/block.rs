use super::rng::Rng;
use super::words::ItemNames;

/// The language of a generated file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Rust,
    Python,
}

/// One top-level item of a source file, with a place in a function's body where statements fit.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) lines: Vec<String>,
    /// Statements go before this line.
    pub(super) slot: usize,
    /// Spaces before a statement there.
    pub(super) indent: usize,
}

impl Block {
    /// Reads a template: its lines, with the slot where a line is `@` after its indentation.
    pub(super) fn from_template(text: &str) -> Self {
        let mut block = Self {
            lines: Vec::new(),
            slot: 0,
            indent: 0,
        };
        for line in text.trim_matches('\n').lines() {
            if line.trim() == "@" {
                block.slot = block.lines.len();
                block.indent = line.len() - 1;
            } else {
                block.lines.push(line.to_owned());
            }
        }
        block
    }

    /// Puts statements at the slot.
    pub(super) fn with(&self, statements: &[String]) -> Vec<String> {
        let pad = " ".repeat(self.indent);
        let mut lines = self.lines.clone();
        lines.splice(
            self.slot..self.slot,
            statements.iter().map(|line| {
                if line.is_empty() {
                    String::new()
                } else {
                    format!("{pad}{line}")
                }
            }),
        );
        lines
    }

    pub(super) fn bytes(&self) -> usize {
        self.lines.iter().map(|line| line.len() + 1).sum()
    }
}

impl Language {
    pub(super) fn header(self, rng: &mut Rng) -> Vec<String> {
        match self {
            Self::Rust => super::rust_code::header(rng),
            Self::Python => super::python_code::header(rng),
        }
    }

    pub(super) fn block(self, rng: &mut Rng, names: &mut ItemNames) -> Block {
        match self {
            Self::Rust => super::rust_code::block(rng, names),
            Self::Python => super::python_code::block(rng, names),
        }
    }

    /// Statements without a defect, without indentation.
    pub(super) fn statements(self, rng: &mut Rng, count: usize) -> Vec<String> {
        (0..count)
            .flat_map(|_| match self {
                Self::Rust => super::rust_code::statement(rng),
                Self::Python => super::python_code::statement(rng),
            })
            .collect()
    }

    /// Blank lines between items.
    pub(super) fn gap(self) -> usize {
        match self {
            Self::Rust => 1,
            Self::Python => 2,
        }
    }
}
