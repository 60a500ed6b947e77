// AxAI with an OpenAI endpoint: chat
const { v1, model, check, has, done } = await import(process.env.BALEEN_TRYING);
import { ai } from '@ax-llm/ax';

const llm = ai({ name: 'openai', apiKey: 'none', apiURL: v1, config: { model, stream: false } });
await check('chat', async () => has(JSON.stringify((await llm.chat({ chatPrompt: [{ role: 'user', content: 'hi' }] })).results), 'Hello!'));
done();
