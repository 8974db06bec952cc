//! How much the tools return for a call, whatever of it an agent puts into its prompt.

use spill_scenario::{ServedInput, TableFormat};

use crate::conversation::Call;
use crate::seen::Subject;

/// Bytes of what the tools return for a call; `None` where that is no text that is served whole.
pub(crate) fn served_bytes(call: &Call, served: &ServedInput) -> Option<u64> {
    let table = |format, argument| served.table(format, call.text(argument)?);
    let text = match Subject::of_tool(&call.name)? {
        Subject::List => Some(served.list_text()),
        Subject::Diffs => None,
        Subject::Diff => served.diff(call.text("path")?),
        Subject::File => served.file(call.text("path")?),
        Subject::Document => served.document(call.text("name")?),
        Subject::Rows => table(TableFormat::Rows, "table"),
        Subject::Csv => table(TableFormat::Csv, "table"),
        Subject::Log => table(TableFormat::Log, "name"),
        Subject::Recorded => {
            let recorded = served.recorded(call.recorded_key()?);
            recorded.map(|result| &result.text)
        }
    };
    text.map(|text| text.len() as u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use spill_scenario::InputData;

    use super::*;
    use crate::testing::{document, recorded, records, review, served};

    fn size(data: InputData, tool: &str, arguments: &serde_json::Value) -> Option<u64> {
        let call = Call::parsed("c1".to_owned(), tool.to_owned(), arguments.clone());
        served_bytes(&call, &served(data))
    }

    #[test]
    fn a_result_is_as_large_as_the_tools_serve_it() {
        let files = served(review());
        let (path, file) = files.files().next().expect("a file");
        let diff = files.diff(path).expect("its diff");
        let named = json!({"path": path});
        let of_review = |tool| size(review(), tool, &named);
        assert_eq!(of_review("mcp__mock__read_file"), Some(file.len() as u64));
        assert_eq!(of_review("read_diff"), Some(diff.len() as u64));
        let list = files.list_text().len() as u64;
        assert_eq!(of_review("list_changed_files"), Some(list));
        let text = &document().documents[0];
        let named = json!({"name": text.name});
        let of_document = size(document(), "read_document", &named);
        assert!(of_document > Some(text.text.len() as u64));
        for data in records().tables {
            let (tool, argument) = match data.format {
                TableFormat::Rows => ("query", "table"),
                TableFormat::Csv => ("export_csv", "table"),
                TableFormat::Log => ("read_log", "name"),
            };
            let found = size(records(), tool, &json!({argument: data.name}));
            let tables = served(records());
            let table = tables.table(data.format, &data.name).expect("a table");
            assert_eq!(found, Some(table.len() as u64), "{tool}");
        }
        let call = &recorded().calls[1];
        let arguments = serde_json::Value::Object(call.arguments.clone());
        let of_call = size(recorded(), "recorded_read_file", &arguments);
        assert_eq!(of_call, Some(call.result.len() as u64));
    }

    #[test]
    fn what_is_not_served_whole_has_no_size() {
        let nowhere = json!({"path": "nowhere", "name": "nowhere", "table": "nowhere"});
        for tool in ["read_diff", "read_diffs", "read_file", "search", "Read"] {
            assert_eq!(size(review(), tool, &nowhere), None, "{tool}");
        }
        assert_eq!(size(records(), "query", &nowhere), None);
        assert_eq!(size(review(), "read_file", &json!({})), None);
        assert_eq!(size(recorded(), "recorded_cat", &json!({})), None);
    }
}
