// OpenAI and Ollama classes: chat, stream, a call of a tool
const { base, v1, model, check, has, done, getWeather } = await import(process.env.BALEEN_TRYING);
import { tool } from 'llamaindex';
import { openai } from '@llamaindex/openai';
import { Ollama } from '@llamaindex/ollama';
import { z } from 'zod';

const models = {
  openai: openai({ model, apiKey: 'none', baseURL: v1, maxRetries: 0, supportToolCall: true }),
  ollama: new Ollama({ model, config: { host: base } }),
};
const weather = tool({ name: 'get_weather', description: 'w', parameters: z.object({ city: z.string() }), execute: getWeather });
for (const [name, llm] of Object.entries(models)) {
  await check(name, async () => has((await llm.chat({ messages: [{ role: 'user', content: 'hi' }] })).message.content, 'Hello!'));
  await check(name + ' stream', async () => {
    let text = '';
    for await (const c of await llm.chat({ messages: [{ role: 'user', content: 'hi' }], stream: true })) text += c.delta;
    has(text, 'Hello!');
  });
  await check(name + ' tools', async () => {
    const { message } = await llm.chat({ messages: [{ role: 'user', content: 'WEATHER' }], tools: [weather] });
    return message.options.toolCall[0].name === 'get_weather';
  });
}
done();
