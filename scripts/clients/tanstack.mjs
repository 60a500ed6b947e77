// chat with the adapters for OpenAI (responses) and Anthropic: stream
const { base, v1, model, check, has, done } = await import(process.env.BALEEN_TRYING);
import { chat } from '@tanstack/ai';
import { createAnthropicChat } from '@tanstack/ai-anthropic';
import { createOpenaiChat } from '@tanstack/ai-openai';

const adapters = {
  openai: () => createOpenaiChat(model, 'none', { baseURL: v1 }),
  anthropic: () => createAnthropicChat(model, 'none', { baseURL: base }),
};
for (const [name, adapter] of Object.entries(adapters)) {
  await check(name, async () => {
    let text = '';
    for await (const c of chat({ adapter: adapter(), messages: [{ role: 'user', content: 'hi' }] })) {
      if (c.type === 'TEXT_MESSAGE_CONTENT') text += c.delta;
      if (c.type === 'RUN_ERROR') throw new Error(JSON.stringify(c));
    }
    has(text, 'Hello!');
  });
}
done();
