/** How values of the chart take effect, and which ones helm refuses. */
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { checkTypes } from '../../support/kubernetes/check-types.ts';
import type { Workload } from '../../support/kubernetes/objects.ts';
import { all, one, podOf, tidegateIn } from '../../support/kubernetes/objects.ts';
import { patchOf } from '../../support/kubernetes/releases.ts';
import {
  CHART,
  helm,
  parseObjects,
  patchCheckout,
  renderValueSet,
  valuesFile,
} from '../../support/kubernetes/render.ts';
import { makeFolder } from '../../support/redis/redis-process.ts';

const render = (...args: readonly string[]) => renderValueSet('gateway', 'tidegate', ...args);

describe('helm refuses', () => {
  test.each([
    ['a misspelt value', '--set=image.tagg=1', "at '/image': additional properties 'tagg' not allowed"],
    ['a misspelt group', '--set=imge.tag=1', "at '': additional properties 'imge' not allowed"],
    ['an unknown mode', '--set=mode=gatway', "value must be one of 'gateway', 'ingress-helper', 'sidecar'"],
    [
      'a misspelt key of an upstream',
      '--set=config.upstreams.payments.timout=5s',
      "additional properties 'timout' not allowed",
    ],
    [
      'a misspelt key of the configuration',
      '--set=config.limts.connections=5',
      "additional properties 'limts' not allowed",
    ],
    ['a number for a duration', '--set=config.drain.delay=5', "at '/config/drain/delay'"],
    ['no image', '--set=image.repository=', 'image.repository: no image of Tidegate is published'],
    [
      'an unknown alert',
      '--set=prometheusRule.enabled=true,prometheusRule.disabledAlerts={TidegateTrottled}',
      'prometheusRule.disabledAlerts: there is no alert TidegateTrottled; the alerts are TidegateRetryAmplification,',
    ],
    ['no upstream', '--set-json=config={}', 'config.upstreams: there is none'],
    ['no configuration', '--set=config=null', 'config.upstreams: there is none'],
    [
      'a socket file',
      '--set=config.listen=unix:/run/t.sock',
      'config.listen: probes and the Service need host:port here',
    ],
    [
      'a volume for several replicas',
      '--set=persistence.enabled=true',
      'persistence.enabled: one process uses a volume',
    ],
    [
      'another Redis beside that of the chart',
      '--set-json=config.state={"store": "redis", "url": "redis://other:6379"}',
      'config.state: it does not use the Redis of the chart',
    ],
    [
      'a drain whose time is only known in the pod',
      // oxlint-disable-next-line eslint/no-template-curly-in-string -- written as a config has it
      '--set=config.drain.timeout=${DRAIN}',
      'set terminationGracePeriodSeconds',
    ],
  ])('%s, with a message that names it', (_, argument, message) => {
    expect(() => render(argument)).toThrow(message);
  });
});

describe('the grace period', () => {
  test.each([
    ['--set=config.drain.delay=0', 40],
    ['--set=config.drain.timeout=1500ms', 22],
    ['--set=config.drain.timeout=2m', 140],
    ['--set=preStopSeconds=8', 48],
    ['--set=terminationGracePeriodSeconds=70', 70],
  ])('follows from %s', (argument, seconds) => {
    expect(podOf(one(render(argument), 'Deployment', 'tidegate')).terminationGracePeriodSeconds).toBe(seconds);
  });
});

test('two releases of one namespace share no name, and each finds its own Redis', () => {
  const release = (name: string) =>
    parseObjects(helm('template', name, CHART, '--values', join(CHART, 'ci/gateway-values.yaml')));
  const [first, second] = [release('payments'), release('reports')];
  const names = [...first, ...second].map(({ kind, metadata }) => `${kind} ${metadata.name}`);
  expect(new Set(names).size).toBe(names.length);
  expect(one(first, 'ConfigMap', 'payments-tidegate').data?.['tidegate.yaml']).toContain(
    'url: redis://payments-tidegate-redis:6379',
  );
});

