/** The settings of docker/compose.yaml agree with the configurations that it mounts. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { formatMistakes, formatWarnings } from '../../../src/config/load/mistakes.ts';
import { upstreamOrigins } from '../../../src/config/schema/upstream-schema.ts';
import { startProcess } from '../../support/proxy/process.ts';
import { send } from '../../support/clients/send.ts';
import { builtProgram } from '../../support/programs/built-program.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

const DOCKER = join(import.meta.dirname, '../../../docker');

const Service = z.object({
  command: z.array(z.string()).default([]),
  healthcheck: z.object({ test: z.array(z.string()) }).optional(),
  networks: z.array(z.string()),
  ports: z.array(z.string()).default([]),
  secrets: z.array(z.string()).default([]),
  depends_on: z.unknown().optional(),
  stop_grace_period: z.string().optional(),
  volumes: z.array(z.string()).default([]),
});

const {
  services,
  secrets,
  volumes: volumesOfFile,
} = z
  .object({
    services: z.record(z.string(), Service),
    secrets: z.record(z.string(), z.object({ file: z.string() })),
    volumes: z.record(z.string(), z.unknown()),
  })
  .parse(parse(readFileSync(join(DOCKER, 'compose.yaml'), 'utf8'), { merge: true }));

const REPLICATED = ['tidegate', 'tidegate-1', 'tidegate-2'];
const gateways = [...REPLICATED, 'deliveries'].map((name) => ({ name, ...configOf(name) }));

const made = mkdtempSync(join(tmpdir(), 'tidegate-secrets-'));
afterAll(() => rmSync(made, { recursive: true }));

describe.each(gateways)('$name', ({ name, config, warnings }) => {
  test('is configured without errors or warnings', () => {
    expect(warnings).toBe('');
  });

  test('has a stop grace period longer than its drain', () => {
    const [, grace] = /^(\d+)s$/.exec(service(name).stop_grace_period ?? '') ?? [];
    // After the drain: time for the last log lines, and a margin.
    expect(Number(grace)).toBeGreaterThanOrEqual((config.drain.delay + config.drain.timeout) / 1000 + 2 + 5);
  });

  test('publishes the ports that it listens on', () => {
    const inside = service(name).ports.map((port) => Number(port.split(':').at(-1)));
    const listens = [config.listen.address, ...(config.admin ? [config.admin.listen] : [])];
    const open = listens.flatMap((address) =>
      address.kind === 'tcp' && address.host === '0.0.0.0' ? address.port : [],
    );
    expect(inside).toEqual(open);
  });

  test('finds its upstreams, and is found by Prometheus', () => {
    const origins = Object.values(config.upstreams)
      .flatMap(upstreamOrigins)
      .map((origin) => new URL(origin));
    expect(origins.map(({ hostname }) => hostname)).toEqual(
      REPLICATED.includes(name) ? ['payments', 'accounts'] : ['shop'],
    );
    for (const { hostname, port } of origins) {
      expect(service(hostname).command).toContain(`0.0.0.0:${port}`);
      expect(service(hostname).networks.filter((network) => service(name).networks.includes(network))).not.toEqual([]);
    }
    const prometheus = readFileSync(join(DOCKER, 'prometheus/prometheus.yml'), 'utf8');
    expect(prometheus).toMatch(new RegExp(`\\b${name}\\b`));
    expect(config.telemetry).toEqual({ kind: 'tcp', host: '0.0.0.0', port: 9464 });
    expect(prometheus).toContain('tidegate:9464');
  });
});

test('replicas are configured as the gateway, except for sharing and the admin API', () => {
  const replicated = gateways.filter(({ name }) => REPLICATED.includes(name));
  const [gateway, ...replicas] = replicated.map(({ config }) => config);
  for (const replica of replicas) {
    expect(replica.state).toMatchObject({ store: 'redis', username: 'tidegate' });
    expect({ ...replica, state: undefined, secret: undefined, admin: undefined }).toEqual({
      ...gateway,
      state: undefined,
      secret: undefined,
      admin: undefined,
    });
  }
});

test('creates secrets once, and every mounted file', () => {
  makeSecrets();
  const before = readFileSync(join(made, 'redis-password'), 'utf8');
  makeSecrets();
  expect(readFileSync(join(made, 'redis-password'), 'utf8')).toBe(before);
  expect(before).toMatch(/^[0-9a-f]{64}$/);
  const mounted = Object.values(secrets).map(({ file }) => join(made, file.replace('./secrets/', '')));
  expect(mounted.filter((file) => !existsSync(file))).toEqual([]);
  // Containers read the files as users of their own; the folder keeps other users of the host out.
  expect(statSync(made).mode & 0o777).toBe(0o700);
  expect(statSync(join(made, 'redis-users.acl')).mode & 0o777).toBe(0o644);
});

test('deliveries are kept in a volume, and their service does not wait for the shop', () => {
  const [config] = gateways.flatMap((each) => (each.name === 'deliveries' ? [each.config] : []));
  expect(config?.state).toMatchObject({ store: 'sqlite', durability: 'full' });
  const file = config?.state.store === 'sqlite' ? config.state.file : '';
  const { volumes, depends_on: awaited } = service('deliveries');
  const mounts = volumes.map((volume) => volume.split(':'));
  const mount = mounts.find(([, target]) => file.startsWith(`${target}/`));
  expect(mount?.slice(1)).toEqual(['/var/lib/tidegate']); // not read-only
  expect(Object.keys(volumesOfFile)).toContain(mount?.[0]);
  expect(awaited).toBeUndefined();
});

test.each(['payments', 'accounts', 'shop'])('%s runs a practice upstream, whose health check passes', async (name) => {
  const { command, healthcheck } = service(name);
  const spec = join(DOCKER, 'practice', (command.at(-1) ?? '').replace('/etc/practice/', ''));
  const practice = startProcess(['--listen', '127.0.0.1:0', '--spec', spec], {
    script: builtProgram('practice'),
  });
  let startupOutput = '';
  practice.child.stdout.on('data', (chunk: Buffer) => (startupOutput += chunk.toString()));
  const url =
    (await eventually(
      () => /on (http:\S+)/.exec(startupOutput)?.[1],
      (found) => found !== undefined,
    )) ?? '';
  const { port } = new URL(url);
  // A practice upstream may fail occasionally.
  expect([200, 503]).toContain((await send(url, '/')).status);

  const [kind, program, flag, script = ''] = healthcheck?.test ?? [];
  expect([kind, program, flag]).toEqual(['CMD', 'node', '-e']);
  const check = (at: string) =>
    execFileSync(process.execPath, ['-e', script.replaceAll('8081', at)], { stdio: 'ignore' });
  expect(() => check(port)).not.toThrow();
  practice.child.kill('SIGKILL');
  await practice.ended;
  expect(() => check(port)).toThrow('Command failed');
});

function service(name: string): z.output<typeof Service> {
  const found = services[name];
  if (found === undefined) throw new Error(`no service ${name}`);
  return found;
}

/** The configuration as Tidegate reads it in the container, with its mounted secrets. */
function configOf(name: string) {
  const { command, volumes, secrets: given } = service(name);
  const file = command.at(-1) ?? '';
  const text = readFileSync(join(DOCKER, inFolder(file, volumes)), 'utf8');
  const readFile = (path: string): string => {
    const secret = given.find((each) => path === `/run/secrets/${each}`);
    if (secret === undefined) throw new Error(`${path}: no such file`);
    return 'f'.repeat(64);
  };
  const loaded = loadConfig(text, file, { env: {}, readFile });
  if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
  return { config: loaded.config, warnings: formatWarnings(loaded.warnings) };
}

/** Where a path of a container lies in the folder of the compose file. */
function inFolder(path: string, volumes: readonly string[]): string {
  for (const volume of volumes) {
    const [source = '', target = ''] = volume.split(':');
    if (path.startsWith(`${target}/`)) return join(source, path.slice(target.length));
  }
  throw new Error(`${path} is not mounted`);
}

function makeSecrets(): void {
  execFileSync('sh', [join(DOCKER, 'make-secrets.sh'), made]);
}
