/** The two forms of `config`, what the chart adds to it, and what it refuses in it. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { one, podOf, tidegateIn } from '../../support/kubernetes/objects.ts';
import type { KubernetesObject } from '../../support/kubernetes/render.ts';
import { renderValueSet } from '../../support/kubernetes/render.ts';
import { makeFolder } from '../../support/redis/redis-process.ts';

const render = (...args: readonly string[]) => renderValueSet('gateway', 'tidegate', ...args);

function textOf(objects: readonly KubernetesObject[]): string {
  return one(objects, 'ConfigMap', 'tidegate').data?.['tidegate.yaml'] ?? '';
}

function configOf(...args: readonly string[]): Readonly<Record<string, unknown>> {
  return parse(textOf(render(...args))) as Readonly<Record<string, unknown>>;
}

/** Renders with a text as `config`, and without Redis. */
function renderText(text: string, ...args: readonly string[]): KubernetesObject[] {
  const file = join(makeFolder(), 'tidegate.yaml');
  writeFileSync(file, text);
  const single = '--set=redis.enabled=false,autoscaling.enabled=false,replicaCount=1';
  return render(`--set-file=config=${file}`, single, ...args);
}

describe('as a text', () => {
  const TEXT = `  # Indented, and with classes whose order counts.
  listen: "[::]:8443"
  telemetry: 0.0.0.0:9465
  drain: {timeout: 50s}
  upstreams: {payments: {url: "https://payments.example.com"}}
  clients:
    classes:
      reports: {match: {key: [reports]}, allow: 5/s}
      all: {match: {key: ["*"]}}
    names: {on: [reports], another: ["*"]}
`;

  test('becomes tidegate.yaml unchanged, with the order of its maps', () => {
    expect(textOf(renderText(TEXT))).toBe(TEXT);
  });

  test('gives the ports and the grace period', () => {
    const pod = podOf(one(renderText(TEXT), 'Deployment', 'tidegate'));
    expect(tidegateIn(pod).ports).toEqual([
      { name: 'http', containerPort: 8443 },
      { name: 'telemetry', containerPort: 9465 },
    ]);
    // preStop 5 s, Tidegate's own delay of 5 s, timeout 50 s, and 10 s to spare.
    expect(pod.terminationGracePeriodSeconds).toBe(70);
  });

  test.each([
    ['no YAML', 'upstreams: [', 'config: the text is not valid YAML'],
    ['no upstreams', 'telemetry: 0.0.0.0:9464\n', 'config.upstreams: there is none'],
    [
      'the address that Tidegate listens on by default',
      TEXT.replace(/ {2}listen.*\n/, ''),
      'config.listen: only the pod',
    ],
    ['no telemetry', TEXT.replace(/ {2}telemetry.*\n/, ''), 'config.telemetry: probes and the Service need host:port'],
  ])('is refused if it has %s', (_, text, message) => {
    expect(() => renderText(text)).toThrow(message);
  });

  test('is refused without `state` if the chart runs Redis', () => {
    expect(() => renderText(TEXT, '--set=redis.enabled=true')).toThrow('config.state to {store: redis, url:');
  });
});

describe('as a map, helm refuses', () => {
  const classes = (...names: readonly string[]) =>
    `--set-json=config.clients.classes=${JSON.stringify(Object.fromEntries(names.map((name) => [name, { match: { key: ['*'] } }])))}`;

  test.each([
    ['two classes, whose order is lost', [classes('reports', 'all')], 'config.clients.classes: the first match'],
    [
      'two names, whose order is lost',
      ['--set-json=config.clients.names={"b": ["a"], "a": ["*"]}'],
      'config.clients.names: the first match',
    ],
    [
      'a name that helm has read as a boolean',
      [classes('true')],
      'config.clients.classes: the name of an entry is true',
    ],
    [
      'an upstream whose name helm has read as a boolean',
      ['--set-json=config.upstreams={"false": {"url": "https://a.example.com"}}'],
      'config.upstreams: the name of an entry is false',
    ],
  ])('%s', (_, args, message) => {
    expect(() => render(...args)).toThrow(message);
  });
});

test.each(['127.0.0.1:8080', '127.1.2.3:8080', 'localhost:8080', '[::1]:8080'])(
  'refuses to receive requests or probes on %s, which only the pod reaches',
  (address) => {
    expect(() => render(`--set=config.listen=${address}`)).toThrow('config.listen: only the pod itself can connect');
    expect(() => render(`--set-json=config.listen={"address": "${address}"}`)).toThrow('config.listen: only the pod');
    expect(() => render(`--set=config.telemetry=${address}`)).toThrow('config.telemetry: only the pod');
    expect(() => renderValueSet('sidecar', 'checkout', `--set=config.telemetry=${address}`)).toThrow(
      'config.telemetry',
    );
    expect(renderValueSet('sidecar', 'checkout', `--set=config.listen=${address}`)).not.toEqual([]);
  },
);

test.each(['0.0.0.0:0', '0.0.0.0:65536', '0.0.0.0:99999'])('refuses the port of %s', (address) => {
  expect(() => render(`--set=config.telemetry=${address}`)).toThrow('a port from 1 to 65535');
});

