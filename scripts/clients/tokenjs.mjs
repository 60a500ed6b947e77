// an OpenAI-compatible endpoint: chat, stream
const { v1, model, check, has, done } = await import(process.env.BALEEN_TRYING);
import { TokenJS } from 'token.js';

const client = new TokenJS({ baseURL: v1, apiKey: 'none' });
const ask = (more) => client.chat.completions.create({ provider: 'openai-compatible', model, messages: [{ role: 'user', content: 'hi' }], ...more });
await check('chat', async () => has((await ask()).choices[0].message.content, 'Hello!'));
await check('stream', async () => {
  let text = '';
  for await (const c of await ask({ stream: true })) text += c.choices[0]?.delta?.content ?? '';
  has(text, 'Hello!');
});
done();
