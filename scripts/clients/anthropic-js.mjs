// messages, stream, tools by the tool runner, count_tokens
const { base, model, said, check, has, done, weatherSchema, getWeather } = await import(process.env.BALEEN_TRYING);
import Anthropic from '@anthropic-ai/sdk';

const client = new Anthropic({ baseURL: base, apiKey: 'none', maxRetries: 0 });
const ask = (content) => ({ model, max_tokens: 900, messages: [{ role: 'user', content }] });
await check('messages', async () => has((await client.messages.create(ask('hi'))).content[0].text, 'Hello!'));
await check('stream', async () => has(await client.messages.stream(ask('hi')).finalText(), 'Hello!'));
await check('tools', async () => {
  const tools = [{ name: 'get_weather', description: 'w', input_schema: weatherSchema, run: getWeather, parse: (x) => x }];
  const last = await client.beta.messages.toolRunner({ ...ask('WEATHER'), tools });
  has(last.content[0].text, said);
});
await check('count_tokens', async () => (await client.messages.countTokens({ model, messages: ask('hi').messages })).input_tokens > 0);
done();
