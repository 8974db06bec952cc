//! JSON: its shape, its counts and its first and last members, each with the offset of its bytes.

use std::collections::VecDeque;
use std::fmt;

use serde::de::{Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::sheet::{Row, Sheet};

/// Members kept of each end while the rest is only counted.
const KEPT: usize = 64;
/// Key names listed.
const NAMES: usize = 20;

/// What a value is and how many members it has.
#[derive(Clone, Copy)]
enum Shape {
    Object(u64),
    Array(u64),
}

impl fmt::Display for Shape {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(keys) => write!(out, "object of {keys} keys"),
            Self::Array(items) => write!(out, "array of {items} items"),
        }
    }
}

pub(super) fn preview(content: &[u8], cap: usize) -> Option<Sheet> {
    let whole: &RawValue = serde_json::from_slice(content).ok()?;
    let members = Members::of(whole.get())?;
    let mut first = format!("JSON {}, {} bytes", members.shape(), content.len());
    if let Shape::Array(_) = members.shape()
        && let Some(item) = members.front.first()
    {
        first.push_str(&names_of(item.value));
    }
    let mut sheet = Sheet::new(&first, cap);
    sheet.between = b" \t\r\n,]}";
    let base = content.as_ptr().addr();
    let row = |member: &Member<'_>| {
        let start = member.value.as_ptr().addr() - base;
        Row {
            label: member.label(),
            range: start..start + member.value.len(),
            line: None,
        }
    };
    let all = members.count == members.front.len() as u64;
    let front = members.front.iter().map(row);
    let back = members.back.iter().rev().map(row);
    if all {
        sheet.ends(content, front, members.front.iter().rev().map(row), 60);
    } else {
        sheet.ends(content, front, back, 60);
    }
    Some(sheet)
}

/// Keys of an object that stands for its neighbours.
fn names_of(json: &str) -> String {
    let Some(members) = Members::of(json).filter(|members| members.is_object) else {
        return String::new();
    };
    let names: Vec<String> = members
        .front
        .iter()
        .take(NAMES)
        .map(|member| member.name.chars().take(40).collect())
        .collect();
    format!("; the first has the keys {}", names.join(", "))
}

struct Member<'a> {
    name: String,
    value: &'a str,
}

impl Member<'_> {
    /// The name, and what stands below it.
    fn label(&self) -> String {
        let name: String = self.name.chars().take(80).collect();
        match Members::of(self.value).map(|members| members.shape()) {
            Some(shape) => format!("{name}, {shape},"),
            None => name,
        }
    }
}

/// The first and last members of a value.
#[derive(Default)]
struct Members<'a> {
    is_object: bool,
    count: u64,
    front: Vec<Member<'a>>,
    back: VecDeque<Member<'a>>,
}

impl<'a> Members<'a> {
    /// `None` for what is neither object nor array.
    fn of(json: &'a str) -> Option<Self> {
        let mut from = serde_json::Deserializer::from_str(json);
        match json.as_bytes().first()? {
            b'{' => from.deserialize_map(Collect).ok(),
            b'[' => from.deserialize_seq(Collect).ok(),
            _ => None,
        }
    }

    fn shape(&self) -> Shape {
        if self.is_object {
            Shape::Object(self.count)
        } else {
            Shape::Array(self.count)
        }
    }

    fn add(&mut self, name: String, value: &'a str) {
        self.count += 1;
        let member = Member { name, value };
        if self.front.len() < KEPT {
            self.front.push(member);
            return;
        }
        if self.back.len() == KEPT {
            self.back.pop_front();
        }
        self.back.push_back(member);
    }
}

struct Collect;

impl<'a> Visitor<'a> for Collect {
    type Value = Members<'a>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object or an array")
    }

    fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut members = Members {
            is_object: true,
            ..Members::default()
        };
        while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
            members.add(name, value.get());
        }
        Ok(members)
    }

    fn visit_seq<S: SeqAccess<'a>>(self, mut seq: S) -> Result<Self::Value, S::Error> {
        let mut members = Members::default();
        while let Some(value) = seq.next_element::<&RawValue>()? {
            members.add(members.count.to_string(), value.get());
        }
        Ok(members)
    }
}
