// generate with the OpenAI-compatible plugin, streamed too, and with Ollama's: text, tools
const { base, v1, model, said, check, has, done, getWeather } = await import(process.env.BALEEN_TRYING);
import { genkit, z } from 'genkit';
import { openAICompatible } from '@genkit-ai/compat-oai';
import { ollama } from 'genkitx-ollama';

const ai = genkit({ plugins: [openAICompatible({ name: 'baleen', apiKey: 'none', baseURL: v1 }), ollama({ models: [{ name: model, supports: { tools: true } }], serverAddress: base })] });
const weather = ai.defineTool({ name: 'get_weather', description: 'w', inputSchema: z.object({ city: z.string() }), outputSchema: z.string() }, async (x) => getWeather(x));
// Ollama's plugin takes each read of a stream for one line, which a fast model's are not.
for (const name of ['baleen', 'ollama']) {
  await check(name, async () => has((await ai.generate({ model: `${name}/${model}`, prompt: 'hi' })).text, 'Hello!'));
  if (name === 'baleen') await check(name + ' stream', async () => {
    const { stream, response } = ai.generateStream({ model: `${name}/${model}`, prompt: 'hi' });
    let n = 0;
    for await (const _ of stream) n++;
    has((await response).text, 'Hello!');
    return n > 2;
  });
  await check(name + ' tools', async () => has((await ai.generate({ model: `${name}/${model}`, prompt: 'WEATHER', tools: [weather] })).text, said));
}
done();
