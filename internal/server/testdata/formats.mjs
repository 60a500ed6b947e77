// The official libraries' own helpers that turn a zod schema into a JSON Schema and the answer into a value, against the
// server at argv[2] with the API key argv[3] and the model argv[4]. What it says does not matter: it must be a value.
import OpenAI from "openai";
import { zodFunction, zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import Anthropic from "@anthropic-ai/sdk";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { Ollama } from "ollama";
import { z } from "zod";

const [base, key, model] = process.argv.slice(2);
const Point = z.object({ x: z.int().min(-5).max(5), y: z.number().gt(0).lt(9).multipleOf(2) });
const All = z.object({
  name: z.string().max(6).regex(/^[a-z]+$/),
  colour: z.enum(["red", "green"]),
  place: Point,
  maybe: z.string().max(3).nullable(),
  either: z.union([z.int().min(0).max(9), z.boolean()]),
  shape: z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("circle"), r: z.int().min(0).max(10) }),
    z.object({ kind: z.literal("square"), side: z.int().min(0).max(10) }),
  ]),
  many: z.array(Point).min(1).max(2),
  day: z.iso.date(),
  id: z.uuid(),
  mail: z.email().max(20),
});
const Plain = z.object({
  colour: z.enum(["red", "green"]),
  place: z.object({ side: z.literal([1, 2, 3]) }).nullable(),
  shape: z.union([z.literal("circle"), z.boolean()]),
  day: z.iso.date(),
});
// Not for OpenAI's library, which refuses tuples itself.
const Pair = z.object({ pair: z.tuple([z.int().min(0).max(9), z.boolean()]) });
const messages = [{ role: "user", content: "Describe something." }];
const openai = new OpenAI({ baseURL: base + "/v1", apiKey: key, maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: base, apiKey: key, maxRetries: 0 });
const ollama = new Ollama({ host: base, headers: { Authorization: "Bearer " + key } });
const helpers = {
  async chatParse(t) {
    const r = await openai.chat.completions.parse({ model, messages, response_format: zodResponseFormat(t, "it"), max_tokens: 600 });
    return r.choices[0].message.parsed;
  },
  async chatStream(t) {
    const s = openai.chat.completions.stream({ model, messages, response_format: zodResponseFormat(t, "it"), max_tokens: 600 });
    return (await s.finalChatCompletion()).choices[0].message.parsed;
  },
  async responsesParse(t) {
    const r = await openai.responses.parse({ model, input: "Describe something.", text: { format: zodTextFormat(t, "it") }, max_output_tokens: 600 });
    return r.output_parsed;
  },
  async messagesParse(t) {
    const r = await anthropic.messages.parse({ model, messages, output_config: { format: zodOutputFormat(t) }, max_tokens: 600 });
    return r.parsed_output;
  },
  async toolParse(t) {
    const r = await openai.chat.completions.parse({
      model, messages, max_tokens: 600, seed: 1, tools: [zodFunction({ name: "it", parameters: t })],
      tool_choice: { type: "function", function: { name: "it" } },
    });
    return r.choices[0].message.tool_calls[0].function.parsed_arguments;
  },
  async ollamaChat(t) {
    const r = await ollama.chat({ model, messages, format: z.toJSONSchema(t), options: { num_predict: 600, seed: 1 } });
    return JSON.parse(r.message.content);
  },
};
let failed = 0;
for (const [name, f] of Object.entries(helpers)) {
  // Anthropic's library takes bounds out of the schema and checks them afterwards: they are for the model to guess.
  const types = name == "messagesParse" ? { Plain } : name == "ollamaChat" ? { All, Point, Plain, Pair } : { All, Point, Plain };
  for (const [type, t] of Object.entries(types)) {
    try {
      console.log("ok  ", name, type, JSON.stringify(t.parse(await f(t))));
    } catch (e) {
      failed++;
      console.log("FAIL", name, type, String(e).slice(0, 600));
    }
  }
}
process.exit(failed ? 1 : 0);
