// Agent and run over chat completions and over responses: strict tools, a second turn that replays the first
const { v1, model, said, check, has, done, getWeather } = await import(process.env.BALEEN_TRYING);
import { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, run, setTracingDisabled, tool } from '@openai/agents';
import OpenAI from 'openai';
import { z } from 'zod';

setTracingDisabled(true);
const client = new OpenAI({ baseURL: v1, apiKey: 'none', maxRetries: 0 });
const weather = tool({ name: 'get_weather', description: 'w', parameters: z.object({ city: z.string() }), execute: async (x) => getWeather(x) });
for (const [name, m] of Object.entries({ chat: new OpenAIChatCompletionsModel(client, model), responses: new OpenAIResponsesModel(client, model) })) {
  await check(name, async () => {
    const agent = new Agent({ name: 'a', model: m, tools: [weather] });
    const first = await run(agent, 'WEATHER');
    has(first.finalOutput, said);
    has((await run(agent, [...first.history, { role: 'user', content: 'hi' }])).finalOutput, 'Hello!');
  });
  await check(name + ' stream', async () => {
    const s = await run(new Agent({ name: 'a', model: m, tools: [weather] }), 'WEATHER', { stream: true });
    for await (const _ of s);
    has(s.finalOutput, said);
  });
}
done();
