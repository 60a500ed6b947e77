// the command cn with an OpenAI-compatible model: one turn with its system prompt and tools
const { v1, model, check, has, done } = await import(process.env.BALEEN_TRYING);
import { spawnSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';

const home = mkdtempSync(`${tmpdir()}/cn-`);
writeFileSync(`${home}/config.yaml`, JSON.stringify({
  name: 'local', version: '1.0.0', schema: 'v1', models: [{ name: model, provider: 'openai', model, apiBase: v1, apiKey: 'none', roles: ['chat'] }],
}));
await check('turn', () => {
  const r = spawnSync('node', [`${process.cwd()}/node_modules/.bin/cn`, '-p', 'hi there', '--config', `${home}/config.yaml`], { cwd: home, env: { ...process.env, HOME: home }, encoding: 'utf8', timeout: 120000, input: '' });
  has(r.stdout + r.stderr, 'Hello!');
});
done();
