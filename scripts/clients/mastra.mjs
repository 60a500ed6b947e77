// Agent over an OpenAI-compatible endpoint: generate, stream, a tool
const { v1, model, said, check, has, done, getWeather } = await import(process.env.BALEEN_TRYING);
import { Agent } from '@mastra/core/agent';
import { createTool } from '@mastra/core/tools';
import { z } from 'zod';

const weather = createTool({ id: 'get_weather', description: 'w', inputSchema: z.object({ city: z.string() }), execute: async (x) => getWeather(x.context ?? x) });
const agent = new Agent({ id: 'a', name: 'a', instructions: 'Be kind.', model: { id: `baleen/${model}`, url: v1, apiKey: 'none' }, tools: { get_weather: weather } });
await check('generate', async () => has((await agent.generate('hi')).text, 'Hello!'));
await check('stream', async () => {
  const s = await agent.stream('hi');
  let text = '';
  for await (const t of s.textStream) text += t;
  has(text, 'Hello!');
});
await check('tools', async () => has((await agent.generate('WEATHER')).text, said));
done();
