//! A real endpoint: a second process that serves the mock LLM, and servers that follow a script.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::program::{Mock, Said, folder, program, rows, said, scenario_with, verdict};

pub(crate) const KEY: &str = "sk-canary-4f1d-90ab";
const MODEL: &str = "real-1";

/// `accept` on one document, two repetitions, at the endpoint `llm`, with the canary as its key.
fn accept(folder: &Path, llm: &str, more: &[&str]) -> Said {
    let scenario = scenario_with(folder, "document", "handbook");
    let mut command = program();
    command
        .args(["accept", "--stage", "quick", "--llm", llm, "--scenario"])
        .arg(scenario)
        .args(more)
        .env("OPENAI_API_KEY", KEY)
        .env("ANTHROPIC_API_KEY", KEY)
        .current_dir(folder);
    let said = said(command.output().unwrap());
    assert!(!said.stdout.contains(KEY), "{}", said.stdout);
    assert!(!said.stderr.contains(KEY), "{}", said.stderr);
    said
}

const ENOUGH: [&str; 4] = ["--model", MODEL, "--spend-tokens", "100000000"];

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The mock of the document, with these tables behind its scenario.
fn upstream(folder: &Path, more: &str) -> Mock {
    let place = folder.join("upstream");
    fs::create_dir_all(&place).unwrap();
    let scenario = scenario_with(&place, "document", "handbook");
    let text = fs::read_to_string(&scenario).unwrap();
    fs::write(&scenario, format!("{text}\n{more}")).unwrap();
    Mock::start(&["--scenario", &scenario.to_string_lossy()])
}

/// No file below `folder` holds the key.
fn check_without_key(folder: &Path) {
    let mut searched = 0;
    let mut left = vec![folder.to_owned()];
    while let Some(place) = left.pop() {
        for entry in fs::read_dir(place).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else {
                let bytes = fs::read(&path).unwrap();
                let found = bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes());
                assert!(!found, "the key is in {}", path.display());
                searched += 1;
            }
        }
    }
    assert!(searched > 10, "{searched} files were searched");
}

#[test]
fn a_second_mock_is_measured_as_an_endpoint_and_the_key_is_nowhere() {
    let folder = folder();
    let mock = upstream(folder.path(), "");
    let host = mock.llm.split('/').nth(2).unwrap().to_owned();
    // It keeps its environment and arguments, its parent's, and its job, then is the built-in subject.
    let kept = folder.path().join("kept");
    fs::create_dir(&kept).unwrap();
    let subject = folder.path().join("subject.sh");
    let script = format!(
        "#!/bin/sh\nfor f in environ cmdline; do cat /proc/$$/$f /proc/$PPID/$f >> {0}/$$; done\nif [ -f \"$2\" ]; then cat \"$2\" >> {0}/$$; fi\nexec \"$SPILLGATE_BIN\" step \"$@\"\n",
        kept.display()
    );
    fs::write(&subject, script).unwrap();
    fs::set_permissions(&subject, fs::Permissions::from_mode(0o755)).unwrap();
    let mut more = ENOUGH.to_vec();
    let subject = subject.to_string_lossy().into_owned();
    more.extend(["--subject", &subject]);
    let said = accept(folder.path(), &format!("openai:{}", mock.llm), &more);
    // Two pairs prove nothing at a real endpoint.
    assert_eq!(said.code, Some(4), "{}{}", said.stdout, said.stderr);
    for words in [
        format!("live: the model is {MODEL} at {host}"),
        "live: 6 runs of at most 1,500 requests".to_owned(),
        "attainable: rule 1 cannot hold: 2 pairs".to_owned(),
        "cap: 100,000,000 tokens".to_owned(),
        "spent: ".to_owned(),
    ] {
        assert!(said.stderr.contains(&words), "{words}: {}", said.stderr);
    }
    let latest = folder.path().join("reports/latest");
    check_without_key(folder.path());
    assert!(fs::read_dir(&kept).unwrap().count() >= 6);

    let manifest = json(&latest.join("manifest.json"));
    assert_eq!(manifest["mode"], "live");
    assert_eq!(
        manifest["endpoint"],
        serde_json::json!({"api": "openai", "host": host})
    );
    let verdict = verdict(folder.path());
    assert_eq!(verdict["mode"], "live");
    assert_eq!(verdict["profiles"], serde_json::json!([]));
    assert_eq!(fs::read(latest.join("sensitivity.jsonl")).unwrap(), b"");
    let runs = rows(&latest.join("runs.csv"));
    assert_eq!(runs.len(), 6);
    for run in &runs {
        assert_eq!(run["outcome"], "succeeded", "{}", run["error"]);
        // All facts stand in the whole text; the mock behind may be one that reads nothing back.
        assert!(run["configuration"] != "off" || run["quality"] == "1");
        assert_eq!((&*run["model"], &*run["profile"]), (MODEL, "live"));
        assert_ne!(run["model_time_ms"], "");
    }
    // One place counts: the calls add up to the runs and to what was spent.
    let calls = lines(&latest.join("calls.jsonl"));
    let spending = json(&latest.join("spending.json"));
    assert_eq!(spending["calls"], calls.len());
    let sum = |bucket: &str| -> u64 {
        calls
            .iter()
            .map(|call| call["tokens"][bucket].as_u64().unwrap())
            .sum()
    };
    let mut input = 0;
    for bucket in [
        "uncached_input_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
    ] {
        assert_eq!(spending["billed"][bucket], sum(bucket), "{bucket}");
        input += sum(bucket);
    }
    assert_eq!(spending["billed"]["output_tokens"], sum("output_tokens"));
    let of_runs: u64 = runs
        .iter()
        .map(|run| run["input_tokens"].parse::<u64>().unwrap())
        .sum();
    assert_eq!(of_runs, input);
    assert!(
        sum("cache_read_tokens") > 0,
        "the endpoint's own usage is told"
    );
}

