/** How objects of the chart depend on values: names, labels, Services, volumes, and what an upgrade may not change. */
import { describe, expect, test } from 'vitest';
import { checkTypes } from '../../support/kubernetes/check-types.ts';
import { all, labelsOf, one, podOf, tidegateIn } from '../../support/kubernetes/objects.ts';
import { CHART, helm, parseObjects, renderValueSet, valuesFile } from '../../support/kubernetes/render.ts';

const render = (...args: readonly string[]) => renderValueSet('gateway', 'tidegate', ...args);

/** Renders a release of that name with the values of the gateway. */
function renderRelease(name: string, ...args: readonly string[]) {
  return parseObjects(helm('template', name, CHART, '--values', valuesFile('gateway'), ...args));
}

describe('names', () => {
  test.each([46, 47, 52, 53])('of a release with %d characters leave room for the label of Redis’s pods', (length) => {
    const redis = all(renderRelease('r'.repeat(length)), 'StatefulSet')[0];
    // Kubernetes' label controller-revision-hash: the name, a hyphen and a hash of ten characters.
    expect(`${redis?.metadata?.name}-0123456789`.length).toBeLessThanOrEqual(63);
    expect(redis?.spec?.serviceName).toBe(redis?.metadata?.name);
  });

  test('of digits stay strings in labels and selectors', () => {
    const objects = renderRelease('123', '--set=fullnameOverride=payments');
    expect(checkTypes(objects)).toEqual(new Map());
    expect(one(objects, 'Deployment', 'payments').spec?.selector.matchLabels).toMatchObject({
      'app.kubernetes.io/instance': '123',
    });
  });

  test.each(['123', 'a.b'])('that no Service may have are refused: %s', (name) => {
    expect(() => renderRelease(name)).toThrow(`fullnameOverride: ${name}-tidegate cannot be the name of a Service`);
  });
});

test('gives each label once: that of the chart, else that of the object, else that of all objects', () => {
  const text = helm(
    'template',
    'tidegate',
    CHART,
    '--values',
    valuesFile('monitoring'),
    '--set=commonLabels.release=common,commonLabels.app\\.kubernetes\\.io/name=mine,commonLabels.tier=common',
    '--set=podLabels.app\\.kubernetes\\.io/component=mine,podLabels.tier=pod',
    '--set=podAnnotations.tidegate/restart-checksum=mine',
  );
  // The parser fails for a key that stands twice.
  const objects = parseObjects(text);
  for (const { metadata } of objects) {
    expect(metadata).toMatchObject({ labels: { 'app.kubernetes.io/name': 'tidegate', tier: 'common' } });
  }
  expect(one(objects, 'ServiceMonitor', 'tidegate').metadata?.labels?.['release']).toBe('kube-prometheus-stack');
  const deployment = one(objects, 'Deployment', 'tidegate');
  expect(labelsOf(deployment)).toMatchObject({ 'app.kubernetes.io/component': 'gateway', tier: 'pod' });
  expect(deployment.spec?.template.metadata?.annotations?.['tidegate/restart-checksum']).toMatch(/^[0-9a-f]{64}$/);
});

test('accepts null in place of labels', () => {
  const values = ['commonLabels', 'podLabels', 'podAnnotations', 'monitor.labels']
    .map((name) => `${name}=null`)
    .join(',');
  const deployment = one(render(`--set=${values}`), 'Deployment', 'tidegate');
  expect(deployment.spec?.template).toEqual(one(render(), 'Deployment', 'tidegate').spec?.template);
});

test('gives the series of each release a job of their own', () => {
  const jobOf = (set: string, namespace: string) => {
    const objects = renderValueSet(set, namespace);
    const endpoints = [
      ...all(objects, 'ServiceMonitor').flatMap(({ spec }) => spec.endpoints ?? []),
      ...all(objects, 'PodMonitor').flatMap(({ spec }) => spec.podMetricsEndpoints ?? []),
    ];
    return endpoints.flatMap(({ relabelings = [] }) => relabelings);
  };
  expect(jobOf('gateway', 'shop')).toEqual([{ targetLabel: 'job', replacement: 'shop/tidegate' }]);
  expect(jobOf('gateway', 'tickets')).toEqual([{ targetLabel: 'job', replacement: 'tickets/tidegate' }]);
  expect(jobOf('sidecar', 'shop')).toEqual([{ targetLabel: 'job', replacement: 'shop/tidegate' }]);
});

test('names the file of the dashboard by the release, because all of them come into one folder', () => {
  const file = (name: string) =>
    Object.keys(
      one(renderRelease(name, '--set=dashboard.enabled=true'), 'ConfigMap', `${name}-tidegate-dashboard`).data ?? {},
    );
  expect([file('payments'), file('reports')]).toEqual([['payments-tidegate.json'], ['reports-tidegate.json']]);
});

