//! What the replays of the golden values share: reading the files, building inputs, a store that notes what it is given.

use std::sync::Mutex;

use serde_json::{Value, json};
use spill_engine::{
    ByteRange, Content, ItemHead, ItemKey, ItemName, ItemWriter, Millis, Owner, ReadFailure,
    Reader, Slice, SpillStore, StoreError, StoreUsage, StoredItem, Swept,
};

/// A golden file.
pub(crate) fn golden(text: &str) -> Value {
    serde_json::from_str(text).expect("a golden file is JSON")
}

/// The value that `input` stands for; `None` for what no JSON value can be. Bytes come as `{"$bytes"}` untouched.
pub(crate) fn built(input: &Value) -> Option<Value> {
    let count = |value: &Value| usize::try_from(value.as_u64().expect("a count")).expect("small");
    match input.as_object().and_then(|map| map.iter().next()) {
        Some((form, of)) if form == "$repeat" => {
            let text = of[0].as_str().expect("a text");
            Some(text.repeat(count(&of[1])).into())
        }
        Some((form, of)) if form == "$fill" => Some(vec![of[0].clone(); count(&of[1])].into()),
        Some((form, of)) if form == "$keys" => {
            let prefix = of[0].as_str().expect("a prefix");
            let keys = (0..count(&of[1])).map(|index| (format!("{prefix}{index}"), json!(1)));
            Some(keys.collect())
        }
        Some((form, of)) if form == "$js" => match of.as_str().expect("a name") {
            "map" => Some(json!({})),
            "fn" => Some(Value::Null),
            "nan" => Some(json!([null, 1, 2, 3, 4, 5, 6, 7, 8, 9])),
            "date0" => Some(json!("1970-01-01T00:00:00.000Z")),
            "undefvals" => Some(json!({"b": "x".repeat(40), "c": 1})),
            "circular" | "circinarr" => None,
            other => panic!("an unknown value {other}"),
        },
        Some(_) | None => Some(input.clone()),
    }
}

/// The bytes of `{"$bytes": [byte, count]}`.
pub(crate) fn bytes_of(input: &Value) -> Option<Vec<u8>> {
    let of = input.get("$bytes")?;
    let number = |value: &Value| value.as_u64().expect("a number");
    let byte = u8::try_from(number(&of[0])).expect("a byte");
    Some(vec![byte; usize::try_from(number(&of[1])).expect("small")])
}

/// What a store was given.
pub(crate) struct Saved {
    pub(crate) label: String,
    pub(crate) head: ItemHead,
    pub(crate) content: Content,
}

impl Saved {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.content.as_bytes().to_vec()).expect("a text")
    }
}

/// Gives every item the same name and notes what is put; or fails.
pub(crate) struct Noting {
    pub(crate) locator: String,
    pub(crate) quota: u64,
    pub(crate) fails: Option<StoreError>,
    pub(crate) labels: Mutex<Vec<String>>,
    pub(crate) saved: Mutex<Vec<Saved>>,
}

impl Noting {
    pub(crate) fn new(locator: &str) -> Self {
        Self {
            locator: locator.to_owned(),
            quota: u64::MAX,
            fails: None,
            labels: Mutex::default(),
            saved: Mutex::default(),
        }
    }
}

impl SpillStore for Noting {
    fn name(&self, label: &str) -> Result<ItemName, StoreError> {
        self.labels
            .lock()
            .expect("one thread")
            .push(label.to_owned());
        Ok(ItemName::new(ItemKey::from_number(1), self.locator.clone()))
    }

    fn put(
        &self,
        name: ItemName,
        head: ItemHead,
        content: Content,
    ) -> Result<StoredItem, StoreError> {
        if let Some(error) = &self.fails {
            return Err(error.clone());
        }
        if content.size().get() > self.quota {
            let (size, quota) = (content.size().get(), self.quota);
            return Err(StoreError::TooLarge { size, quota });
        }
        let stored = StoredItem {
            key: name.key(),
            locator: name.locator().to_owned(),
            media_type: head.media_type.clone(),
            size: content.size(),
            expires_at: head.expires_at(),
        };
        let label = self.labels.lock().expect("one thread").pop();
        self.saved.lock().expect("one thread").push(Saved {
            label: label.expect("a name comes first"),
            head,
            content,
        });
        Ok(stored)
    }

    fn begin<'a>(
        &'a self,
        _: ItemName,
        _: ItemHead,
    ) -> Result<Box<dyn ItemWriter + 'a>, StoreError> {
        unreachable!("no replay streams")
    }

    fn describe(&self, _: ItemKey, _: &Reader, _: Millis) -> Result<StoredItem, ReadFailure> {
        Err(ReadFailure::NotFound)
    }

    fn read(&self, _: ItemKey, _: &Reader, _: ByteRange, _: Millis) -> Result<Slice, ReadFailure> {
        Err(ReadFailure::NotFound)
    }

    fn key_of(&self, _: &str) -> Option<ItemKey> {
        None
    }

    fn release(&self, _: &Owner) {}

    fn sweep(&self, _: Millis) -> Swept {
        Swept::default()
    }

    fn usage(&self) -> StoreUsage {
        StoreUsage::default()
    }
}

/// A difference between what was observed and what we do.
pub(crate) struct Row {
    /// The golden case.
    pub(crate) case: &'static str,
    /// Which of its values differ.
    pub(crate) what: &'static [&'static str],
    /// The number in the list of weaknesses of its policy that the difference mends.
    pub(crate) weakness: u8,
    /// What ours does.
    pub(crate) ours: &'static str,
}

/// Holds the differences that a replay found against the table: each is a row, and each row is a difference.
pub(crate) fn check_differences(form: &str, found: &[(String, String)], rows: &[Row]) {
    let mut expected: Vec<(String, String)> = Vec::new();
    for row in rows {
        let values = row.what.iter();
        expected.extend(values.map(|what| (row.case.to_owned(), (*what).to_owned())));
    }
    let missing: Vec<_> = found.iter().filter(|one| !expected.contains(one)).collect();
    let idle: Vec<_> = expected.iter().filter(|one| !found.contains(one)).collect();
    assert!(
        missing.is_empty() && idle.is_empty(),
        "{form}: differences without a row {missing:#?}, rows without a difference {idle:#?}"
    );
}

/// The rows as a Markdown table.
pub(crate) fn markdown(rows: &[Row]) -> String {
    let mut text =
        String::from("| golden case | differs in | weakness | ours |\n|---|---|---|---|\n");
    for row in rows {
        let what = row.what.join(", ");
        let case = row.case.replace('[', "\\[").replace(']', "\\]");
        text.push_str(&format!(
            "| {case} | {what} | {} | {} |\n",
            row.weakness, row.ours
        ));
    }
    text
}
