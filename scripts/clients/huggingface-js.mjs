// InferenceClient with an endpoint: chatCompletion, stream, tools
const { v1, model, check, has, done, weatherSchema } = await import(process.env.BALEEN_TRYING);
import { InferenceClient } from '@huggingface/inference';

const client = new InferenceClient('none', { endpointUrl: v1 });
const ask = (content, more = {}) => ({ model, messages: [{ role: 'user', content }], max_tokens: 300, ...more });
await check('chat', async () => has((await client.chatCompletion(ask('hi'))).choices[0].message.content, 'Hello!'));
await check('stream', async () => {
  let text = '';
  for await (const c of client.chatCompletionStream(ask('hi'))) text += c.choices[0]?.delta?.content ?? '';
  has(text, 'Hello!');
});
await check('tools', async () => {
  const tools = [{ type: 'function', function: { name: 'get_weather', description: 'w', parameters: weatherSchema } }];
  return (await client.chatCompletion(ask('WEATHER', { tools }))).choices[0].message.tool_calls[0].function.name === 'get_weather';
});
done();
