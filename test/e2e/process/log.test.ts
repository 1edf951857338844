/** The log of the program as a process: one process, and several. */
import { expect, test } from 'vitest';
import { send } from '../../support/clients/send.ts';
import { writeConfigFile } from '../../support/proxy/config-file.ts';
import { startProcess } from '../../support/proxy/process.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const START = 20_000;
const ID = 'tidegate-request-id';

async function writeConfig(): Promise<string> {
  const upstream = await startHttpUpstream((_n, response) => response.end('well'));
  return `listen: 127.0.0.1:0
admin: 127.0.0.1:0
drain: {delay: 0, timeout: 1s}
upstreams: {api: {url: "${upstream.url}"}}
`;
}

test('all lines have the instance, with which the ids of requests begin', async () => {
  const gate = startProcess(['serve', '--config', writeConfigFile(await writeConfig())]);
  const listening = await eventually(
    () => gate.log().find(({ msg }) => msg === 'listening'),
    (line) => line !== undefined,
    START,
  );
  const { headers } = await fetch(String(listening?.['url']));
  gate.child.kill('SIGTERM');
  await gate.ended;
  const instance = String(headers.get(ID)).replace(/-.*/, '');
  expect(instance).toMatch(/^[\da-f]{8}$/);
  expect(gate.log().map(({ msg }) => msg)).toContain('request');
  expect(new Set(gate.log().map((line) => line['instance']))).toEqual(new Set([instance]));
});

test('the primary and its workers have one instance', async () => {
  const gate = await startWorkers(`workers: 2\n${await writeConfig()}`);
  const answer = await send(gate.url, '/');
  const lines = await eventually(gate.log, (all) => all.some(({ msg }) => msg === 'request'));
  const [line] = lines.filter(({ msg }) => msg === 'request');
  expect(line).toMatchObject({ id: answer.header(ID) });
  expect(answer.header(ID)).toMatch(new RegExp(`^${String(line?.['instance'])}-${String(line?.['worker'])}-`));
  expect(new Set(lines.map(({ instance }) => instance)).size).toBe(1);
});
