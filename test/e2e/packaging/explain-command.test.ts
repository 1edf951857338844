import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Explanation } from '../../../src/telemetry/explanations/build-explanation.ts';
import { fetchExplanation } from '../../support/admin/explanations.ts';
import { listen, refusingUrl, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { run } from '../../support/proxy/process.ts';
import { send } from '../../support/clients/send.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const TOKEN = 'a-token-of-some-length-0123456789';

async function start(yaml = ''): Promise<{ readonly gate: Tidegate; readonly id: string }> {
  const upstream = await startHttpUpstream((_n, response) => response.writeHead(404).end());
  const gate = await startTidegate(`${yaml}\nupstreams: {api: {url: "${upstream.url}"}}`);
  const id = (await send(gate.url, '/charges')).header('tidegate-request-id') ?? '';
  await eventually(gate.requests, ({ length }) => length === 1);
  return { gate, id };
}

describe('tidegate explain', () => {
  test('prints the explanation as text, or as one JSON object', async () => {
    const { gate, id } = await start();
    const text = await run(['explain', id, '--admin', gate.adminUrl ?? '']);
    expect(text.stderr).toBe('');
    expect(text.code).toBe(0);
    const lines = text.stdout.trimEnd().split('\n');
    expect(lines[0]).toBe(`${id}: GET /charges → 404 (forwarded)`);
    expect(lines.at(-1)).toMatch(/^\d+\.\d{3} s {2}verdict {3}forwarded: the upstream’s 404$/);
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(80);

    const json = await run(['explain', id, '--json'], { TIDEGATE_ADMIN: gate.adminUrl?.replace('http://', '') });
    expect(JSON.parse(json.stdout) as Explanation).toEqual(await fetchExplanation(gate, id));
  });

  test('connects over a Unix socket', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'explain-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const { id } = await start(`admin: "unix:${folder}/admin.sock"`);
    const { code, stdout } = await run(['explain', id, '--admin', `unix:${folder}/admin.sock`]);
    expect({ code, first: stdout.split('\n')[0] }).toEqual({ code: 0, first: `${id}: GET /charges → 404 (forwarded)` });
  });

  test('sends the admin token, and names the option when it is missing', async () => {
    const { gate, id } = await start(`admin: {listen: "0.0.0.0:0", token: ${TOKEN}}`);
    const admin = gate.adminUrl?.replace('0.0.0.0', '127.0.0.1') ?? '';
    const without = await run(['explain', id, '--admin', admin]);
    expect(without).toMatchObject({ code: 1, stdout: '' });
    expect(without.stderr).toContain('set it with --token or TIDEGATE_ADMIN_TOKEN');
    const wrong = await run(['explain', id, '--admin', admin, '--token', 'guess']);
    expect(wrong.stderr).toContain('the token given is not the one of admin.token');
    expect((await run(['explain', id, '--admin', admin, '--token', TOKEN])).code).toBe(0);
    expect((await run(['explain', id, '--admin', admin], { TIDEGATE_ADMIN_TOKEN: TOKEN })).code).toBe(0);
  });
});

describe('an error is one line that names the cause', () => {
  test.each([
    ['an unknown id', (url: string) => ['none-1', '--admin', url], 1, /^tidegate: none-1: No record of this request/],
    [
      'an invalid address',
      () => ['i-1', '--admin', 'nonsense'],
      2,
      /^tidegate: --admin: 'nonsense' is not an address; expected http/,
    ],
    ['no id', () => [], 2, /^tidegate: explain needs an ID/],
    ['two ids', () => ['a', 'b'], 2, /^tidegate: explain takes one ID/],
  ])('%s', async (_, args, code, line) => {
    const { gate } = await start();
    const ended = await run(['explain', ...args(gate.adminUrl ?? '')]);
    expect(ended).toMatchObject({ code, stdout: '' });
    expect(ended.stderr).toMatch(line);
    expect(ended.stderr.trimEnd().split('\n')).toHaveLength(1);
  });

  test('the admin port refuses the connection', async () => {
    const { code, stderr } = await run(['explain', 'i-1', '--admin', await refusingUrl()]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^tidegate: the admin port at \S+ cannot be reached \(ECONNREFUSED\): is tidegate running/);
  });

  test('another server listens at the address', async () => {
    const { url } = await listen((_request, response) => void response.end('<html>'));
    const { code, stderr } = await run(['explain', 'i-1', '--admin', url]);
    expect(code).toBe(1);
    expect(stderr).toBe(`tidegate: ${url} answered with 200: is this the admin port of tidegate?\n`);
  });
});
