/** Reloads the configuration file of a running process. */
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { writeConfigFile } from '../../support/proxy/config-file.ts';
import { startProcess } from '../../support/proxy/process.ts';
import { startReloadable } from '../../support/proxy/reloadable.ts';
import { send } from '../../support/clients/send.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

const OK = 'tidegate_config_last_reload_successful';
const READ_AT = 'tidegate_config_last_reload_success_timestamp_seconds';

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'tidegate-reload-'));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

test('applies a replaced file from the next request on', async () => {
  const [one, two] = [await startNamed('one'), await startNamed('two')];
  const gate = await startReloadable(`upstreams: {api: {url: "${one.url}"}}`);
  expect((await send(gate.url, '/')).body.toString()).toBe('one');
  gate.rewrite(`upstreams: {api: {url: "${two.url}"}}`);
  await eventually(gate.reloads, (count) => count === 1);
  expect((await send(gate.url, '/')).body.toString()).toBe('two');
  expect(gate.log()).toContainEqual(
    expect.objectContaining({ level: 'info', msg: 'configuration reloaded', changed: ['upstreams.api.url'] }),
  );
});

test('reports the positions of errors in an invalid file, keeps the old settings, and applies the next valid file', async () => {
  const [one, two] = [await startNamed('one'), await startNamed('two')];
  const gate = await startReloadable(`upstreams: {api: {url: "${one.url}"}}`);
  expect(await gate.metric(OK)).toBe(1);
  const readAt = Number(await gate.metric(READ_AT));
  expect(readAt).toBeGreaterThan(Date.now() / 1000 - 60);
  gate.rewrite(`upstreams: {api: {url: "${two.url}", timeout: soon, retri: {}}}`);
  await eventually(gate.problems, ({ length }) => length === 1);
  const [problem = ''] = gate.problems();
  expect(problem).toContain(`${gate.file}:4:`);
  expect(problem).toContain('upstreams.api.timeout: ');
  expect(problem).toContain('upstreams.api.retri: unknown key (did you mean retry?)');
  expect(await gate.metric(OK)).toBe(0);
  expect(await gate.metric(READ_AT)).toBe(readAt);
  expect((await send(gate.url, '/')).body.toString()).toBe('one');
  gate.rewrite(`upstreams: {api: {url: "${two.url}"}}`);
  await eventually(gate.reloads, (count) => count === 1);
  expect((await send(gate.url, '/')).body.toString()).toBe('two');
  expect(await gate.metric(OK)).toBe(1);
  expect(Number(await gate.metric(READ_AT))).toBeGreaterThan(readAt);
});

test('reloads when kubelet updates a mounted ConfigMap', async () => {
  const [one, two] = [await startNamed('one'), await startNamed('two')];
  const mounted = folder();
  const write = (generation: string, url: string): void => {
    mkdirSync(join(mounted, generation));
    const text = `listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nupstreams: {api: {url: "${url}"}}\n`;
    writeFileSync(join(mounted, generation, 'tidegate.yaml'), text);
    symlinkSync(generation, join(mounted, '..data_tmp'));
    renameSync(join(mounted, '..data_tmp'), join(mounted, '..data'));
  };
  write('..2026_01_01', one.url);
  symlinkSync('..data/tidegate.yaml', join(mounted, 'tidegate.yaml'));
  const gate = await startReloadable('', { file: join(mounted, 'tidegate.yaml') });
  expect((await send(gate.url, '/')).body.toString()).toBe('one');
  write('..2026_01_02', two.url);
  rmSync(join(mounted, '..2026_01_01'), { recursive: true });
  await eventually(gate.reloads, (count) => count === 1);
  expect((await send(gate.url, '/')).body.toString()).toBe('two');
});

test('reads the file again on SIGHUP', async () => {
  const upstream = await startNamed('one');
  const gate = await startReloadable(`log: {level: debug}\nupstreams: {api: {url: "${upstream.url}"}}`);
  gate.child.kill('SIGHUP');
  await eventually(
    () => gate.log(),
    (lines) => lines.some(({ msg }) => msg === 'configuration unchanged: nothing to reload'),
  );
  expect(gate.reloads()).toBe(0);
  expect((await send(gate.url, '/')).status).toBe(200);
  expect(gate.child.exitCode).toBe(null);
});

test('a SIGHUP while workers start does not end the process: the file is read again afterwards', async () => {
  const file = writeConfigFile(
    'listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nworkers: 2\nupstreams: {api: {url: "http://127.0.0.1:9"}}\n',
  );
  const { child, log } = startProcess(['serve', '--config', file, '--log-level', 'debug']);
  const untilLogged = (text: string) =>
    eventually(log, (lines) => lines.some(({ msg }) => String(msg).includes(text)), 40_000);
  await eventually(log, ({ length }) => length > 0, 40_000);
  child.kill('SIGHUP');
  await untilLogged('listening');
  await untilLogged('nothing to reload');
  expect(child.exitCode).toBe(null);
});

test('reloads when a file that the configuration refers to is replaced', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end('seen'));
  const secrets = folder();
  const put = (host: string): void => {
    writeFileSync(join(secrets, 'next'), `${host}\n`);
    renameSync(join(secrets, 'next'), join(secrets, 'host'));
  };
  put('one.example');
  const route = '{path: /, upstream: api, host: "${file:' + join(secrets, 'host') + '}"}';
  const gate = await startReloadable(`upstreams: {api: {url: "${upstream.url}"}}\nroutes: [${route}]`);
  const ask = async (host: string) => (await fetchAs(gate.url, host)).status;
  expect([await ask('one.example'), await ask('two.example')]).toEqual([200, 404]);
  put('two.example');
  await eventually(gate.reloads, (count) => count === 1);
  expect([await ask('one.example'), await ask('two.example')]).toEqual([404, 200]);
  // A missing file keeps the value in effect.
  unlinkSync(join(secrets, 'host'));
  await eventually(gate.problems, ({ length }) => length > 0);
  expect(await ask('two.example')).toBe(200);
});

test('rejects a file that changes settings which need a restart, and names them', async () => {
  const [one, two] = [await startNamed('one'), await startNamed('two')];
  const gate = await startReloadable(`upstreams: {api: {url: "${one.url}"}}`);
  gate.rewrite(
    `workers: 2\nclients: {maxTracked: 10}\nlimits: {requests: 5, overload: {eventLoopDelay: 1h}}\nupstreams: {api: {url: "${two.url}"}}`,
  );
  await eventually(gate.problems, ({ length }) => length === 1);
  expect(gate.problems()).toEqual(['needs a restart: workers, limits.requests, clients.maxTracked']);
  expect((await send(gate.url, '/')).body.toString()).toBe('one');
});

test('rejects an empty file, as seen while an editor writes it', async () => {
  const upstream = await startNamed('one');
  const env = { TIDEGATE_LISTEN: '127.0.0.1:0', TIDEGATE_ADMIN: '127.0.0.1:0' };
  const gate = await startReloadable(`upstreams: {api: {url: "${upstream.url}"}}`, { given: '', env });
  writeFileSync(gate.file, '');
  await eventually(gate.problems, ({ length }) => length > 0);
  expect(gate.problems()[0]).toContain('at least one upstream is needed');
  expect((await send(gate.url, '/')).body.toString()).toBe('one');
});

function startNamed(name: string) {
  return startHttpUpstream((_n, response) => response.end(name));
}

function fetchAs(url: string, host: string) {
  return send(url, '/', { headers: ['Host', host] });
}
