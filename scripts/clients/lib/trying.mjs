// What the programs beside this share: see trying.py.
export const base = process.env.BALEEN_URL ?? 'http://127.0.0.1:18181';
export const v1 = base + '/v1';
export const model = process.env.BALEEN_MODEL ?? 'scripted';
export const said = 'It is sunny in Oslo.';
process.env.OPENAI_API_KEY ??= 'none';
process.env.OPENAI_BASE_URL ??= v1;
process.env.ANTHROPIC_API_KEY ??= 'none';
process.env.OPENAI_AGENTS_DISABLE_TRACING ??= '1';
let failed = false;

// check runs one thing; what it returns must be true or nothing.
export async function check(name, run) {
  try {
    const got = await run();
    if (got !== undefined && !got) throw new Error(`got ${got}`);
    console.log('ok', name);
  } catch (e) {
    failed = true;
    if (process.env.BALEEN_TRACE) console.error(e);
    console.log(`FAIL ${name}: ${String(e?.message ?? e).replace(/\s+/g, ' ').slice(0, 400)}`);
  }
}

// has wants a part in a text, and says both where it is not there.
export function has(text, part) {
  if (!String(text).includes(part)) throw new Error(`${JSON.stringify(part)} is not in ${String(JSON.stringify(text)).slice(0, 300)}`);
}

export const weatherSchema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false };
export const getWeather = ({ city }) => `sunny in ${city}`;

export function done() {
  process.exit(failed ? 1 : 0);
}
