// Ollama's JavaScript client, unmodified, against a server with the scripted model of package servertest.
// usage: node --input-type=module - BASE_URL < sdk.mjs, in a folder whose node_modules has ollama
import assert from "node:assert/strict";
import { Ollama } from "ollama";

const host = process.argv[2];
const headers = { Authorization: "Bearer test-key-1" };
const client = new Ollama({ host, headers });
const model = "scripted";
const user = (content) => [{ role: "user", content }];
const tools = [{
  type: "function",
  function: { name: "get_weather", description: "Weather", parameters: { type: "object", required: ["city"], properties: { city: { type: "string" } } } },
}];
const refused = (promise, status, ...words) =>
  assert.rejects(promise, (e) => {
    assert.equal(e.name, "ResponseError");
    assert.equal(e.status_code, status);
    for (const w of words) assert(e.message.includes(w), `${w} in ${e.message}`);
    return true;
  });

const cases = {
  async list() {
    const names = (await client.list()).models.map((m) => m.name);
    assert(names.includes("scripted:latest") && names.includes("whale:small"));
  },
  async show() {
    const s = await client.show({ model: "whale:small" });
    assert.equal(s.model_info["general.architecture"], "llama");
    assert.equal(s.system, "You are a whale.");
    assert.equal(s.messages.length, 2);
    assert(s.capabilities.includes("tools"));
    await refused(client.show({ model: "nobody" }), 404, "not found");
  },
  async generate() {
    const r = await client.generate({ model, prompt: "hi", options: { temperature: 0 } });
    assert.equal(r.response, "Hello!");
    assert.equal(r.done_reason, "stop");
    assert(r.eval_count === 7 && r.total_duration > 0 && r.context.length > 6);
    assert(!Number.isNaN(Date.parse(r.created_at)));
    let text = "";
    for await (const p of await client.generate({ model, prompt: "UNICODE", stream: true })) text += p.response;
    assert.equal(text, "Grüße, 世界 🐋!");
    assert.equal((await client.generate({ model, prompt: "a", suffix: "b" })).response, "Hello!");
    assert.equal((await client.generate({ model, prompt: "a", raw: true })).context, undefined);
  },
  async load() {
    assert.equal((await client.generate({ model, prompt: "" })).done_reason, "load");
    assert.equal((await client.chat({ model, keep_alive: "10m" })).done_reason, "load");
    const p = (await client.ps()).models[0];
    assert(p.name === "scripted:latest" && Date.parse(p.expires_at) > Date.now());
    assert.equal((await client.chat({ model, keep_alive: 0 })).done_reason, "unload");
  },
  async chat() {
    const r = await client.chat({ model, messages: user("hi"), options: { temperature: 0, num_predict: 3 } });
    assert.equal(r.message.content, "Hel");
    assert.equal(r.done_reason, "length");
    let last, text = "";
    for await (const p of await client.chat({ model, messages: user("UNICODE"), stream: true })) {
      text += p.message.content;
      last = p;
    }
    assert.equal(text, "Grüße, 世界 🐋!");
    assert(last.done && last.prompt_eval_count > 0);
  },
  async thinking() {
    const r = await client.chat({ model, messages: user("THINK"), think: true });
    assert.equal(r.message.thinking, "Four words of thought.");
    assert.equal(r.message.content, "The answer is 42.");
    let thinking = "", text = "";
    for await (const p of await client.chat({ model, messages: user("THINK"), think: "low", stream: true })) {
      thinking += p.message.thinking ?? "";
      text += p.message.content;
    }
    assert.deepEqual([thinking, text], ["Four words of thought.", "The answer is 42."]);
  },
  async tools() {
    const messages = user("WEATHER");
    const r = await client.chat({ model, messages, tools });
    const call = r.message.tool_calls[0].function;
    assert.equal(call.name, "get_weather");
    assert.deepEqual(call.arguments, { city: "Oslo" });
    messages.push(r.message, { role: "tool", content: "11 degrees", tool_name: "get_weather" });
    assert.equal((await client.chat({ model, messages, tools })).message.content, "It is sunny in Oslo.");
    const cities = [];
    for await (const p of await client.chat({ model, messages: user("TWO CALLS"), tools, stream: true }))
      for (const c of p.message.tool_calls ?? []) cities.push(c.function.arguments.city);
    assert.deepEqual(cities, ["Oslo", "Bergen"]);
  },
  async logprobs() {
    const r = await client.chat({ model, messages: user("hi"), logprobs: true, top_logprobs: 1 });
    assert.equal(r.logprobs.map((l) => l.token).join(""), "Hello!");
    assert.equal(r.logprobs[0].top_logprobs[0].token, "H");
  },
  async abort() {
    const s = await client.chat({ model, messages: user("COUNT"), stream: true });
    let n = 0;
    await assert.rejects(async () => {
      for await (const _ of s) if (++n === 3) s.abort();
    }, { name: "AbortError" });
    assert.equal((await client.chat({ model, messages: user("hi") })).message.content, "Hello!");
  },
  async midstream() {
    let text = "";
    await assert.rejects(async () => {
      for await (const p of await client.chat({ model, messages: user("BREAK"), stream: true })) text += p.message.content;
    }, /internal error/);
    assert.equal(text, "Hel");
    await refused(client.chat({ model, messages: user("BREAK") }), 500);
  },
  async errors() {
    await refused(client.chat({ model: "nobody", messages: user("x") }), 404, "'nobody' not found");
    await refused(client.generate({ model: "nobody", prompt: "x", stream: true }), 404, "not found");
    await refused(client.chat({ model, messages: user("x"), format: { $ref: "http://x/" } }), 400, "format");
    await refused(client.chat({ model, messages: user("x"), options: { temperature: "hot" } }), 400, "options.temperature");
    await refused(client.chat({ model, messages: user("x"), options: { mirostat: 1 } }), 400, "options.mirostat");
    await refused(client.chat({ model, messages: [{ role: "user", content: "x", images: ["aGVsbG8="] }] }), 400, "images[0]");
    await refused(client.chat({ model, messages: user("word ".repeat(20000)) }), 400, "32768");
    await refused(new Ollama({ host }).list(), 401, "API key");
  },
  async embed() {
    await refused(client.embed({ model, input: ["a"] }), 400, "not an embedding model");
    await refused(client.embeddings({ model, prompt: "a" }), 400, "not an embedding model");
  },
  async manage() {
    assert.equal((await client.pull({ model: "some" })).status, "success");
    const steps = [];
    for await (const p of await client.pull({ model: "some", stream: true })) steps.push(p);
    assert.equal(steps.at(-1).status, "success");
    assert(steps.some((s) => s.completed === 100 && s.total === 100));
    await assert.rejects(async () => {
      for await (const _ of await client.pull({ model: "torn", stream: true }));
    }, /checksum/);
    await refused(client.pull({ model: "nowhere" }), 404, "not found");
    await refused(client.push({ model }), 403, "nothing leaves");
    assert.equal((await client.create({ model: "new", from: model, system: "Sing.", parameters: { seed: 1 } })).status, "success");
    await refused(client.create({ model: "new", from: "nobody" }), 404, "not found");
    assert.equal((await client.copy({ source: model, destination: "mine" })).status, "success");
    assert.equal((await client.delete({ model })).status, "success");
  },
  async version() {
    assert.match((await client.version()).version, /^\d+\.\d+\.\d+$/);
  },
  async many() {
    const list = await Promise.all([...Array(8).keys()].map((i) => client.chat({ model, messages: user("THINK " + i), think: true })));
    for (const r of list) assert.equal(r.message.content, "The answer is 42.");
  },
};

let failed = 0;
for (const [name, run] of Object.entries(cases)) {
  try {
    await run();
    console.log("ok  ", name);
  } catch (e) {
    failed++;
    console.log("FAIL", name, e);
  }
}
console.log(`${Object.keys(cases).length - failed} of ${Object.keys(cases).length}`);
process.exit(failed ? 1 : 0);
