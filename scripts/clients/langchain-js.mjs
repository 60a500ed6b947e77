// ChatOpenAI, ChatAnthropic and ChatOllama: invoke, stream, tools and a turn with the result, structured output
const { base, v1, model, said, check, has, done, getWeather } = await import(process.env.BALEEN_TRYING);
import { HumanMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatAnthropic } from '@langchain/anthropic';
import { ChatOllama } from '@langchain/ollama';
import { ChatOpenAI } from '@langchain/openai';
import { z } from 'zod';

const weather = tool(getWeather, { name: 'get_weather', description: 'w', schema: z.object({ city: z.string() }) });
const person = z.object({ name: z.string(), age: z.number() });
const models = {
  openai: new ChatOpenAI({ model, apiKey: 'none', configuration: { baseURL: v1 }, maxRetries: 0 }),
  'openai responses': new ChatOpenAI({ model, apiKey: 'none', configuration: { baseURL: v1 }, maxRetries: 0, useResponsesApi: true }),
  anthropic: new ChatAnthropic({ model, apiKey: 'none', anthropicApiUrl: base, maxTokens: 900, maxRetries: 0 }),
  ollama: new ChatOllama({ model, baseUrl: base, maxRetries: 0 }),
};
for (const [name, llm] of Object.entries(models)) {
  await check(name, async () => has((await llm.invoke('hi')).text, 'Hello!'));
  await check(name + ' stream', async () => {
    let text = '';
    for await (const c of await llm.stream('hi')) text += c.text;
    has(text, 'Hello!');
  });
  await check(name + ' tools', async () => {
    const bound = llm.bindTools([weather]);
    const messages = [new HumanMessage('WEATHER')];
    messages.push(await bound.invoke(messages));
    messages.push(await weather.invoke(messages[1].tool_calls[0]));
    has((await bound.invoke(messages)).text, said);
  });
  if (name === 'ollama') continue; // by format, which is refused until output can be held to it
  await check(name + ' structured', async () => (await llm.withStructuredOutput(person, { name: 'Person', method: 'functionCalling' }).invoke('CALL<<Person {"name": "Ada", "age": 36}>>')).age === 36);
}
done();
