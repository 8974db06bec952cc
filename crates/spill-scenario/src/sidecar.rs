use spill_record::SidecarRecord;

use crate::template::fill_words;

/// What a sidecar's command and environment may name in braces.
pub(crate) const WORDS: [&str; 5] = ["listen_port", "upstream_url", "work", "tmp", "state"];

/// What a sidecar of one run is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidecarPlace {
    /// The port on 127.0.0.1 that it is to listen on.
    pub listen_port: u16,
    /// Scheme, address and port of the server that it stands before.
    pub upstream_url: String,
    /// Its working folder.
    pub work: String,
    /// Its temporary folder.
    pub tmp: String,
    /// The folder that it may keep what it likes in.
    pub state: String,
}

impl SidecarPlace {
    /// Fills in a text of a sidecar's `command` or `env`.
    ///
    /// # Panics
    ///
    /// When the text has a placeholder that a scenario file refuses.
    #[must_use]
    pub fn fill(&self, text: &str) -> String {
        let filled = fill(text, |word| match word {
            "listen_port" => self.listen_port.to_string(),
            "upstream_url" => self.upstream_url.clone(),
            "work" => self.work.clone(),
            "tmp" => self.tmp.clone(),
            _ => self.state.clone(),
        });
        filled.expect("the text was checked when its file was read")
    }
}

/// Whether a sidecar declares its state folder: what it keeps there is its own affair.
#[must_use]
pub fn sidecar_declares_state(sidecar: &SidecarRecord) -> bool {
    let mut texts = sidecar.command.iter().chain(sidecar.env.values());
    texts.any(|text| text.contains("{state}") && !text.contains("{{state}}"))
}

/// Fills in the known words; the error is the unknown one, in its braces.
pub(crate) fn fill(text: &str, value: impl Fn(&str) -> String) -> Result<String, String> {
    let known = |word: &str| WORDS.contains(&word).then(|| value(word));
    fill_words(text, known).map_err(|unknown| unknown.written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_filled_and_other_words_refused() {
        let place = SidecarPlace {
            listen_port: 9,
            upstream_url: "http://u".to_owned(),
            work: "/w".to_owned(),
            tmp: "/t".to_owned(),
            state: "/s".to_owned(),
        };
        let check = |text: &str, want: &str| assert_eq!(place.fill(text), want);
        check("", "");
        check(
            "127.0.0.1:{listen_port}>{upstream_url}",
            "127.0.0.1:9>http://u",
        );
        check(
            "{work}{tmp}{state} {{state}} {} { a }",
            "/w/t/s {state} {} { a }",
        );
        let refused = |text: &str| fill(text, |_| String::new());
        assert_eq!(refused("a {llm_url}"), Err("{llm_url}".to_owned()));
        assert_eq!(refused("{work:json}"), Err("{work:json}".to_owned()));
    }
}
