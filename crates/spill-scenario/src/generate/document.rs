use super::rng::Rng;

/// A generated document with the sentences and headings that a summary has to name.
pub(super) struct GeneratedDocument {
    pub(super) text: String,
    /// Id stem and expected finding, in the order of the text.
    pub(super) facts: Vec<(&'static str, String, usize)>,
}

pub(super) const TITLE: &str = "Northgate Platform Operations Handbook";

/// Sections in order; no title is the beginning of another.
const SECTIONS: &[&str] = &[
    "Purpose and audience",
    "Service map",
    "On-call rotation",
    "Severity levels",
    "Incident roles",
    "Paging and escalation",
    "Change windows",
    "Release trains",
    "Rollback procedure",
    "Capacity planning",
    "Load shedding",
    "Queue maintenance",
    "Database failover",
    "Backups and restores",
    "Certificate renewal",
    "Secrets handling",
    "Access reviews",
    "Logging standards",
    "Metrics and dashboards",
    "Cost controls",
    "Vendor contacts",
    "Data retention",
    "Regional evacuation",
    "Game days",
    "Post-incident reviews",
    "Open questions",
];

/// One key sentence for each section; `{n}` is a number. Each is at most 160 characters, `key: `
/// not counted, and none is the beginning of another.
const KEYS: &[&str] = &[
    "Every team that runs a service on Northgate must name an owner for this handbook within {n} days.",
    "A service that is missing from the map shall not receive production traffic for more than {n} hours.",
    "The primary engineer must acknowledge a page within {n} minutes of its delivery.",
    "We decided that a level one incident is declared as soon as {n} tenants report the same failure.",
    "The incident lead shall hand over after {n} hours, even when the cause is already known.",
    "Escalation to the duty manager must happen when a page stays open for {n} minutes.",
    "The deadline is {n} hours before the window opens for any change that touches billing.",
    "The platform group decided to hold the release train whenever {n} canary checks fail in a row.",
    "A rollback must be started within {n} minutes of the first failed health check.",
    "The limit is {n} percent of reserved capacity before a new cell has to be ordered.",
    "Load shedding shall drop batch traffic first and keep {n} percent of interactive requests.",
    "No queue must hold a message for longer than {n} hours without an alert to its owner.",
    "The standby database must be promoted within {n} minutes once the primary is declared lost.",
    "A restore drill shall recover the newest backup in less than {n} minutes.",
    "Certificates must be renewed at least {n} days before they expire.",
    "A secret that was printed to a log must be rotated within {n} hours.",
    "The deadline is day {n} of each quarter for the review of administrator access.",
    "Request logs shall leave the region only after {n} identifying fields were removed.",
    "Each dashboard must load in under {n} seconds on the shared screens.",
    "It was decided that idle test clusters are stopped after {n} hours without a deployment.",
    "The limit is {n} open support cases with one vendor before the account manager is called.",
    "Customer exports must be deleted {n} days after delivery.",
    "A regional evacuation shall move {n} percent of traffic before any data is copied.",
    "The game day of a quarter must exercise at least {n} failure modes that were never tried before.",
    "A review must be published within {n} working days of the end of the incident.",
    "The steering group decided to answer the remaining questions in {n} weeks, and to drop the rest.",
];

const SERVICES: &[&str] = &[
    "the ingest gateway",
    "the billing worker",
    "the search cluster",
    "the session cache",
    "the export service",
    "the notification relay",
    "the audit pipeline",
    "the identity broker",
    "the image resizer",
    "the scheduler",
    "the quota service",
    "the ledger database",
];
const TEAMS: &[&str] = &[
    "the storage team",
    "the payments team",
    "the edge team",
    "the data platform group",
    "the reliability group",
    "the support desk",
    "the security office",
    "the release crew",
];
const SIGNALS: &[&str] = &[
    "queue depth",
    "replication lag",
    "error rate",
    "tail latency",
    "cache hit ratio",
    "disk usage",
    "connection count",
    "retry volume",
    "restart count",
    "heap growth",
];
const EVENTS: &[&str] = &[
    "a deployment",
    "a node replacement",
    "a marketing campaign",
    "the nightly export",
    "a schema change",
    "a regional drill",
    "a certificate swap",
    "a vendor outage",
];
const ACTIONS: &[&str] = &[
    "drains one cell",
    "compares both regions",
    "opens a shared document",
    "pauses the exporter",
    "raises the sampling rate",
    "checks the last three releases",
    "moves traffic in small steps",
    "asks the owner for context",
    "replays a sample of requests",
    "restarts the oldest worker",
];

/// Sentence forms: `S` service, `T` team, `M` signal, `E` event, `A` action, `n` number. None
/// matches the key-sentence rule.
const SENTENCES: &[&str] = &[
    "{S} reports its {M} every {n} seconds, and the value is kept for {n} days.",
    "During {E} the {M} of {S} usually doubles for about {n} minutes and then settles.",
    "When in doubt, {T} {A} before anything is changed by hand.",
    "{T} keeps a short list of known causes for a rising {M}, sorted by how often they occurred.",
    "Most alerts on {M} turn out to be a side effect of {E}, so the first look goes to the calendar.",
    "The engineer on duty {A} and writes down what was seen, including the exact time.",
    "{S} depends on {S2} only for reads, which is why it stays usable while writes are paused.",
    "Older runbooks mention a manual step for {S}; it was automated {n} releases ago.",
    "A change in {M} of less than {n} percent is treated as noise unless it lasts a full day.",
    "{T} publishes a weekly summary in which {M} and cost stand side by side.",
    "In the last year {E} was involved in {n} of the incidents that touched {S}.",
    "The dashboards of {S} show {M} by cell, because an average over cells hides the slow ones.",
    "It helps to remember that {S} starts cold and needs roughly {n} minutes to warm its caches.",
    "Nothing in this section replaces a conversation with {T}; it is meant to make that talk shorter.",
    "For planning purposes {T} assumes growth of {n} percent per quarter and revisits the figure twice a year.",
    "If {S} is healthy and {S2} is not, the fault is nearly always on the path between them.",
    "The thresholds were chosen from {n} weeks of recordings, and they are looked at again after {E}.",
    "Engineers who are new to the rotation shadow {T} for {n} shifts before they carry the pager.",
    "A graph that compares {M} with the week before answers most questions about {E}.",
    "Once the {M} is back to normal, {T} {A} and closes the alert with a one-line note.",
    "There are {n} cells in the largest region, and {S} runs in all of them.",
    "The tooling shows a warning when {S} and {S2} run versions that are more than {n} builds apart.",
    "Automation handles the common case, and people handle {E} together with whatever follows from it.",
    "Past reviews show that a calm handover saves more time than any single tool.",
];
const BULLETS: &[&str] = &[
    "Look at the {M} of {S} first, then at {S2}.",
    "Ask {T} whether {E} is under way.",
    "Note the build number of {S} and of everything in front of it.",
    "Keep {n} minutes of request samples for later.",
    "Compare the slowest cell with the median cell.",
    "Tell {T} when the alert has been quiet for {n} minutes.",
    "Leave the exporter of {S} alone while a restore is running.",
];
const SUBSECTIONS: &[&str] = &[
    "Background",
    "What to watch",
    "Step by step",
    "Common mistakes",
    "Examples from practice",
    "Tools",
    "Who to ask",
    "Known gaps",
];

/// Writes the handbook: about `bytes` bytes, every section of about the same length, and one key
/// sentence in each of them.
pub(super) fn generate_document(rng: &mut Rng, bytes: usize) -> GeneratedDocument {
    let mut document = GeneratedDocument {
        text: String::new(),
        facts: Vec::new(),
    };
    document.heading("# ", TITLE);
    document.paragraph(rng, None);
    for (index, section) in SECTIONS.iter().enumerate() {
        let end = bytes * (index + 1) / SECTIONS.len();
        document.heading("## ", section);
        let key = KEYS[index].replace("{n}", &rng.between(2, 90).to_string());
        let key_after = document.text.len() + rng.below((end - document.text.len()) / 2 + 1);
        let mut key = Some(key);
        let mut first_subsection = rng.below(SUBSECTIONS.len());
        document.paragraph(rng, None);
        while document.text.len() + 700 < end || key.is_some() {
            match rng.below(8) {
                0 => document.bullets(rng),
                1 => document.table(rng),
                2 => document.commands(rng),
                3 | 4 => {
                    let title = SUBSECTIONS[first_subsection % SUBSECTIONS.len()];
                    first_subsection += 1;
                    document.push(&format!("### {title}\n\n"));
                    document.paragraph(rng, None);
                }
                _ => {
                    let due = document.text.len() >= key_after;
                    document.paragraph(rng, if due { key.take() } else { None });
                }
            }
        }
    }
    document
}

impl GeneratedDocument {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn heading(&mut self, marks: &str, title: &str) {
        self.facts
            .push(("section", format!("section: {title}"), self.text.len()));
        self.push(&format!("{marks}{title}\n\n"));
    }

