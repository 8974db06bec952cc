// Runs acceptances against aimock and checks what their folders say. With `agent` as its first argument it is the
// subject itself: it streams one message from the address that it is given and prints the text.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const KEY = "sk-canary-of-the-foreign-endpoint";

async function agent(root, model, key) {
    const response = await fetch(`${root}/v1/messages`, {
        method: "POST",
        headers: { "x-api-key": key, "anthropic-version": "2023-06-01", "content-type": "application/json" },
        body: JSON.stringify({
            model, max_tokens: 1000, stream: true,
            messages: [{ role: "user", content: "Name the sections." }],
        }),
    });
    const events = (await response.text()).split("\n").filter((line) => line.startsWith("data: "));
    const deltas = events.map((line) => JSON.parse(line.slice(6)).delta?.text ?? "");
    process.stdout.write(deltas.join(""));
    process.exit(response.ok && deltas.length > 0 ? 0 : 1);
}

let folder = "";
let failed = 0;

function check(what, holds, more = "") {
    if (!holds) failed += 1;
    console.log(`${holds ? "ok" : "FAILED"}: ${what}${holds ? "" : ` ${more}`}`);
}

function freePort() {
    return new Promise((done) => {
        const server = createServer().listen(0, "127.0.0.1", () => {
            const { port } = server.address();
            server.close(() => done(port));
        });
    });
}

/** Starts aimock, and returns its port and how to end it. */
async function aimock(...flags) {
    const fixtures = join(folder, "fixtures.json");
    writeFileSync(fixtures, JSON.stringify({ fixtures: [
        { match: { userMessage: "Name the sections." }, response: {
            content: "Section 3\nSection 59", usage: { input_tokens: 41, output_tokens: 7 } } },
        { match: { hasToolResult: false }, response: { toolCalls: [
            { id: "call_1", name: "read_document", arguments: JSON.stringify({ name: "notes.md" }) }] } },
        { match: { hasToolResult: true }, response: { content: "Section 3\nSection 59" } },
    ] }));
    const port = await freePort();
    const cli = "node_modules/@copilotkit/aimock/dist/cli.js";
    const child = spawn("node", [cli, "-p", `${port}`, "-f", fixtures, "--strict", ...flags], {
        env: { ...process.env, AIMOCK_API_KEYS: KEY }, stdio: "ignore",
    });
    for (let tries = 0; tries < 200; tries += 1) {
        try {
            await fetch(`http://127.0.0.1:${port}/v1/models`);
            return { port, end: () => child.kill() };
        } catch {
            await new Promise((done) => setTimeout(done, 50));
        }
    }
    throw new Error("aimock does not listen");
}

/** Runs `accept` on the document; its exit code, what it said, and the run folder. */
async function accept(program, out, llm, key, more = []) {
    const path = join(folder, out);
    const arguments_ = ["accept", "--quiet", "--stage", "quick", "--document", join(folder, "notes.md"), "--out", path,
        "--llm", llm, "--model", "real-1", "--spend-tokens", "10000000", "--jobs", "1", ...more];
    const child = spawn(program, arguments_, {
        env: { ...process.env, OPENAI_API_KEY: key, ANTHROPIC_API_KEY: key }, stdio: ["ignore", "pipe", "pipe"],
    });
    let words = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece) => { words += piece; });
    const code = await new Promise((done) => child.on("close", done));
    return { code, words, path: join(path, "latest") };
}

/** A TLS server with a certificate of its own before the server on `port`; null where there is no openssl. */
async function overTls(port) {
    const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
    const made = spawnSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
        "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost",
        "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"]);
    if (made.status !== 0) return null;
    const server = createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) }, (asked, answer) => {
        const { method, url: path, headers } = asked;
        const on = request({ host: "127.0.0.1", port, method, path, headers }, (answered) => {
            answer.writeHead(answered.statusCode, answered.headers);
            answered.pipe(answer);
        });
        asked.pipe(on);
    });
    await new Promise((done) => server.listen(0, "127.0.0.1", done));
    return { port: server.address().port, cert, end: () => server.close() };
}

const lines = (path) => readFileSync(path, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));

function holdsKey(path) {
    if (statSync(path).isDirectory()) return readdirSync(path).some((name) => holdsKey(join(path, name)));
    return readFileSync(path).includes(KEY);
}

function checkCounted(what, run, calls) {
    const said = lines(join(run.path, "calls.jsonl"));
    const spending = JSON.parse(readFileSync(join(run.path, "spending.json")));
    check(`${what}: every run is counted`, run.code === 4 && said.length === calls && spending.calls === calls, run.words);
    check(`${what}: usage is the server's`, said.every((call) => call.tokens?.uncached_input_tokens > 0 && call.tokens.output_tokens > 0));
    check(`${what}: every run succeeded`, lines(join(run.path, "runs.jsonl")).every((record) => record.outcome === "succeeded"));
}

async function main(program) {
    folder = mkdtempSync(join(tmpdir(), "foreign-endpoint-"));
    const sections = Array.from({ length: 60 }, (_, i) => `## Section ${i}\n\nThe limit of part ${i} must be ${i * 7} units. ${"Words follow. ".repeat(60)}`);
    writeFileSync(join(folder, "notes.md"), `# Notes\n\n${sections.join("\n\n")}\n`);
    writeFileSync(join(folder, "agent.toml"), `[subject]
name = "agent"
dialect = "messages"
command = ["node", "${resolve("foreign_endpoint.mjs")}", "agent", "{llm_root}", "{model}", "{key}"]
answer = { from = "stdout" }
env = { PATH = "{path}" }
[[configurations]]
name = "control"
role = "control"
env = {}
[[configurations]]
name = "default"
role = "candidate"
shipped = true
env = { ANY = "1" }
`);
    let server = await aimock();
    const openai = `openai:http://127.0.0.1:${server.port}/v1`;
    const wrong = await accept(program, "wrong", openai, "sk-wrong");
    check("a wrong key is known before anything is run", wrong.code === 2 && wrong.words.includes("HTTP 401") && !existsSync(wrong.path), wrong.words);
    checkCounted("chat completions", await accept(program, "chat", openai, KEY), 12);
    const messages = await accept(program, "messages", `anthropic:http://127.0.0.1:${server.port}`, KEY, ["--subject", join(folder, "agent.toml")]);
    checkCounted("streamed messages", messages, 4);
    const tls = await overTls(server.port);
    if (tls === null) {
        console.log("NOT RUN: TLS (openssl makes no certificate here)");
    } else {
        const address = `openai:https://127.0.0.1:${tls.port}/v1`;
        const unknown = await accept(program, "unknown", address, KEY);
        check("an unknown certificate is refused", unknown.code === 2 && /certificate/.test(unknown.words), unknown.words);
        checkCounted("TLS", await accept(program, "tls", address, KEY, ["--llm-ca", tls.cert]), 12);
        tls.end();
    }
    server.end();
    server = await aimock("--chaos-disconnect", "1");
    const cut = await accept(program, "cut", `openai:http://127.0.0.1:${server.port}/v1`, KEY);
    server.end();
    const early = [2, 5].includes(cut.code) && (cut.code === 2 || cut.words.includes("stopped early"));
    check("an endpoint that breaks every connection ends the acceptance early", early, cut.words);
    check("the key is in no file", !holdsKey(folder));
    process.exit(failed === 0 ? 0 : 1);
}

const [first, ...rest] = process.argv.slice(2);
await (first === "agent" ? agent(...rest) : main(first));