describe('the Service', () => {
  const serviceOf = (...args: readonly string[]) => one(render(...args), 'Service', 'tidegate').spec;

  test('of a load balancer keeps the addresses of clients, unless values say otherwise', () => {
    expect(serviceOf()?.externalTrafficPolicy).toBeUndefined();
    expect(serviceOf('--set=service.type=NodePort')?.externalTrafficPolicy).toBeUndefined();
    expect(serviceOf('--set=service.type=LoadBalancer')?.externalTrafficPolicy).toBe('Local');
    const cluster = '--set=service.type=LoadBalancer,service.externalTrafficPolicy=Cluster';
    expect(serviceOf(cluster)?.externalTrafficPolicy).toBe('Cluster');
  });

  test('of a load balancer has its class, and the networks that it admits', () => {
    const values =
      'service.type=LoadBalancer,service.loadBalancerClass=a/b,service.loadBalancerSourceRanges={192.0.2.0/24}';
    expect(serviceOf(`--set=${values}`)).toMatchObject({
      loadBalancerClass: 'a/b',
      loadBalancerSourceRanges: ['192.0.2.0/24'],
    });
  });
});

describe('Redis', () => {
  const withVolume = ['--set=redis.persistence.enabled=true', '--set=redis.persistence.size=9Gi'];

  test('gets a volume by an upgrade, which changes no field that cannot change', () => {
    const fixed = (...args: readonly string[]) => {
      const { template, ...spec } = one(render(...args), 'StatefulSet', 'tidegate-redis').spec ?? {};
      expect(template).toBeDefined();
      return spec;
    };
    expect(fixed(...withVolume)).toEqual(fixed());
    const objects = render(...withVolume);
    expect(one(objects, 'PersistentVolumeClaim', 'tidegate-redis').spec).toMatchObject({
      accessModes: ['ReadWriteOncePod'],
      resources: { requests: { storage: '9Gi' } },
    });
    expect(podOf(one(objects, 'StatefulSet', 'tidegate-redis')).volumes).toContainEqual({
      name: 'data',
      persistentVolumeClaim: { claimName: 'tidegate-redis' },
    });
  });

  test.each(['redis.image.digest=null', 'redis.image.digest='])('has its tag with %s', (argument) => {
    const [container] = podOf(one(render(`--set=${argument}`), 'StatefulSet', 'tidegate-redis')).containers;
    expect(container?.image).toBe('redis:8.2.1');
  });
});

test('leaves out the preStop hook of 0 s, which Kubernetes before 1.33 refuses', () => {
  const deployment = one(render('--set=preStopSeconds=0'), 'Deployment', 'tidegate');
  expect(tidegateIn(podOf(deployment)).lifecycle).toBeUndefined();
  expect(podOf(deployment).terminationGracePeriodSeconds).toBe(40);
});

test('keeps settings of a rolling update out of another strategy', () => {
  const { spec } = one(render('--set=strategy.type=Recreate'), 'Deployment', 'tidegate');
  expect(spec?.strategy).toEqual({ type: 'Recreate' });
});

test.each([
  ['autoscaling.minReplicas=7', 'autoscaling.minReplicas: it is greater than autoscaling.maxReplicas'],
  ['autoscaling.minReplicas=0', "at '/autoscaling/minReplicas': minimum: got 0, want 1"],
  ['replicaCount=-1', "at '/replicaCount': minimum: got -1, want 0"],
  ['preStopSeconds=-1', "at '/preStopSeconds': minimum: got -1, want 0"],
  ['service.port=0', "at '/service/port': minimum: got 0, want 1"],
  ['terminationGracePeriodSeconds=0', "at '/terminationGracePeriodSeconds': minimum: got 0, want 1"],
])('refuses the number %s', (argument, message) => {
  expect(() => render(`--set=${argument}`)).toThrow(message);
});

describe('the notes', () => {
  const notes = (set: string, ...args: readonly string[]) =>
    helm('install', 'tidegate', CHART, '--dry-run=client', '--values', valuesFile(set), ...args).split('NOTES:')[1];

  test('name upstreams and keys of tokens that the policy does not allow', () => {
    const upstreams = { a: 'http://a.example.com', b: 'https://b.shop.svc:443', c: 'https://c.example.com' };
    const config = JSON.stringify({
      upstreams: {
        ...Object.fromEntries(Object.entries(upstreams).map(([name, url]) => [name, { url }])),
        d: { urls: ['https://d.example.com:8443', 'https://e.example.com:8443'] },
      },
    });
    expect(notes('gateway', `--set-json=config=${config}`)).toContain(
      'The NetworkPolicy does not allow connections to http://a.example.com, https://b.shop.svc:443, https://d.example.com:8443, https://e.example.com:8443. Add',
    );
    expect(notes('gateway')).not.toContain('does not allow connections');
    const jwt = {
      issuer: 'https://a.example.com',
      audience: ['a'],
      jwks: 'https://a.example.com/keys',
      algorithms: ['RS256'],
    };
    const helper = notes('ingress-helper', `--set-json=config.clients.auth=${JSON.stringify({ jwt })}`);
    expect(helper).toContain('does not allow connections to https://a.example.com/keys. Add');
  });

  test('name secrets that the ConfigMap would show', () => {
    const values =
      '--set=config.secret=0123456789abcdef,config.admin.listen=127.0.0.1:9901,config.admin.token=0123456789abcdef';
    expect(notes('gateway', values)).toContain('can read config.secret, config.admin.token.');
    expect(notes('gateway')).not.toContain('can read');
  });

  test('state the scheme that clients use', () => {
    expect(notes('tls')).toContain('Clients call https://tidegate.default:443.');
    expect(notes('gateway')).toContain('Clients call http://tidegate.default:80.');
  });
});
