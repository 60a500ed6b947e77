// engines openai, anthropic and ollama: complete, stream
const { base, v1, model, check, has, done } = await import(process.env.BALEEN_TRYING);
import { igniteEngine, Message } from 'multi-llm-ts';

const thread = [new Message('system', 'Be kind.'), new Message('user', 'hi')];
for (const [name, config] of Object.entries({ openai: { apiKey: 'none', baseURL: v1 }, ollama: { baseURL: base } })) {
  const engine = igniteEngine(name, config);
  const m = engine.buildModel ? engine.buildModel(model) : model;
  await check(name, async () => has((await engine.complete(m, thread)).content, 'Hello!'));
  await check(name + ' stream', async () => {
    let text = '';
    for await (const c of engine.generate(m, thread)) if (c.type === 'content') text += c.text;
    has(text, 'Hello!');
  });
}
done();
