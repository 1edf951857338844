import { spawnSync } from 'node:child_process';
import { readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer as createHttpsServer } from 'node:https';
import { createServer, type ListenOptions, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { runDoctor } from '../../../src/cli/doctor/doctor-command.ts';
import type { DoctorFinding } from '../../../src/cli/doctor/doctor-finding.ts';
import { readFile } from '../../../src/cli/read-file.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { freePort } from '../../support/free-port.ts';
import { writeConfigFile } from '../../support/proxy/config-file.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';
import { startCluster } from '../../support/redis/redis-cluster.ts';
import { startSentinel } from '../../support/redis/redis-sentinel.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const certificates = makeCertificates();
beforeAll(() => {
  certificates.issueExpired('expired', 'IP:127.0.0.1');
  certificates.issueServer();
});
afterAll(() => certificates.remove());

interface Diagnosis {
  readonly exitCode: number;
  /** Of the JSON form. */
  readonly findings: readonly (DoctorFinding & { readonly remedy?: string })[];
  /** The form for people. */
  readonly text: string;
}

interface DiagnoseOptions {
  readonly admin?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly token?: string;
}

async function diagnoseFile(config: string, { env = {}, token, admin }: DiagnoseOptions = {}): Promise<Diagnosis> {
  const flags = { config, upstream: undefined, listen: undefined, admin };
  const run = (json: boolean) =>
    runDoctor({ kind: 'doctor', flags, token, json }, { env, readFile, version: '1.2.3', random: () => 0.5 });
  const { exitCode, text: json } = await run(true);
  const { text, ...plain } = await run(false);
  expect(plain.exitCode).toBe(exitCode);
  const { findings, ...counts } = JSON.parse(json) as Diagnosis & { readonly problems: number };
  expect(counts).toMatchObject({ ok: exitCode === 0, version: '1.2.3' });
  // Nothing that a finding has is left out of the form for people.
  const parts = findings.flatMap(({ place, meaning, remedy = '' }) => [place, meaning, remedy]);
  for (const part of parts) expect(withoutNumbers(text)).toContain(withoutNumbers(part));
  return { exitCode, findings, text };
}

/** Measured times, ports of servers whose clocks agree, and free space differ between two runs. */
function withoutNumbers(text: string): string {
  return text.replaceAll(/\d+/g, '0');
}

async function diagnose(yaml: string, options?: DiagnoseOptions): Promise<Diagnosis> {
  const [listen, admin] = [await freePort(), await freePort()];
  const addresses = /^admin:/m.test(yaml) ? '' : `listen: 127.0.0.1:${listen}\nadmin: 127.0.0.1:${admin}\n`;
  return diagnoseFile(writeConfigFile(`${yaml.trim()}\n${addresses}`), options);
}

/** The findings of a check that are faults. */
function faults({ findings }: Diagnosis, check: DoctorFinding['check']): DoctorFinding[] {
  return findings.filter((finding) => finding.check === check && ['problem', 'warning'].includes(finding.status));
}

/** @returns its port; 0 for a Unix socket */
async function listen(options: ListenOptions): Promise<number> {
  const open = new Set<Socket>();
  const server = createServer((socket) => void open.add(socket));
  await new Promise<void>((resolve) => void server.listen(options, resolve));
  onTestFinished(async () => {
    for (const socket of open) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const address = server.address();
  return address instanceof Object ? address.port : 0;
}

async function startUpstream(clockOffset = 0): Promise<string> {
  const upstream = await startHttpUpstream((_, response) => {
    response.setHeader('date', new Date(Date.now() + clockOffset).toUTCString());
    response.end();
  });
  return upstream.url;
}

test('finds no fault where all is well, and sends one HEAD request without credentials', async () => {
  const upstream = await startHttpUpstream((_, response) => void response.writeHead(405).end());
  const { exitCode, findings } = await diagnose(`upstreams: {api: {url: "${upstream.url}"}}`);
  expect(exitCode).toBe(0);
  expect(findings.map(({ check, status }) => `${check} ${status}`)).toEqual([
    'config ok',
    'state ok',
    expect.stringMatching(/^limits /) as string,
    'addresses ok',
    'addresses ok',
    'upstreams ok',
    'clock ok',
    'running skipped',
  ]);
  const [hit] = upstream.hits;
  expect([hit?.method, hit?.target]).toEqual(['HEAD', '/']);
  expect(hit?.headers.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase())).toEqual(['host', 'connection']);
});

test('says which upstream cannot be reached, where it is configured, why, and what to do', async () => {
  const server = createHttpsServer({ cert: certificates.read('expired.crt'), key: certificates.read('expired.key') });
  const tlsPort = await freePort();
  await new Promise<void>((resolve) => void server.listen(tlsPort, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const diagnosis = await diagnose(`
upstreams:
  unknown: {url: "https://nowhere.invalid"}
  closed: {url: "http://127.0.0.1:${await freePort()}"}
  expired: {url: "https://127.0.0.1:${tlsPort}", tls: {ca: ${certificates.path('ca.crt')}}}
  plain: {url: "https://${new URL(await startUpstream()).host}"}
routes: [{path: /, upstream: unknown}, {path: /a, upstream: closed}, {path: /b, upstream: expired}, {path: /c, upstream: plain}]
`);
  expect(diagnosis.exitCode).toBe(1);
  expect(faults(diagnosis, 'upstreams')).toEqual([
    {
      ...{ check: 'upstreams', status: 'problem' },
      place: expect.stringMatching(/tidegate\.yaml:2:18 upstreams\.unknown\.url$/) as string,
      meaning: expect.stringMatching(/^no connection to https:\/\/nowhere\.invalid: the host name /) as string,
      remedy: expect.stringContaining('getent hosts NAME') as string,
    },
    {
      ...{ check: 'upstreams', status: 'problem' },
      place: expect.stringMatching(/:3:17 upstreams\.closed\.url$/) as string,
      meaning: expect.stringMatching(/: connection refused$/) as string,
      remedy: 'Start the upstream, or correct its host and port.',
    },
    {
      ...{ check: 'upstreams', status: 'problem' },
      place: expect.stringMatching(/:4:18 upstreams\.expired\.url$/) as string,
      meaning: expect.stringMatching(/: its certificate has expired$/) as string,
      remedy: expect.stringContaining('Ask the operator of the upstream for a new certificate') as string,
    },
    {
      ...{ check: 'upstreams', status: 'problem' },
      place: expect.stringMatching(/:5:16 upstreams\.plain\.url$/) as string,
      meaning: expect.stringContaining('it does not speak TLS') as string,
      remedy: expect.stringContaining('Write http:// in place of https://') as string,
    },
  ]);
  expect(diagnosis.findings.find(({ check }) => check === 'clock')?.status).toBe('skipped');
});

test('connects with the client certificate that an upstream requires, and reports one that is missing', async () => {
  certificates.issue('client');
  const server = createHttpsServer(
    {
      ...{ cert: certificates.read('server.crt'), key: certificates.read('server.key') },
      ...{ ca: certificates.read('ca.crt'), requestCert: true, rejectUnauthorized: true, maxVersion: 'TLSv1.2' },
    },
    (_, response) => void response.end(),
  );
  const port = await freePort();
  await new Promise<void>((resolve) => void server.listen(port, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const diagnosisWith = (more: string) =>
    diagnose(`upstreams: {api: {url: "https://127.0.0.1:${port}", tls: {ca: ${certificates.path('ca.crt')}${more}}}}`);
  const pair = `, cert: ${certificates.path('client.crt')}, key: ${certificates.path('client.key')}`;
  const accepted = await diagnosisWith(pair);
  expect(faults(accepted, 'upstreams')).toEqual([]);
  expect(accepted.findings).toContainEqual(expect.objectContaining({ check: 'clock', status: 'ok' }));
  expect(faults(await diagnosisWith(''), 'upstreams')).toMatchObject([
    { remedy: expect.stringContaining('client certificate') as string },
  ]);
});

test('compares the clock of this machine with those of the servers', async () => {
  const ahead = await diagnose(`upstreams: {api: {url: "${await startUpstream(600_000)}"}}`);
  expect(ahead.exitCode).toBe(1);
  expect(faults(ahead, 'clock')).toMatchObject([
    {
      ...{ status: 'problem', place: 'clock of this machine' },
      meaning: expect.stringMatching(/^(?:599|600|601) s behind that of http/) as string,
      remedy: expect.stringContaining('timedatectl set-ntp true') as string,
    },
  ]);
  const redis = await startRedis({ clock: true });
  redis.shiftClock(-90_000);
  const mixed = await diagnose(`
upstreams: {a: {url: "${await startUpstream()}"}, b: {url: "${await startUpstream()}"}}
routes: [{path: /, upstream: a}, {path: /b, upstream: b}]
state: {store: redis, url: "${redis.url}"}
`);
  expect(faults(mixed, 'clock')).toMatchObject([
    { status: 'warning', place: 'clock of Redis', meaning: expect.stringMatching(/^(?:89|90|91) s behind/) as string },
  ]);
});

test.each([
  ['does not run', async () => `redis://127.0.0.1:${await freePort()}`, 'ECONNREFUSED', 'Start Redis'],
  [
    'rejects the password',
    async () => (await startRedis({ password: 'right-one' })).url.replace('right-one', 'wrong-one'),
    'WRONGPASS',
    'Correct state.username and state.password',
  ],
  [
    'requires a password',
    async () => (await startRedis({ password: 'right-one' })).url.replace(/:[^/]*@/, ''),
    'NOAUTH',
    'Set state.password',
  ],
  [
    'is a replica',
    async () => (await startRedis({ replicaOf: await startRedis() })).url,
    'READONLY',
    'Set the address of the master',
  ],
  [
    'permits no scripts',
    async () => {
      const redis = await startRedis();
      await redis.client().call('ACL', 'SETUSER', 'gate', 'on', '>word', '~*', '&*', '+@all', '-@scripting');
      return redis.url.replace('//', '//gate:word@');
    },
    'NOPERM',
    'docs/replicas.md',
  ],
])('reports a Redis that %s', async (_, url, cause, remedy) => {
  const upstream = await startUpstream();
  const diagnosis = await diagnose(`upstreams: {api: {url: "${upstream}"}}\nstate: {store: redis, url: "\${REDIS}"}`, {
    env: { REDIS: await url() },
  });
  expect(diagnosis.exitCode).toBe(1);
  expect(faults(diagnosis, 'redis')).toMatchObject([
    {
      status: 'problem',
      place: expect.stringMatching(/:2:28 state\.url$/) as string,
      meaning: expect.stringContaining(cause) as string,
      remedy: expect.stringContaining(remedy) as string,
    },
  ]);
  expect(diagnosis.text).not.toMatch(/right-one|wrong-one|word@/);
});

test('finds Redis usable, and warns of a memory policy that removes keys', async () => {
  const diagnosisOf = async (policy: string) => {
    const { url } = await startRedis({ maxmemory: '64mb', policy });
    return diagnose(`upstreams: {api: {url: "${await startUpstream()}"}}\nstate: {store: redis, url: "${url}"}`);
  };
  const fine = await diagnosisOf('noeviction');
  expect([fine.exitCode, faults(fine, 'redis')]).toEqual([0, []]);
  expect(fine.findings).toContainEqual(
    expect.objectContaining({ check: 'redis', status: 'ok', meaning: expect.stringMatching(/^connected; /) as string }),
  );
  expect(faults(await diagnosisOf('allkeys-lru'), 'redis')).toMatchObject([
    { status: 'warning', meaning: expect.stringContaining('allkeys-lru') as string },
  ]);
});

test('warns if the user of Redis may not publish', async () => {
  const redis = await startRedis();
  await redis.client().call('ACL', 'SETUSER', 'gate', 'on', '>word', '~*', '&*', '+@all', '-publish');
  const url = redis.url.replace('//', '//gate:word@');
  const diagnosis = await diagnose(
    `upstreams: {api: {url: "${await startUpstream()}"}}\nstate: {store: redis, url: "${url}"}`,
  );
  expect(diagnosis.exitCode).toBe(0);
  expect(faults(diagnosis, 'redis')).toMatchObject([
    { status: 'warning', meaning: expect.stringContaining('NOPERM') as string },
  ]);
});

test('finds a cluster, and a master by its Sentinel', async () => {
  const upstream = await startUpstream();
  for (const { url } of [await startCluster(), await startSentinel()]) {
    const diagnosis = await diagnose(`upstreams: {api: {url: "${upstream}"}}\nstate: {store: redis, url: "${url}"}`);
    expect(faults(diagnosis, 'redis')).toEqual([]);
    expect(diagnosis.findings).toContainEqual(expect.objectContaining({ check: 'redis', status: 'ok' }));
  }
});

test.each([
  [
    'redis+sentinel://127.0.0.1:1/mymaster',
    /^Redis cannot be used \(All sentinels are unreachable\. Last error: /,
    /^Start the Sentinels/,
  ],
  ['redis+cluster://127.0.0.1:1', /^Redis cannot be used \(no node can be reached\)/, /^Start the nodes/],
  ['redis://nowhere.invalid', /^Redis cannot be used \(getaddrinfo E\w+ nowhere\.invalid\)/, /getent hosts NAME/],
])('reports that nothing answers at %s', async (url, meaning, remedy) => {
  const diagnosis = await diagnose(
    `upstreams: {api: {url: "${await startUpstream()}"}}\nstate: {store: redis, url: "${url}"}`,
  );
  expect(faults(diagnosis, 'redis')).toMatchObject([
    {
      status: 'problem',
      meaning: expect.stringMatching(meaning) as string,
      remedy: expect.stringMatching(remedy) as string,
    },
  ]);
});

test('reports a folder of the state file that does not exist, and a file that is a folder', async () => {
  const upstream = await startUpstream();
  const missing = await diagnose(`
upstreams: {api: {url: "${upstream}"}}
state: {store: sqlite, file: /nowhere/tidegate/state.db}
`);
  expect(faults(missing, 'state')).toMatchObject([
    {
      status: 'problem',
      place: expect.stringMatching(/:2:30 state\.file \(\/nowhere\/tidegate\)$/) as string,
      meaning: 'cannot be written: no such file',
      remedy: expect.stringMatching(/^Create the folder: install -d -m 700 -o \S+ \/nowhere\/tidegate$/) as string,
    },
  ]);
  const folder = await diagnose(`
upstreams: {api: {url: "${upstream}"}}
state: {store: memory, file: ${dirname(certificates.path('ca.crt'))}}
`);
  expect(faults(folder, 'state')).toMatchObject([{ remedy: 'Set the path of a file, not that of a folder.' }]);
});

test('reports keys that this version does not know, and files that cannot be read', async () => {
  const unknown = await diagnose('upstreams: {api: {url: "http://127.0.0.1:1", circuitbreaker: {}}}');
  expect(unknown.exitCode).toBe(1);
  expect(faults(unknown, 'config')).toMatchObject([
    {
      place: expect.stringMatching(/:1:46 upstreams\.api\.circuitbreaker$/) as string,
      remedy: expect.stringContaining('install the version of Tidegate that the file was written for') as string,
    },
  ]);
  const misspelt = await diagnose('upstreams: {api: {url: "http://127.0.0.1:1", retry: {atempts: 3}}}');
  expect(faults(misspelt, 'config')).toMatchObject([{ remedy: expect.stringMatching(/^Write attempts/) as string }]);
  const unread = await diagnose('upstreams: {api: {url: "https://127.0.0.1:1", tls: {ca: /nowhere/ca.pem}}}');
  expect(faults(unread, 'config')).toMatchObject([
    { meaning: 'cannot be read: no such file', remedy: 'Create the file, or correct its path.' },
  ]);
  const missing = await diagnoseFile('/nowhere/tidegate.yaml');
  expect([missing.exitCode, faults(missing, 'config')]).toMatchObject([1, [{ place: '/nowhere/tidegate.yaml' }]]);
});

test('warns of a certificate that expires soon, and reports one that has expired', async () => {
  certificates.issue('client');
  const upstream = await startUpstream();
  const withPair = (name: string) =>
    diagnose(`
listen: {address: "127.0.0.1:0", tls: {cert: ${certificates.path(`${name}.crt`)}, key: ${certificates.path(`${name}.key`)}}}
admin: 127.0.0.1:0
upstreams: {api: {url: "${upstream}"}}
`);
  expect(faults(await withPair('client'), 'certificates')).toMatchObject([
    { status: 'warning', place: 'listen.tls.cert', meaning: expect.stringMatching(/^expires on 20/) as string },
  ]);
  expect(faults(await withPair('expired'), 'certificates')).toMatchObject([
    { status: 'problem', place: 'listen.tls.cert', meaning: expect.stringMatching(/^expired on 20/) as string },
  ]);
});

test('reports an address that another program uses', async () => {
  const upstream = await startUpstream();
  const taken = new URL(upstream).host;
  const config = `listen: ${taken}\nadmin: 127.0.0.1:${await freePort()}\nupstreams: {api: {url: "${upstream}"}}`;
  const diagnosis = await diagnose(config);
  expect(faults(diagnosis, 'addresses')).toMatchObject([
    { status: 'problem', place: `listen (${taken})`, remedy: expect.stringContaining('ss -ltnp') as string },
  ]);
});

test('reports another program at the admin address', async () => {
  const upstream = await startUpstream();
  const diagnosis = await diagnose(
    `admin: ${new URL(upstream).host}\nlisten: 127.0.0.1:0\nupstreams: {api: {url: "${upstream}"}}`,
  );
  expect(faults(diagnosis, 'running')).toMatchObject([{ status: 'problem' }]);
});

test('queries the Tidegate that runs: its version, its reloads, its upstreams and their endpoints', async () => {
  const upstream = await startUpstream();
  const token = 'token-of-the-admin-port';
  const gate = await startTidegate(`
admin: {listen: 127.0.0.1:0, token: ${token}}
upstreams: {api: {url: "${upstream}"}}
`);
  const { host } = new URL(gate.adminUrl ?? '');
  const file = writeConfigFile(`
listen: ${new URL(gate.url).host}
admin: {listen: "${host}", token: ${token}}
upstreams: {api: {url: "${upstream}"}}
`);
  const first = await diagnoseFile(file);
  expect(faults(first, 'addresses')).toEqual([]);
  expect(faults(first, 'running')).toMatchObject([
    { status: 'warning', place: host, meaning: 'version test runs, and 1.2.3 is installed' },
  ]);
  const blocked = await fetch(`http://${host}/api/upstreams/api/block`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
  });
  expect(blocked.status).toBe(200);
  const second = await diagnoseFile(file);
  expect(faults(second, 'running')).toMatchObject([
    {},
    { status: 'warning', place: `${host} upstream api`, meaning: expect.stringContaining('operator') as string },
  ]);
  expect(second.text).not.toContain(token);
});

test('warns if the Tidegate that runs requires another token', async () => {
  const token = 'token-of-the-admin-port';
  const port = await freePort();
  const upstream = await startUpstream();
  const yaml = `
admin: {listen: "0.0.0.0:${port}", token: ${token}}
upstreams: {api: {url: "${upstream}"}}
`;
  await startTidegate(yaml);
  const accepted = await diagnose(`listen: 127.0.0.1:0\n${yaml}`);
  expect(accepted.findings).toContainEqual(expect.objectContaining({ check: 'running', status: 'ok' }));
  const rejected = await diagnose(`listen: 127.0.0.1:0\n${yaml}`, { token: 'another-token-entirely' });
  expect(faults(rejected, 'running')).toMatchObject([
    { status: 'warning', remedy: 'Set TIDEGATE_ADMIN_TOKEN to its admin.token.' },
  ]);
  expect(rejected.text).not.toMatch(/token-of|another-token/);
});

test('takes no Tidegate for another program, if the admin port is disabled, hangs or may not be used', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`admin: false\nupstreams: {api: {url: "${upstream}"}}`);
  const { host } = new URL(gate.url);
  const inUse = {
    ...{ check: 'addresses', status: 'warning', place: `listen (${host})` },
    meaning: expect.stringMatching(/^in use, and it is not known whether a Tidegate runs/) as string,
    remedy: expect.stringContaining('ss -ltnp') as string,
  };
  const disabled = await diagnose(`admin: false\nlisten: ${host}\nupstreams: {api: {url: "${upstream}"}}`);
  expect([disabled.exitCode, faults(disabled, 'addresses')]).toEqual([0, [inUse]]);
  const silent = await listen({ port: 0, host: '127.0.0.1' });
  const hung = await diagnose(`admin: 127.0.0.1:${silent}\nlisten: ${host}\nupstreams: {api: {url: "${upstream}"}}`);
  expect(hung.exitCode).toBe(0);
  expect(faults(hung, 'addresses')).toEqual([inUse, { ...inUse, place: `admin (127.0.0.1:${silent})` }]);
  expect(faults(hung, 'running')).toMatchObject([
    { status: 'warning', meaning: expect.stringMatching(/^there is no response/) as string },
  ]);
});

test('checks each address while a Tidegate runs, too', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream}"}}`);
  const { host } = new URL(gate.adminUrl ?? '');
  const file = join(dirname(writeConfigFile('')), 'file');
  writeFileSync(file, '');
  const diagnosis = await diagnose(
    `admin: ${host}\nlisten: 192.0.2.1:8080\ntelemetry: "unix:${file}"\nupstreams: {api: {url: "${upstream}"}}`,
  );
  expect(diagnosis.findings.filter(({ check }) => check === 'addresses')).toMatchObject([
    { status: 'problem', place: 'listen (192.0.2.1:8080)', meaning: 'not an address of this machine' },
    { status: 'ok', place: `admin (${host})`, meaning: 'in use, while a Tidegate runs' },
    { status: 'problem', meaning: 'a file that is no socket is there, so the start would fail' },
  ]);
});

test('distinguishes a Unix socket that is used from one that a killed process has left', async () => {
  const folder = dirname(writeConfigFile(''));
  const used = join(folder, 'used.sock');
  await listen({ path: used });
  const stale = join(folder, 'stale.sock');
  const program =
    'import { createServer } from "node:net"; createServer().listen(process.argv[1], () => process.kill(process.pid, "SIGKILL"));';
  spawnSync(process.execPath, ['--input-type=module', '-e', program, stale]);
  expect(readdirSync(folder)).toContain('stale.sock');
  const yaml = `upstreams: {api: {url: "${await startUpstream()}"}}\nadmin: 127.0.0.1:${await freePort()}`;
  const { findings } = await diagnose(`${yaml}\nlisten: unix:${stale}\ntelemetry: "unix:${used}"`);
  expect(findings.filter(({ check }) => check === 'addresses')).toMatchObject([
    { status: 'ok', place: `listen (unix:${stale})`, meaning: 'free' },
    { status: 'ok', meaning: 'free' },
    { status: 'problem', place: `telemetry (unix:${used})`, remedy: expect.stringContaining('ss -lxp') as string },
  ]);
});

test('sends the token of the configuration only where it is required', async () => {
  const other = await startHttpUpstream((_, response) => void response.end('{}'));
  const { port } = new URL(other.url);
  const token = 'token-of-the-admin-port';
  const yaml = `listen: 127.0.0.1:0\nadmin: {listen: "0.0.0.0:${port}", token: ${token}}`;
  await diagnose(`${yaml}\nupstreams: {api: {url: "${await startUpstream()}"}}`);
  expect(other.hits.map(({ target }) => target)).toEqual(['/api/status', '/api/status']);
  expect(JSON.stringify(other.hits)).not.toContain(token);
});

test.each([
  { config: {}, store: {}, version: '9', upstreams: [null] },
  { config: {}, store: {}, version: '9', upstreams: [{ name: 'api' }] },
  { config: {}, store: {}, version: '9', upstreams: [{ name: 'api', endpoints: [7] }] },
])('reports a status of another form: %j', async (status) => {
  const other = await startHttpUpstream((_, response) => void response.end(JSON.stringify(status)));
  const yaml = `listen: 127.0.0.1:0\nadmin: ${new URL(other.url).host}`;
  const diagnosis = await diagnose(`${yaml}\nupstreams: {api: {url: "${await startUpstream()}"}}`);
  expect(faults(diagnosis, 'running')).toMatchObject([
    { status: 'problem', meaning: 'what answers there is not the admin port of this version of Tidegate' },
  ]);
});

test('queries no admin port that an invalid configuration does not give', async () => {
  const invalid = await diagnose('upstreams: {}');
  expect(invalid.findings).toContainEqual(
    expect.objectContaining({ check: 'running', status: 'skipped', place: 'admin' }),
  );
  const disabled = await diagnose('upstreams: {}', { admin: 'false' });
  expect(disabled.findings).toContainEqual(
    expect.objectContaining({ check: 'running', status: 'skipped', place: 'admin' }),
  );
});

test('ignores an Age that is no number of seconds', async () => {
  const upstream = await startHttpUpstream((_, response) => void response.setHeader('age', '1e306').end());
  const diagnosis = await diagnose(`upstreams: {api: {url: "${upstream.url}"}}`);
  expect([diagnosis.exitCode, faults(diagnosis, 'clock')]).toEqual([0, []]);
});

test('reports a state file that is a loop of links', async () => {
  const file = join(dirname(writeConfigFile('')), 'state.db');
  symlinkSync(file, file);
  const diagnosis = await diagnose(
    `upstreams: {api: {url: "${await startUpstream()}"}}\nstate: {store: sqlite, file: ${file}}`,
  );
  expect(faults(diagnosis, 'state')).toMatchObject([{ status: 'problem' }]);
});

test('shows the reference of a url that comes from a variable, not its value', async () => {
  const { text } = await diagnose(`upstreams: {api: {url: "\${URL_OF_API}"}}`, {
    env: { URL_OF_API: `http://127.0.0.1:${await freePort()}` },
  });
  expect(text).toContain(`no connection to \${URL_OF_API}: connection refused`);
});

test('leaves nothing in the folder of the state file', async () => {
  const file = writeConfigFile('');
  const folder = dirname(file);
  writeFileSync(
    file,
    `listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nupstreams: {api: {url: "${await startUpstream()}"}}\nstate: {store: sqlite, file: ${join(folder, 'state.db')}}\n`,
  );
  const { findings } = await diagnoseFile(file);
  expect(findings).toContainEqual(
    expect.objectContaining({ check: 'state', status: 'ok', meaning: expect.stringMatching(/^writable, /) as string }),
  );
  expect(readdirSync(folder)).toEqual(['tidegate.yaml']);
});