#[test]
fn what_the_endpoint_refuses_for_a_while_is_tried_again_and_counted() {
    let folder = folder();
    let faults = "[expect]\nend_reason = \"answered\"\n\
        [[fault]]\nserver = \"llm\"\nkind = \"rate_limit\"\ncall = 2\nretry_after_ms = 5\n\
        [[fault]]\nserver = \"llm\"\nkind = \"server_error\"\ncall = 4\n";
    let mock = upstream(folder.path(), faults);
    let mut more = ENOUGH.to_vec();
    more.extend(["--jobs", "1"]);
    let said = accept(folder.path(), &format!("openai:{}", mock.llm), &more);
    assert_eq!(said.code, Some(4), "{}{}", said.stdout, said.stderr);
    let latest = folder.path().join("reports/latest");
    let calls = lines(&latest.join("calls.jsonl"));
    let refused: Vec<u64> = calls
        .iter()
        .filter_map(|call| call["status"].as_u64().filter(|status| *status != 200))
        .collect();
    assert_eq!(refused, [429, 500]);
    let runs = rows(&latest.join("runs.csv"));
    let retries: u64 = runs
        .iter()
        .map(|run| run["llm_retries"].parse::<u64>().unwrap())
        .sum();
    assert_eq!(retries, 2);
    assert!(runs.iter().all(|run| run["outcome"] == "succeeded"));
    let spending = json(&latest.join("spending.json"));
    assert_eq!(spending["calls"], calls.len());
    assert_eq!(spending["calls_without_answer"], 2);
}

#[test]
fn a_reached_cap_ends_the_acceptance_and_a_larger_one_goes_on() {
    let folder = folder();
    let mock = upstream(folder.path(), "");
    let llm = format!("openai:{}", mock.llm);
    let prices = folder.path().join("prices.toml");
    let table = format!(
        "[models.{MODEL}]\ncurrency = \"EUR\"\nuncached_input_per_million = 1.0\ncache_read_per_million = 1.0\n\
         cache_write_per_million = 1.0\noutput_per_million = 1.0\n"
    );
    fs::write(&prices, table).unwrap();
    let prices = prices.to_string_lossy().into_owned();
    let money = [
        "--model",
        MODEL,
        "--prices",
        &prices,
        "--spend-money",
        "0.000001",
        "--jobs",
        "1",
    ];
    let said = accept(folder.path(), &llm, &money);
    assert_eq!(said.code, Some(5), "{}{}", said.stdout, said.stderr);
    assert!(
        said.stdout
            .contains("the spending cap of 0.000001 EUR was reached"),
        "{}",
        said.stdout
    );
    let latest = fs::canonicalize(folder.path().join("reports/latest")).unwrap();
    let before = json(&latest.join("spending.json"));
    assert_eq!(
        before["calls"], 1,
        "one request passes the cap, no other is sent"
    );
    assert_eq!(before["reached"], "money");

    let resume = latest.to_string_lossy().into_owned();
    let on = [
        "--model",
        MODEL,
        "--spend-tokens",
        "100000000",
        "--resume",
        &resume,
    ];
    let said = accept(folder.path(), &llm, &on);
    assert_eq!(said.code, Some(4), "{}{}", said.stdout, said.stderr);
    let after = json(&latest.join("spending.json"));
    assert_eq!(after["reached"], Value::Null);
    let calls = lines(&latest.join("calls.jsonl")).len() as u64;
    assert_eq!(
        after["calls"],
        calls + 1,
        "what was spent before is not forgotten"
    );
    assert_eq!(rows(&latest.join("runs.csv")).len(), 6);
    let elsewhere = ["--model", MODEL, "--spend-tokens", "9", "--resume", &resume];
    let other = mock.llm.replace("127.0.0.1", "localhost");
    let said = accept(folder.path(), &format!("openai:{other}"), &elsewhere);
    assert_eq!(said.code, Some(2), "{}", said.stderr);
    assert!(
        said.stderr.contains("the model was at 127.0.0.1"),
        "{}",
        said.stderr
    );
}

