// OpenAI's JavaScript SDK, unmodified, against a server with the scripted model of package servertest.
// usage: node --input-type=module - BASE_URL < sdk.mjs, in a folder whose node_modules has openai
import assert from "node:assert/strict";
import OpenAI from "openai";

const base = process.argv[2];
const client = new OpenAI({ baseURL: base + "/v1", apiKey: "test-key-1", maxRetries: 0 });
const model = "scripted";
const user = (content) => [{ role: "user", content }];
const fn = { name: "get_weather", description: "Weather", parameters: { type: "object", properties: { city: { type: "string" } } } };
const tools = [{ type: "function", function: fn }];
const rtools = [{ type: "function", strict: false, ...fn }];
const cases = {
  async models() {
    const ids = [];
    for await (const m of client.models.list()) ids.push(m.id);
    assert(ids.includes(model));
    await assert.rejects(client.models.retrieve("nope"), OpenAI.NotFoundError);
  },
  async plain() {
    const r = await client.chat.completions.create({ model, messages: user("hi"), temperature: 0, n: 2 });
    assert.equal(r.choices[1].message.content, "Hello!");
    assert.equal(r.choices[0].finish_reason, "stop");
    assert.equal(r.usage.completion_tokens, 14);
  },
  async stream() {
    const s = await client.chat.completions.create({ model, messages: user("UNICODE"), stream: true, stream_options: { include_usage: true } });
    let text = "", usage;
    for await (const c of s) {
      text += c.choices[0]?.delta?.content ?? "";
      usage = c.usage ?? usage;
    }
    assert.equal(text, "Grüße, 世界 🐋!");
    assert(usage.total_tokens > 0);
  },
  async abort() {
    const s = await client.chat.completions.create({ model, messages: user("COUNT"), stream: true });
    let n = 0;
    for await (const _ of s) if (++n === 5) break;
    assert.equal((await client.chat.completions.create({ model, messages: user("hi") })).choices[0].message.content, "Hello!");
  },
  async helper() {
    const s = client.chat.completions.stream({ model, messages: user("THINK") });
    assert.equal((await s.finalContent()).trim(), "The answer is 42.");
  },
  async toolsLoop() {
    const run = client.chat.completions.runTools({
      model, messages: user("WEATHER"), tools: [{ type: "function", function: { ...fn, parse: JSON.parse, function: (a) => "sunny in " + a.city } }],
    });
    assert.equal(await run.finalContent(), "It is sunny in Oslo.");
  },
  async toolsStream() {
    const s = client.chat.completions.stream({ model, messages: user("TWO CALLS"), tools });
    const m = await s.finalMessage();
    assert.deepEqual(m.tool_calls.map((c) => c.function.arguments), ['{"city": "Oslo"}', '{"city": "Bergen"}']);
  },
  async completions() {
    const r = await client.completions.create({ model, prompt: "Once", echo: true, logprobs: 1, max_tokens: 4 });
    assert.equal(r.choices[0].text, "OnceHell");
    assert.equal(r.choices[0].logprobs.token_logprobs[0], null);
    let text = "";
    for await (const c of await client.completions.create({ model, prompt: "x", stream: true })) text += c.choices[0].text;
    assert.equal(text, "Hello!");
  },
  async responses() {
    const r = await client.responses.create({ model, input: "hi" });
    assert.equal(r.output_text, "Hello!");
    const r2 = await client.responses.create({ model, input: "UNICODE", previous_response_id: r.id });
    assert.equal(r2.output_text, "Grüße, 世界 🐋!");
    assert.equal((await client.responses.retrieve(r2.id)).output_text, r2.output_text);
    await client.responses.delete(r2.id);
    await assert.rejects(client.responses.retrieve(r2.id), OpenAI.NotFoundError);
  },
  async responsesStream() {
    const kinds = [];
    const s = client.responses.stream({ model, input: "WEATHER", tools: rtools });
    for await (const e of s) kinds.push(e.type);
    assert.equal(kinds.at(-1), "response.completed");
    const r = await s.finalResponse();
    const call = r.output.find((o) => o.type === "function_call");
    assert.equal(call.arguments, '{"city": "Oslo"}');
    const end = await client.responses.create({
      model, previous_response_id: r.id, tools: rtools, input: [{ type: "function_call_output", call_id: call.call_id, output: "sunny" }],
    });
    assert.equal(end.output_text, "It is sunny in Oslo.");
  },
  async errors() {
    const c = (more) => client.chat.completions.create({ model, messages: user("hi"), ...more });
    await assert.rejects(c({ store: true }), (e) => e instanceof OpenAI.BadRequestError && e.param === "store");
    await assert.rejects(c({ model: "nope" }), (e) => e instanceof OpenAI.NotFoundError && e.code === "model_not_found");
    await assert.rejects(c({ messages: user("long ".repeat(20000)) }), (e) => e.code === "context_length_exceeded");
    const bad = new OpenAI({ baseURL: base + "/v1", apiKey: "wrong", maxRetries: 0 });
    await assert.rejects(bad.models.list(), OpenAI.AuthenticationError);
    await assert.rejects(async () => {
      for await (const _ of await client.chat.completions.create({ model, messages: user("BREAK COUNT"), stream: true }));
    }, OpenAI.APIError);
  },
};
let failed = 0;
for (const [name, f] of Object.entries(cases)) {
  try {
    await f();
  } catch (e) {
    failed++;
    console.log(`FAIL ${name}: ${e.stack}`);
  }
}
console.log(`${Object.keys(cases).length - failed} of ${Object.keys(cases).length} passed`);
process.exit(failed ? 1 : 0);
