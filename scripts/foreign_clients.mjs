// The npm SDKs of OpenAI and Anthropic against `spillgate mock`. Ends with 1 at the first difference.
//
// Usage: node foreign_clients.mjs PATH_OF_SPILLGATE SCENARIO_WITH_FAULTS

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const [program, scenario] = process.argv.slice(2);
const model = "simulated";
const question = { role: "user", content: "Review the change. " + "word ".repeat(2000) };

/** Runs `use` with the addresses of a mock of its own. */
async function withMock(options, use) {
  const mock = spawn(program, ["mock", ...options], { stdio: ["ignore", "pipe", "inherit"] });
  const urls = {};
  for await (const line of createInterface({ input: mock.stdout })) {
    const [name, url] = line.split(" ");
    urls[name] = url;
    if (name === "root") break;
  }
  try {
    return await use(urls);
  } finally {
    mock.kill("SIGTERM");
    await once(mock, "exit");
  }
}

async function drain(stream) {
  let last;
  for await (const event of stream) last = event;
  return last;
}

async function openaiUsage({ llm }) {
  const client = new OpenAI({ baseURL: llm, apiKey: "dummy", maxRetries: 0 });
  const first = await client.chat.completions.create({ model, messages: [question] });
  const again = await client.chat.completions.create({ model, messages: [question] });
  assert.equal(again.usage.prompt_tokens, first.usage.prompt_tokens);
  assert.ok(again.usage.prompt_tokens_details.cached_tokens > 1900);
  const stream = client.chat.completions.stream({ model, messages: [question], stream_options: { include_usage: true } });
  const streamed = await stream.finalChatCompletion();
  assert.equal(streamed.choices[0].message.content, first.choices[0].message.content);
  assert.equal(streamed.usage.prompt_tokens, first.usage.prompt_tokens);
  const tools = [{ type: "function", name: "list_changed_files", parameters: { type: "object", properties: {} }, strict: false }];
  const whole = await client.responses.create({ model, input: [question], tools, store: false });
  const events = await client.responses.stream({ model, input: [question], tools, store: false }).finalResponse();
  assert.equal(events.output[0].name, "list_changed_files");
  assert.equal(events.output[0].call_id, whole.output[0].call_id);
  assert.ok(events.usage.input_tokens_details.cached_tokens > 1900);
}

async function anthropicUsage({ root }) {
  const client = new Anthropic({ baseURL: root, apiKey: "dummy", maxRetries: 0 });
  const content = [{ type: "text", text: question.content, cache_control: { type: "ephemeral" } }];
  const tools = [{ name: "list_changed_files", input_schema: { type: "object", properties: {} } }];
  const ask = { model, max_tokens: 512, tools, messages: [{ role: "user", content }] };
  const first = await client.messages.create(ask);
  assert.ok(first.usage.cache_creation_input_tokens > 1900);
  const streamed = await client.messages.stream(ask).finalMessage();
  assert.deepEqual(streamed.content[0].input, {});
  assert.equal(streamed.content[0].id, first.content[0].id);
  assert.equal(streamed.usage.cache_read_input_tokens, first.usage.cache_creation_input_tokens);
  const counted = await client.messages.countTokens({ model, messages: [question] });
  assert.ok(counted.input_tokens > 2000);
}

/** One refusal after the other, as the scenario plans them. */
async function refusals(ask, expected) {
  for (const [kind, status, found] of expected) {
    const error = await ask().then(
      () => assert.fail(`no error in place of ${status}`),
      (error) => error,
    );
    assert.ok(error instanceof kind, `${status}: ${error}`);
    assert.equal(error.status, status);
    assert.ok(found(error), `${status}: ${JSON.stringify(error.error)}`);
  }
}

async function openaiErrors({ llm }) {
  const client = new OpenAI({ baseURL: llm, apiKey: "dummy", maxRetries: 0 });
  const body = { model, messages: [{ role: "user", content: "Review." }] };
  await refusals(() => client.chat.completions.create(body), [
    [OpenAI.RateLimitError, 429, (error) => error.code === "rate_limit_exceeded"],
    [OpenAI.AuthenticationError, 401, (error) => error.code === "invalid_api_key"],
    [OpenAI.InternalServerError, 503, () => true],
    [OpenAI.BadRequestError, 400, (error) => error.code === "context_length_exceeded"],
    [OpenAI.InternalServerError, 500, () => true],
  ]);
  const stream = await client.chat.completions.create({ ...body, stream: true });
  await assert.rejects(drain(stream), OpenAI.APIError);
}

async function anthropicErrors({ root }) {
  const client = new Anthropic({ baseURL: root, apiKey: "dummy", maxRetries: 0 });
  const body = { model, max_tokens: 64, messages: [{ role: "user", content: "Review." }] };
  const is = (type) => (error) => error.error.error.type === type;
  await refusals(() => client.messages.create(body), [
    [Anthropic.RateLimitError, 429, is("rate_limit_error")],
    [Anthropic.AuthenticationError, 401, is("authentication_error")],
    [Anthropic.InternalServerError, 529, is("overloaded_error")],
    [Anthropic.BadRequestError, 400, (error) => error.message.includes("prompt is too long")],
    [Anthropic.InternalServerError, 500, is("api_error")],
  ]);
  const stream = await client.messages.create({ ...body, stream: true });
  await assert.rejects(drain(stream), Anthropic.APIError);
}

for (const use of [openaiUsage, anthropicUsage]) await withMock(["--input", "small"], use);
for (const use of [openaiErrors, anthropicErrors]) await withMock(["--scenario", scenario], use);
console.log(`foreign clients agree with the mock servers: the npm SDKs of OpenAI and Anthropic`);
