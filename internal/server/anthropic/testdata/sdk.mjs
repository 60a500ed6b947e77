// Anthropic's JavaScript SDK, unmodified, against a server with the scripted model of package servertest.
// usage: node --input-type=module - BASE_URL < sdk.mjs, in a folder whose node_modules have @anthropic-ai/sdk.
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { betaTool } from "@anthropic-ai/sdk/helpers/beta/json-schema";

const baseURL = process.argv[2];
const client = new Anthropic({ baseURL, apiKey: "test-key-1", maxRetries: 0 });
const model = "scripted";
const user = (content) => [{ role: "user", content }];
const ask = (content, more = {}) => client.messages.create({ model, max_tokens: 2000, messages: user(content), ...more });
const tools = [{
  name: "get_weather",
  description: "Weather of a city",
  input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
}];

async function refused(kind, promise, words = "", type = "invalid_request_error") {
  const e = await promise.then(() => assert.fail(`nothing was refused; want ${kind.name}`), (e) => e);
  assert.ok(e instanceof kind, `${e.constructor.name}: ${e.message}`);
  assert.ok(e.message.includes(words), e.message);
  assert.equal(e.error.type, "error");
  assert.equal(e.error.error.type, type);
  assert.equal(e.requestID, e.error.request_id);
}

const cases = {
  async models() {
    const ids = [];
    for await (const m of client.models.list()) ids.push(m.id);
    assert.deepEqual(ids, [model]);
    assert.equal((await client.models.retrieve(model)).type, "model");
    await refused(Anthropic.NotFoundError, client.models.retrieve("nope"), "nope", "not_found_error");
  },
  async plain() {
    const m = await ask("hi", { system: "Be brief." });
    assert.equal(m.content[0].text, "Hello!");
    assert.equal(m.stop_reason, "end_turn");
    assert.equal(m.usage.output_tokens, 7);
    assert.ok(m._request_id.startsWith("req_"));
  },
  async bearer() {
    const c = new Anthropic({ baseURL, authToken: "test-key-1", apiKey: null, maxRetries: 0 });
    assert.equal((await c.messages.create({ model, max_tokens: 9, messages: user("hi") })).content[0].text, "Hello!");
  },
  async streaming() {
    let text = "", n = 0;
    const s = client.messages.stream({ model, max_tokens: 4000, messages: user("COUNT") }).on("text", (t) => { text += t; n++; });
    const m = await s.finalMessage();
    assert.equal(m.content[0].text, text);
    assert.equal(text.trim().split(" ").length, 400);
    assert.ok(n > 100);
    const kinds = [];
    for await (const e of await ask("hi", { stream: true })) kinds.push(e.type);
    assert.equal(kinds[0], "message_start");
    assert.equal(kinds.at(-1), "message_stop");
  },
  async tools() {
    const s = client.messages.stream({ model, max_tokens: 400, messages: user("WEATHER"), tools });
    let json = 0;
    s.on("inputJson", () => json++);
    const m = await s.finalMessage();
    assert.equal(m.stop_reason, "tool_use");
    assert.deepEqual(m.content.map((b) => b.type), ["text", "tool_use"]);
    assert.deepEqual(m.content[1].input, { city: "Oslo" });
    assert.ok(json > 1);
    const end = await client.messages.create({
      model, max_tokens: 400, tools,
      messages: [...user("WEATHER"), { role: "assistant", content: m.content },
        { role: "user", content: [{ type: "tool_result", tool_use_id: m.content[1].id, content: "sun" }] }],
    });
    assert.equal(end.content[0].text, "It is sunny in Oslo.");
    assert.ok(end.usage.cache_read_input_tokens > 0);
  },
  async toolRunner() {
    const asked = [];
    const tool = betaTool({
      name: "get_weather", description: "Weather of a city", inputSchema: tools[0].input_schema,
      run: ({ city }) => { asked.push(city); return "sun"; },
    });
    const end = await client.beta.messages.toolRunner({ model, max_tokens: 400, messages: user("TWO CALLS"), tools: [tool] });
    assert.deepEqual(asked, ["Oslo", "Bergen"]);
    assert.equal(end.content[0].text, "It is sunny in Oslo.");
  },
  async thinking() {
    let seen = "";
    const s = client.messages.stream({ model, max_tokens: 2000, messages: user("THINK"), thinking: { type: "adaptive" } });
    s.on("thinking", (t) => { seen += t; });
    const m = await s.finalMessage();
    assert.equal(m.content[0].thinking, seen);
    assert.ok(m.content[0].signature);
    assert.equal(m.content[1].text, "The answer is 42.");
    const p = await ask("THINK", { thinking: { type: "enabled", budget_tokens: 1024 } });
    assert.equal(p.content[0].thinking, seen);
  },
  async counting() {
    const n = (await client.messages.countTokens({ model, messages: user("hi"), tools })).input_tokens;
    const u = (await ask("hi", { tools })).usage;
    assert.equal(n, u.input_tokens + u.cache_read_input_tokens + u.cache_creation_input_tokens);
  },
  async errors() {
    const bad = new Anthropic({ baseURL, apiKey: "wrong", maxRetries: 0 });
    await refused(Anthropic.AuthenticationError, bad.messages.create({ model, max_tokens: 9, messages: user("hi") }), "", "authentication_error");
    await refused(Anthropic.NotFoundError, ask("hi", { model: "nope" }), "nope", "not_found_error");
    await refused(Anthropic.BadRequestError, ask("hi", { nonsense: 1 }), "nonsense");
    await refused(Anthropic.BadRequestError, ask("x".repeat(40000)), "prompt is too long: 4");
    await refused(Anthropic.BadRequestError, ask([{ type: "document", source: { type: "text", media_type: "text/plain", data: "x" } }]), "messages.0.content.0");
  },
  async failureMidway() {
    const s = client.messages.stream({ model, max_tokens: 900, messages: user("COUNT, BREAK") });
    const e = await s.finalMessage().then(() => assert.fail("the stream ended as if nothing had happened"), (e) => e);
    assert.ok(e instanceof Anthropic.APIError, String(e));
    assert.ok(JSON.stringify(e.error).includes("api_error"), JSON.stringify(e.error));
  },
};

let failed = 0;
for (const [name, f] of Object.entries(cases)) {
  try {
    await f();
    console.log("ok  ", name);
  } catch (e) {
    failed++;
    console.log("FAIL", name, e);
  }
}
console.log(`${Object.keys(cases).length - failed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
