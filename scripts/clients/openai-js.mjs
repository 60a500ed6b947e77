// chat, stream with usage, tools by runTools, responses, models
const { base, v1, model, said, check, has, done, weatherSchema, getWeather } = await import(process.env.BALEEN_TRYING);
import OpenAI from 'openai';

const client = new OpenAI({ baseURL: v1, apiKey: 'none', maxRetries: 0 });
const ask = (content) => ({ model, messages: [{ role: 'user', content }] });
const tools = [{ type: 'function', function: { name: 'get_weather', parameters: weatherSchema, strict: true, function: getWeather, parse: JSON.parse } }];
await check('chat', async () => has((await client.chat.completions.create(ask('hi'))).choices[0].message.content, 'Hello!'));
await check('stream', async () => {
  let text = '';
  for await (const c of await client.chat.completions.create({ ...ask('hi'), stream: true })) text += c.choices[0]?.delta?.content ?? '';
  has(text, 'Hello!');
});
await check('tools', async () => has(await client.chat.completions.runTools({ ...ask('WEATHER'), tools }).finalContent(), said));
await check('responses', async () => has((await client.responses.create({ model, input: 'hi' })).output_text, 'Hello!'));
await check('models', async () => (await client.models.list()).data[0].id === model);
done();