test('mounts only a Secret that the configuration refers to, by its own name if it has one', () => {
  const volumesOf = (...args: readonly string[]) => podOf(one(render(...args), 'Deployment', 'tidegate')).volumes ?? [];
  expect(volumesOf('--set=existingSecret=payments')).toContainEqual({
    name: 'secrets',
    secret: { secretName: 'payments', defaultMode: 0o440 },
  });
  const without = volumesOf(
    '--set=redis.enabled=false,autoscaling.enabled=false,replicaCount=1',
    '--set=config.admin=false,config.secret=0123456789abcdef',
  );
  expect(without.map(({ name }) => name)).toEqual(['config', 'tmp']);
});

test('lets a sidecar read a Secret, whose pod may have no fsGroup', () => {
  const reference = '${file:/run/secrets/tidegate/hash}'; // oxlint-disable-line eslint/no-template-curly-in-string -- as a config has it
  const objects = renderValueSet('sidecar', 'checkout', `--set=config.secret=${reference}`);
  const pod = podOf(patchCheckout(patchOf(objects)) as Workload);
  expect(pod.volumes).toContainEqual({
    name: 'tidegate-secrets',
    secret: { secretName: 'tidegate', defaultMode: 0o444 },
  });
});

test('names in its notes the Secrets that the pods wait for, and a Redis that the policy keeps away', () => {
  const notes = (set: string, ...args: readonly string[]) =>
    helm('install', 'tidegate', CHART, '--dry-run=client', '--values', valuesFile(set), ...args).split('NOTES:')[1];
  expect(notes('gateway')).toContain('the Secret tidegate has these keys: admin-token, client-hash, redis-password.');
  expect(notes('gateway')).toContain('the Secret tidegate-redis has the key users.acl');
  const policy = 'The NetworkPolicy does not allow connections to your Redis.';
  expect(notes('external-redis')).not.toContain(policy);
  expect(notes('external-redis', '--set-json=networkPolicy.extraEgress=[]')).toContain(policy);
  expect(notes('sidecar')).toContain('kubectl -n default patch deployment NAME --patch-file tidegate-patch.yaml');
});

test('renders the least values of its README', () => {
  const [, values = ''] = /```yaml\n# my-values.yaml\n(.*?)```/s.exec(helm('show', 'readme', CHART)) ?? [];
  const file = join(makeFolder(), 'my-values.yaml');
  writeFileSync(file, values);
  const objects = parseObjects(helm('template', 'tidegate', CHART, '--values', file));
  expect(tidegateIn(podOf(one(objects, 'Deployment', 'tidegate'))).image).toMatch(/^registry\.example\.com\/tidegate:/);
});

test('adds the sidecar to the Deployment of a chart that depends on it', () => {
  const folder = makeFolder();
  mkdirSync(join(folder, 'templates'));
  cpSync(CHART, join(folder, 'charts/tidegate'), { recursive: true });
  writeFileSync(join(folder, 'Chart.yaml'), 'apiVersion: v2\nname: checkout\nversion: 1.0.0\n');
  writeFileSync(
    join(folder, 'values.yaml'),
    `tidegate:
  mode: sidecar
  image: {repository: registry.example.com/tidegate}
  config: {upstreams: {stripe: {provider: stripe}}}
`,
  );
  const snippet = /```yaml\n( {2}template:.*?)```/s.exec(helm('show', 'readme', CHART))?.[1] ?? '';
  writeFileSync(
    join(folder, 'templates/deployment.yaml'),
    `apiVersion: apps/v1
kind: Deployment
metadata: {name: checkout}
spec:
  selector: {matchLabels: {tidegate/sidecar: shop-tidegate}}
${snippet}      containers: [{name: checkout, image: checkout}]
`,
  );
  const objects = parseObjects(helm('template', 'shop', folder));
  const pod = podOf(one(objects, 'Deployment', 'checkout'));
  expect(checkTypes(objects)).toEqual(new Map());
  const image: unknown = expect.stringMatching(/^registry\.example\.com\/tidegate:\d+\.\d+\.\d+$/);
  expect(tidegateIn(pod)).toMatchObject({ restartPolicy: 'Always', image });
  const [config] = all(objects, 'ConfigMap').filter(({ data }) => data?.['tidegate.yaml'] !== undefined);
  expect(pod.volumes?.[0]).toEqual({ name: 'tidegate-config', configMap: { name: config?.metadata?.name } });
});