/// Each shard's folder has an account of its own: the joined one is their sum, whoever of them has lost its account.
#[test]
fn merged_shards_have_the_sum_of_what_each_spent() {
    let folder = folder();
    let mock = upstream(folder.path(), "");
    let llm = format!("openai:{}", mock.llm);
    let prices = folder.path().join("prices.toml");
    let table = format!(
        "[models.{MODEL}]\ncurrency = \"EUR\"\nuncached_input_per_million = 1.5\ncache_read_per_million = 0.5\n\
         cache_write_per_million = 1.5\noutput_per_million = 2\n"
    );
    fs::write(&prices, table).unwrap();
    let prices = prices.to_string_lossy().into_owned();
    let shards: Vec<PathBuf> = [("1/2", "90000000"), ("2/2", "80000000")]
        .into_iter()
        .map(|(shard, cap)| {
            let out = format!("of-{}", &shard[..1]);
            let flags = ["--model", MODEL, "--prices", &prices, "--spend-tokens", cap];
            let part = ["--reps", "4", "--shard", shard, "--out", &out];
            let said = accept(folder.path(), &llm, &[&flags[..], &part[..]].concat());
            assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
            let mut made = fs::read_dir(folder.path().join(out)).unwrap();
            made.next().unwrap().unwrap().path()
        })
        .collect();
    let told = [
        json(&shards[0].join("spending.json")),
        json(&shards[1].join("spending.json")),
    ];
    let tokens = |spending: &Value| -> u64 {
        let buckets = spending["billed"].as_object().unwrap().values();
        buckets.map(|bucket| bucket.as_u64().unwrap()).sum()
    };
    assert!(told.iter().all(|spending| tokens(spending) > 0));
    let money = |spending: &Value| spending["money"].as_str().unwrap().parse::<f64>().unwrap();

    let copy = folder.path().join("a-copy");
    fs::create_dir(&copy).unwrap();
    for entry in fs::read_dir(&shards[1]).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    let merge = |out: &str, folders: &[&Path]| {
        let mut command = program();
        let command = command.args(["merge", "--out", out]).args(folders);
        let said = said(command.current_dir(folder.path()).output().unwrap());
        assert_eq!(said.code, Some(4), "{}{}", said.stdout, said.stderr);
        let merged = folder.path().join(out).join("latest");
        let page = fs::read_to_string(merged.join("summary.md")).unwrap();
        (said, json(&merged.join("spending.json")), page)
    };
    let (said, sum, page) = merge("all", &[&shards[1], &shards[0], &copy]);
    assert!(said.stderr.contains("spent: "), "{}", said.stderr);
    for field in [
        "uncached_input_tokens",
        "cache_read_tokens",
        "output_tokens",
    ] {
        let of = |spending: &Value| spending["billed"][field].as_u64().unwrap();
        assert_eq!(of(&sum), of(&told[0]) + of(&told[1]), "{field}");
    }
    let calls = |spending: &Value| spending["calls"].as_u64().unwrap();
    assert_eq!(calls(&sum), calls(&told[0]) + calls(&told[1]));
    assert!((money(&sum) - money(&told[0]) - money(&told[1])).abs() < 1e-9);
    assert_eq!(sum["currency"], "EUR");
    // The caps are each shard's, and none is the whole's.
    assert_eq!(
        (&sum["limit_tokens"], &sum["limit_money"]),
        (&Value::Null, &Value::Null)
    );
    for (part, (cap, spending)) in [90_000_000, 80_000_000].iter().zip(&told).enumerate() {
        let line = &sum["shards"][part];
        assert_eq!(line["shard"]["number"], part + 1);
        assert_eq!(line["limit_tokens"], *cap);
        assert_eq!(
            (&line["told"], &line["money"]),
            (&true.into(), &spending["money"])
        );
        assert_eq!(line["counted_tokens"], tokens(spending));
    }
    assert_eq!(sum["shards"][2], Value::Null);
    let caps = "each shard had its own cap: 90,000,000 tokens for 1/2; 80,000,000 tokens for 2/2";
    assert!(page.contains(caps), "{page}");

    fs::remove_file(shards[1].join("spending.json")).unwrap();
    let (said, sum, page) = merge("one-lost", &[&shards[0], &shards[1]]);
    assert!(
        said.stderr
            .contains("no spending.json; what it spent is the sum of its calls"),
        "{}",
        said.stderr
    );
    assert_eq!(tokens(&sum), tokens(&told[0]) + tokens(&told[1]));
    assert_eq!(
        (&sum["money"], &sum["shards"][1]["told"]),
        (&Value::Null, &false.into())
    );
    assert!(
        page.contains("90,000,000 tokens for 1/2; not told for 2/2"),
        "{page}"
    );
}

