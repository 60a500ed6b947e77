// Vercel's AI SDK against all dialects: it checks whole bodies and every event against its own schemas, and fails on a
// key that is null where the vendor leaves it out. The first argument is the server's address.
import assert from 'node:assert/strict';
import { generateText, stepCountIs, streamText, tool } from 'ai';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { createOllama } from 'ollama-ai-provider-v2';
import { z } from 'zod';

const url = process.argv[2];
const openai = createOpenAI({ baseURL: url + '/v1', apiKey: 'none' });
const models = {
  'openai-compatible': createOpenAICompatible({ name: 'baleen', baseURL: url + '/v1', includeUsage: true })('scripted'),
  'openai chat': openai.chat('scripted'),
  'openai responses': openai.responses('scripted'),
  'openai completion': openai.completion('scripted'),
  anthropic: createAnthropic({ baseURL: url + '/v1', apiKey: 'none' })('scripted'),
  ollama: createOllama({ baseURL: url + '/api' })('scripted'),
};
const tools = {
  get_weather: tool({
    description: 'Weather of a city',
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => `sunny in ${city}`,
  }),
};

// OpenAI's own chat completions have no reasoning in the answer. The provider for Ollama always says that an answer
// ended by itself.
const without = { 'openai completion': ['tools', 'reasoning'], 'openai chat': ['reasoning'], ollama: ['length'] };
globalThis.AI_SDK_LOG_WARNINGS = false;
for (const [name, model] of Object.entries(models)) {
  const has = (what) => !(without[name] ?? []).includes(what);
  const ask = (prompt, more = {}) => ({ model, prompt, maxRetries: 0, onError: () => {}, ...more });
  const whole = await generateText(ask('Hi'));
  assert.equal(whole.text, 'Hello!', name);
  assert.ok(whole.usage.inputTokens > 0 && whole.usage.outputTokens > 0, `${name}: ${JSON.stringify(whole.usage)}`);

  const stream = streamText(ask('Hi'));
  let text = '';
  for await (const part of stream.fullStream) {
    assert.notEqual(part.type, 'error', `${name}: ${part.error}`);
    if (part.type === 'text-delta') text += part.text;
  }
  assert.equal(text, 'Hello!', name);
  const usage = await stream.usage;
  assert.ok(usage.inputTokens > 0 && usage.outputTokens > 0, `${name}, streamed: ${JSON.stringify(usage)}`);

  if (has('reasoning')) {
    const thought = await generateText(ask('THINK', { providerOptions: { openai: { reasoningSummary: 'auto', forceReasoning: true } } }));
    assert.match(thought.reasoningText ?? '', /Four words/, name);
    assert.equal(thought.text.trim(), 'The answer is 42.', name);
  }
  if (has('tools')) {
    for (const word of ['WEATHER', 'TWO CALLS']) {
      const run = await generateText(ask(word, { tools, stopWhen: stepCountIs(3) }));
      assert.equal(run.steps.length, 2, name);
      assert.equal(run.steps[0].toolResults[0].output, 'sunny in Oslo', name);
      assert.equal(run.text, 'It is sunny in Oslo.', name);
      const streamed = streamText(ask(word, { tools, stopWhen: stepCountIs(3) }));
      const kinds = [];
      for await (const part of streamed.fullStream) {
        assert.notEqual(part.type, 'error', `${name}: ${part.error}`);
        kinds.push(part.type);
      }
      assert.ok(kinds.includes('tool-call') && kinds.includes('tool-result'), `${name}: ${kinds}`);
      assert.equal(await streamed.text, 'It is sunny in Oslo.', name);
    }
  }
  if (has('length')) {
    const cut = await generateText(ask('COUNT', { maxOutputTokens: 20 }));
    assert.equal(cut.finishReason, 'length', name);
  }
  const stop = new AbortController();
  const aborted = streamText(ask('COUNT', { abortSignal: stop.signal }));
  for await (const part of aborted.fullStream) {
    if (part.type === 'text-delta') stop.abort();
  }
  console.log(name, 'ok');
}