describe('a key of config', () => {
  test('replaces the value that the chart has for it, and in a map the same key', () => {
    expect(configOf('--set=config.drain.timeout=10s')['drain']).toEqual({ delay: '5s', timeout: '10s' });
    expect(configOf('--set=config.drain.delay=0')['drain']).toEqual({ delay: 0, timeout: '25s' });
    expect(configOf('--set=config.admin=false')['admin']).toBe(false);
    expect(
      configOf('--set=config.state.store=redis,config.state.url=redis://tidegate-redis:6379,config.state.maxKeys=5')[
        'state'
      ],
    ).toEqual({
      store: 'redis',
      url: 'redis://tidegate-redis:6379',
      username: 'tidegate',
      password: '${file:/run/secrets/tidegate/redis-password}', // oxlint-disable-line eslint/no-template-curly-in-string -- as a config has it
      maxKeys: 5,
    });
  });

  test('leaves a sidecar without a delay that would hold up its pod', () => {
    const text = textOf(renderValueSet('sidecar', 'checkout', '--set-json=config.drain={"timeout": "75s"}'));
    expect(parse(text)).toMatchObject({ drain: { delay: 0, timeout: '75s' }, limits: { replayMemory: '16MiB' } });
  });

  test('keeps large integers, words of YAML 1.1 and references as they are', () => {
    const { clients, limits } = configOf(
      '--set=config.clients.maxTracked=9876543',
      '--set=config.limits.connections=1000000',
      '--set-string=config.clients.classes.yes.match.key[0]=off',
    );
    expect(limits).toEqual({ connections: 1_000_000 });
    expect(clients).toMatchObject({ maxTracked: 9_876_543, classes: { yes: { match: { key: ['off'] } } } });
  });
});

describe('pods are replaced', () => {
  const templateOf = (...args: readonly string[]) => one(render(...args), 'Deployment', 'tidegate').spec?.template;

  test.each(['config.upstreams.payments.timeout=20s', 'config.log.level=warn', 'commonLabels.team=a'])(
    'not for %s, which running pods apply, or which is not theirs',
    (argument) => {
      expect(templateOf(`--set=${argument}`)).toEqual(templateOf());
    },
  );

  test.each([
    'config.drain.timeout=30s',
    'config.limits.connections=500',
    'config.log.format=text',
    'config.upstreams.practice.url=practice',
  ])('for %s, which they cannot apply', (argument) => {
    const checksumOf = (...args: readonly string[]) =>
      templateOf(...args)?.metadata?.annotations?.['tidegate/restart-checksum'];
    expect(checksumOf(`--set=${argument}`)).not.toBe(checksumOf());
  });

  test('for the first upstream with url practice, and for no other', () => {
    const first = '--set=config.upstreams.first.url=practice';
    expect(templateOf(first, '--set=config.upstreams.second.url=practice')).toEqual(templateOf(first));
  });
});

describe('state', () => {
  const single = 'autoscaling.enabled=false,replicaCount=1,redis.enabled=false';

  test.each([
    ['that replicas of an autoscaler do not share', 'redis.enabled=false', 'config.state: with the store memory, each'],
    [
      'that a fixed number of replicas does not share',
      'redis.enabled=false,autoscaling.enabled=false',
      'config.state: with the store memory, each replica',
    ],
    [
      'of a database that replicas do not share',
      'redis.enabled=false,config.state.store=sqlite,config.state.file=/var/lib/tidegate/state.db',
      'config.state: with the store sqlite, each replica',
    ],
    [
      'in a database on no volume',
      `${single},config.state.store=sqlite,config.state.file=/var/lib/tidegate/state.db`,
      'config.state.file: /var/lib/tidegate/state.db is on no volume',
    ],
    [
      'in a file on no volume',
      `${single},config.state.store=memory,config.state.file=/data/state.json`,
      'config.state.file: /data/state.json is on no volume',
    ],
    [
      'in a Redis whose name begins with that of the chart',
      'config.state.store=redis,config.state.url=redis://tidegate-redis-old:6379',
      'config.state: it does not use the Redis of the chart',
    ],
    [
      'at another port of Redis',
      'config.state.store=redis,config.state.url=redis://tidegate-redis:6380',
      'config.state: it does not use',
    ],
    [
      'by another scheme',
      'config.state.store=redis,config.state.url=rediss://tidegate-redis:6379',
      'config.state: it does not use',
    ],
  ])('%s is refused', (_, values, message) => {
    expect(() => render(`--set=${values}`)).toThrow(message);
  });

  test.each([
    ['of one pod', single],
    ['of no pod', 'autoscaling.enabled=false,replicaCount=0,redis.enabled=false'],
    ['in a file on a volume of one’s own', `${single},config.state.store=memory,config.state.file=/data/state.json`],
    [
      'in another database of the chart’s Redis',
      'config.state.store=redis,config.state.url=redis://tidegate-redis:6379/2',
    ],
  ])('%s is accepted', (_, values) => {
    const volume = [
      '--set-json=extraVolumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]',
      '--set-json=extraVolumeMounts=[{"name": "data", "mountPath": "/data"}]',
    ];
    expect(one(render(`--set=${values}`, ...volume), 'Deployment', 'tidegate')).toBeDefined();
  });
});
