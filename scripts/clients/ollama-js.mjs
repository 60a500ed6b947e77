// chat, stream, tools, generate, list
const { base, model, said, check, has, done, weatherSchema, getWeather } = await import(process.env.BALEEN_TRYING);
import { Ollama } from 'ollama';

const client = new Ollama({ host: base });
const messages = [{ role: 'user', content: 'WEATHER' }];
const tools = [{ type: 'function', function: { name: 'get_weather', description: 'w', parameters: weatherSchema } }];
await check('chat', async () => has((await client.chat({ model, messages: [{ role: 'user', content: 'hi' }], keep_alive: '-1' })).message.content, 'Hello!'));
await check('stream', async () => {
  let text = '';
  for await (const c of await client.chat({ model, messages: [{ role: 'user', content: 'hi' }], stream: true })) text += c.message.content;
  has(text, 'Hello!');
});
await check('tools', async () => {
  const { message } = await client.chat({ model, messages, tools });
  const call = message.tool_calls[0].function;
  has((await client.chat({ model, tools, messages: [...messages, message, { role: 'tool', tool_name: call.name, content: getWeather(call.arguments) }] })).message.content, said);
});
await check('generate', async () => has((await client.generate({ model, prompt: 'hi' })).response, 'Hello!'));
await check('list', async () => (await client.list()).models.some((m) => m.name.startsWith(model)));
done();