    /// One line of two to four sentences, at most about 450 bytes; the key sentence is one more.
    fn paragraph(&mut self, rng: &mut Rng, key: Option<String>) {
        let count = rng.between(2, 4);
        let mut sentences: Vec<String> = (0..count).map(|_| fill(rng, SENTENCES)).collect();
        if let Some(key) = key {
            sentences.truncate(3);
            let at = rng.below(sentences.len() + 1);
            let offset: usize = sentences[..at]
                .iter()
                .map(|sentence| sentence.len() + 1)
                .sum();
            self.facts
                .push(("key", format!("key: {key}"), self.text.len() + offset));
            sentences.insert(at, key);
        }
        self.push(&sentences.join(" "));
        self.push("\n\n");
    }

    fn bullets(&mut self, rng: &mut Rng) {
        for _ in 0..rng.between(3, 5) {
            let line = fill(rng, BULLETS);
            self.push(&format!("- {line}\n"));
        }
        self.push("\n");
    }

    fn table(&mut self, rng: &mut Rng) {
        self.push("| Signal | Warning | Page | Kept for |\n|---|---|---|---|\n");
        for _ in 0..rng.between(3, 5) {
            let signal = rng.pick(SIGNALS);
            let (warning, page, kept) =
                (rng.between(5, 60), rng.between(61, 400), rng.between(2, 90));
            self.push(&format!(
                "| {signal} | {warning} | {page} | {kept} days |\n"
            ));
        }
        self.push("\n");
    }

    fn commands(&mut self, rng: &mut Rng) {
        let service = rng
            .pick(SERVICES)
            .trim_start_matches("the ")
            .replace(' ', "-");
        let (cell, minutes) = (rng.between(1, 40), rng.between(5, 90));
        self.push(&format!(
            "```sh\nngctl status {service} --cell {cell}\nngctl sample {service} \
             --minutes {minutes} --out sample-{cell}.json\nngctl drain {service} --cell {cell} \
             --dry-run\n```\n\n"
        ));
    }
}

fn fill(rng: &mut Rng, forms: &[&str]) -> String {
    let mut text = rng.pick(forms).to_owned();
    for (slot, words) in [
        ("{S2}", SERVICES),
        ("{S}", SERVICES),
        ("{T}", TEAMS),
        ("{M}", SIGNALS),
        ("{E}", EVENTS),
        ("{A}", ACTIONS),
    ] {
        while text.contains(slot) {
            text = text.replacen(slot, rng.pick(words), 1);
        }
    }
    while text.contains("{n}") {
        text = text.replacen("{n}", &rng.between(2, 90).to_string(), 1);
    }
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}
