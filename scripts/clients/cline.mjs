// the command cline with an OpenAI-compatible provider: one turn with its system prompt and tools
const { v1, model, check, has, done } = await import(process.env.BALEEN_TRYING);
import { spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';

const home = mkdtempSync(`${tmpdir()}/cline-`);
const cline = (...args) => {
  const r = spawnSync(`${process.cwd()}/node_modules/.bin/cline`, args, { cwd: home, env: { ...process.env, HOME: home }, encoding: 'utf8', timeout: 120000, input: '' });
  return r.stdout + r.stderr;
};
await check('auth', () => has(cline('auth', 'openai', '--apikey', 'none', '--modelid', model, '--baseurl', v1), 'configured'));
await check('turn', () => has(cline('-P', 'openai', 'hi there'), 'Hello!'));
done();