/// An endpoint that answers every GET with one status and every POST with another, quoting the key.
fn refusing(get: u16, post: u16) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            let mut piece = [0; 65_536];
            while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                let read = stream.read(&mut piece).unwrap_or(0);
                head.extend_from_slice(&piece[..read]);
                if read == 0 {
                    break;
                }
            }
            let status = if head.starts_with(b"GET") { get } else { post };
            let body = format!(r#"{{"error":{{"message":"wrong key {KEY}"}}}}"#);
            let answer = format!(
                "HTTP/1.1 {status} No\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            drop(stream.write_all(answer.as_bytes()));
            // What the client still sends is read, or closing would reset the answer.
            drop(stream.shutdown(std::net::Shutdown::Write));
            while stream.read(&mut piece).is_ok_and(|read| read > 0) {}
        }
    });
    format!("openai:http://{address}/v1")
}

#[test]
fn an_endpoint_that_refuses_or_is_not_there_is_known_before_anything_is_run() {
    let folder = folder();
    for status in [401, 403] {
        let said = accept(folder.path(), &refusing(status, 200), &ENOUGH);
        assert_eq!(said.code, Some(2), "{}", said.stderr);
        let words = format!("refuses the key: HTTP {status}");
        assert!(said.stderr.contains(&words), "{}", said.stderr);
    }
    // Without a list of models, the first turn that is asked for tells.
    let said = accept(folder.path(), &refusing(404, 401), &ENOUGH);
    assert_eq!(said.code, Some(2), "{}", said.stderr);
    assert!(
        said.stderr.contains("refuses the key: HTTP 401"),
        "{}",
        said.stderr
    );
    let mock = upstream(folder.path(), "");
    let base = mock.llm.strip_suffix("/v1").unwrap();
    let said = accept(folder.path(), &format!("openai:{base}"), &ENOUGH);
    assert_eq!(said.code, Some(2), "{}", said.stderr);
    let words = format!("nothing answers at {base}/chat/completions: HTTP 404");
    assert!(said.stderr.contains(&words), "{}", said.stderr);
    let words = format!("is it openai:{base}/v1?");
    assert!(said.stderr.contains(&words), "{}", said.stderr);
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let said = accept(
        folder.path(),
        &format!("openai:http://{address}/v1"),
        &ENOUGH,
    );
    assert_eq!(said.code, Some(2), "{}", said.stderr);
    assert!(said.stderr.contains("cannot be reached"), "{}", said.stderr);
    assert!(!folder.path().join("reports").exists());
}

/// As of a model that the endpoint does not know: the list is there, and the turn is not.
#[test]
fn a_first_turn_that_leads_nowhere_ends_the_acceptance_at_once() {
    let folder = folder();
    let mut more = ENOUGH.to_vec();
    more.extend(["--jobs", "1"]);
    let said = accept(folder.path(), &refusing(200, 404), &more);
    assert_eq!(said.code, Some(2), "{}{}", said.stdout, said.stderr);
    for words in [
        "/v1/chat/completions: HTTP 404",
        "knows the model by its name",
        "no request was answered",
    ] {
        assert!(said.stderr.contains(words), "{words}: {}", said.stderr);
    }
    let reports = fs::read_dir(folder.path().join("reports")).unwrap();
    let folders: Vec<_> = reports.map(|entry| entry.unwrap().path()).collect();
    let runs = fs::read_to_string(folders[0].join("runs.jsonl")).unwrap();
    assert_eq!((folders.len(), runs.lines().count()), (1, 1));
}

#[test]
fn an_endpoint_that_fails_run_after_run_ends_the_acceptance_early() {
    let folder = folder();
    let mut more = ENOUGH.to_vec();
    more.extend(["--jobs", "1"]);
    let said = accept(folder.path(), &refusing(200, 402), &more);
    assert_eq!(said.code, Some(5), "{}{}", said.stdout, said.stderr);
    let words = "stopped early: the endpoint failed 3 runs in a row, last: the endpoint's answer to request 1 was lost: http_402, HTTP 402";
    assert!(said.stderr.contains(words), "{}", said.stderr);
    let runs = rows(&folder.path().join("reports/latest/runs.csv"));
    assert_eq!(runs.len(), 3);
    for run in &runs {
        assert_eq!(
            (&*run["outcome"], &*run["end_reason"]),
            ("infrastructure", "endpoint_failed")
        );
    }
    check_without_key(folder.path());
}
