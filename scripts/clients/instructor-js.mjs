// structured output by tools
const { v1, model, check, done } = await import(process.env.BALEEN_TRYING);
import Instructor from '@instructor-ai/instructor';
import OpenAI from 'openai';
import { z } from 'zod';

const client = Instructor({ client: new OpenAI({ baseURL: v1, apiKey: 'none', maxRetries: 0 }), mode: 'TOOLS' });
await check('tools', async () => {
  const p = await client.chat.completions.create({
    model, max_retries: 0, messages: [{ role: 'user', content: 'CALL<<Person {"name": "Ada", "age": 36}>>' }],
    response_model: { name: 'Person', schema: z.object({ name: z.string(), age: z.number() }) },
  });
  return p.age === 36;
});
done();
