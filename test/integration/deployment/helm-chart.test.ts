/** The chart with each of its sets of values: helm accepts it, Kubernetes' types fit, and Tidegate accepts its configuration. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { runCheck } from '../../../src/cli/check/check-command.ts';
import { checkTypes, validate } from '../../support/kubernetes/check-types.ts';
import { all, labelsOf, one, podOf, tidegateIn, workloadsOf } from '../../support/kubernetes/objects.ts';
import { podEnvironment } from '../../support/kubernetes/pod-files.ts';
import { patchOf } from '../../support/kubernetes/releases.ts';
import type { KubernetesObject } from '../../support/kubernetes/render.ts';
import { CHART, helm, patchCheckout, renderValueSet, VALUE_SETS, valuesFile } from '../../support/kubernetes/render.ts';

const rendered = new Map<string, readonly KubernetesObject[]>();

beforeAll(() => {
  for (const set of VALUE_SETS) {
    const objects = renderValueSet(set, 'payments');
    rendered.set(set, set === 'sidecar' ? [...objects, patchCheckout(patchOf(objects))] : objects);
  }
});

function objectsOf(set: string): readonly KubernetesObject[] {
  return rendered.get(set) ?? [];
}

function deploymentOf(set: string) {
  const [deployment, ...others] = all(objectsOf(set), 'Deployment');
  if (deployment === undefined || others.length > 0) throw new Error(`${set}: one Deployment was expected`);
  return deployment;
}

function containerOf(set: string) {
  return tidegateIn(podOf(deploymentOf(set)));
}

test('has twelve sets of values', () => {
  expect(VALUE_SETS).toHaveLength(12);
});

test('gives objects of the Kubernetes types, with values in valid formats', async () => {
  const objects = VALUE_SETS.flatMap(objectsOf);
  expect(checkTypes(objects)).toEqual(new Map());
  for (const object of objects) await validate(object);
});

test('has the version of the package, which is the tag of the image', () => {
  const { version } = parse(readFileSync(join(CHART, '../../../package.json'), 'utf8')) as { version: string };
  expect(parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8'))).toMatchObject({ version, appVersion: version });
});

describe.each(VALUE_SETS)('with the values %s', (set) => {
  test('passes helm lint without a warning', () => {
    expect(helm('lint', '--strict', CHART, '--values', valuesFile(set))).toContain(
      '1 chart(s) linted, 0 chart(s) failed',
    );
  });

  test('has a configuration that tidegate check accepts without a warning', () => {
    const pod = podOf(deploymentOf(set));
    const tidegate = containerOf(set);
    const [, , file = ''] = tidegate.args ?? [];
    const { text, exitCode } = runCheck(file, { full: false }, podEnvironment(objectsOf(set), pod, tidegate));
    expect(text).toMatch(/^\S+: valid, no warnings\n/);
    expect(exitCode).toBe(0);
  });

  test('gives each object a name of its own and the labels of the release', () => {
    const own = objectsOf(set).filter(({ metadata }) => metadata.name !== 'checkout');
    const names = own.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    expect(new Set(names).size).toBe(names.length);
    for (const { metadata } of own) {
      expect(metadata).toMatchObject({ labels: { 'app.kubernetes.io/instance': 'tidegate' } });
    }
  });

  test('selects the pods of one workload in each Service, policy and budget', () => {
    const objects = objectsOf(set);
    const isSelected = (labels: Readonly<Record<string, string>>) =>
      workloadsOf(objects).filter((each) =>
        Object.entries(labels).every(([key, value]) => labelsOf(each)[key] === value),
      );
    const selectors = [
      ...all(objects, 'Service').map(({ spec }) => spec?.selector),
      ...all(objects, 'NetworkPolicy').map(({ spec }) => spec?.podSelector?.matchLabels),
      ...all(objects, 'PodDisruptionBudget').map(({ spec }) => spec?.selector?.matchLabels),
      ...workloadsOf(objects).map(({ spec }) => spec?.selector.matchLabels),
    ];
    for (const selector of selectors) {
      expect(Object.keys(selector ?? {})).not.toEqual([]);
      expect(isSelected(selector ?? {})).toHaveLength(1);
    }
  });
});

describe('the values', () => {
  test('of a Redis of one’s own make no Redis, and mount its CA', () => {
    expect(all(objectsOf('external-redis'), 'StatefulSet')).toEqual([]);
    expect(containerOf('external-redis').volumeMounts).toContainEqual(
      expect.objectContaining({ name: 'redis-ca', mountPath: '/etc/redis-ca' }),
    );
    const [policy, ...others] = all(objectsOf('external-redis'), 'NetworkPolicy');
    expect(others).toEqual([]);
    expect(policy?.spec?.egress?.at(-1)?.ports).toEqual([{ protocol: 'TCP', port: 6379 }]);
  });

  test('of a Redis with persistence give it a volume and its append-only file', () => {
    const { spec } = one(objectsOf('redis-persistence'), 'StatefulSet', 'tidegate-redis');
    expect(one(objectsOf('redis-persistence'), 'PersistentVolumeClaim', 'tidegate-redis').spec).toMatchObject({
      storageClassName: 'ssd',
      resources: { requests: { storage: '4Gi' } },
    });
    const args = spec?.template.spec?.containers[0]?.args ?? [];
    expect(args[args.indexOf('--appendonly') + 1]).toBe('yes');
    expect(spec?.template.spec?.volumes?.map(({ name }) => name)).toEqual(['users', 'data']);
  });

  test('of a database on a volume allow one pod, and never two at a time', () => {
    const { spec } = deploymentOf('webhooks');
    expect(spec).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } });
    const claim = one(objectsOf('webhooks'), 'PersistentVolumeClaim', 'tidegate');
    // `Recreate` alone does not wait for a pod that is deleted by hand, or whose node does not respond.
    expect(claim.spec?.accessModes).toEqual(['ReadWriteOncePod']);
    expect(claim.metadata?.annotations).toEqual({ 'helm.sh/resource-policy': 'keep' });
    expect(podOf(deploymentOf('webhooks')).volumes).toContainEqual({
      name: 'state',
      persistentVolumeClaim: { claimName: 'tidegate' },
    });
    // Without HTTPS to public addresses.
    const [, ...egress] = one(objectsOf('webhooks'), 'NetworkPolicy', 'tidegate').spec?.egress ?? [];
    expect(egress.map(({ ports }) => ports)).toEqual([[{ protocol: 'TCP', port: 3000 }]]);
  });

  test('of clients with tokens mount the token of a service account of that name', () => {
    expect(podOf(deploymentOf('clients'))).toMatchObject({
      serviceAccountName: 'payments-gateway',
      automountServiceAccountToken: true,
    });
    expect(one(objectsOf('clients'), 'ServiceAccount', 'payments-gateway').automountServiceAccountToken).toBe(false);
  });

  test('of monitoring make a monitor, all alerts but the disabled one, and the dashboard, each with its labels', () => {
    const objects = objectsOf('monitoring');
    const release = { release: 'kube-prometheus-stack', team: 'payments' };
    const monitor = one(objects, 'ServiceMonitor', 'tidegate');
    expect(monitor.metadata?.labels).toMatchObject(release);
    const relabelings = [{ targetLabel: 'job', replacement: 'payments/tidegate' }];
    expect(monitor.spec.endpoints).toEqual([
      { port: 'telemetry', path: '/metrics', interval: '30s', scrapeTimeout: '10s', relabelings },
    ]);
    const rule = one(objects, 'PrometheusRule', 'tidegate');
    expect(rule.metadata?.labels).toMatchObject(release);
    const { groups } = parse(read('docker/prometheus/tidegate.rules.yml')) as {
      groups: { rules: { alert: string }[] }[];
    };
    const expected = groups.map(({ rules }) => rules.filter(({ alert }) => alert !== 'TidegateUpstreamThrottled'));
    expect(rule.spec?.groups?.map(({ rules }) => rules)).toEqual(expected);
    const dashboard = one(objects, 'ConfigMap', 'tidegate-dashboard');
    expect(dashboard.metadata?.labels).toMatchObject({ grafana_dashboard: '1' });
    expect(dashboard.metadata?.annotations).toEqual({ grafana_folder: 'Payments' });
    expect(dashboard.data?.['tidegate.json']).toBe(read('docker/grafana/dashboards/tidegate.json'));
  });

  test('of scheduling reach the pod, whose image has a digest', () => {
    const { spec } = deploymentOf('scheduling');
    expect(spec?.replicas).toBe(3);
    expect(all(objectsOf('scheduling'), 'HorizontalPodAutoscaler')).toEqual([]);
    expect(one(objectsOf('scheduling'), 'PodDisruptionBudget', 'payments-gateway').spec?.maxUnavailable).toBe('34%');
    const pod = podOf(deploymentOf('scheduling'));
    expect(pod).toMatchObject({
      imagePullSecrets: [{ name: 'registry' }],
      nodeSelector: { 'kubernetes.io/arch': 'amd64' },
      tolerations: [{ key: 'dedicated' }],
      priorityClassName: 'high',
      topologySpreadConstraints: [{ whenUnsatisfiable: 'DoNotSchedule' }],
    });
    expect(pod.affinity?.podAntiAffinity).toBeDefined();
    expect(spec?.template.metadata).toMatchObject({
      labels: { tier: 'gateway' },
      annotations: { 'example.com/owner': 'payments' },
    });
    expect(containerOf('scheduling').image).toMatch(/\/tidegate@sha256:[0-9a-f]{64}$/);
    expect(containerOf('scheduling').env).toContainEqual({ name: 'LOG_LEVEL', value: 'warn' });
  });

  test('of TLS give a Service of its port to the port of the configuration, and metrics to no load balancer', () => {
    const { metadata, spec } = one(objectsOf('tls'), 'Service', 'tidegate');
    expect(metadata?.annotations).toEqual({ 'example.com/load-balancer': 'internal' });
    expect(spec).toMatchObject({
      type: 'LoadBalancer',
      ipFamilyPolicy: 'RequireDualStack',
      ipFamilies: ['IPv4', 'IPv6'],
    });
    expect(spec?.ports).toEqual([{ name: 'http', port: 443, targetPort: 'http' }]);
    expect(containerOf('tls').ports).toContainEqual({ name: 'http', containerPort: 8443 });
    expect(one(objectsOf('tls'), 'Service', 'tidegate-telemetry').spec).toMatchObject({ clusterIP: 'None' });
    // preStop 5 s, delay 15 s, timeout 60 s, and 10 s to spare.
    expect(podOf(deploymentOf('tls')).terminationGracePeriodSeconds).toBe(90);
  });

  test('of OpenShift set no user, and keep the other privileges away', () => {
    for (const workload of workloadsOf(objectsOf('openshift'))) {
      expect(podOf(workload).securityContext).toEqual({
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
      });
    }
  });

  test('of a minimal release leave out everything that can be left out', () => {
    expect(
      objectsOf('minimal')
        .map(({ kind, metadata }) => `${kind} ${metadata.name}`)
        .toSorted(),
    ).toEqual(['ConfigMap tidegate', 'Deployment tidegate', 'Service tidegate', 'Service tidegate-telemetry']);
    const pod = podOf(deploymentOf('minimal'));
    expect(pod.serviceAccountName).toBe('default');
    expect(pod.volumes?.map(({ name }) => name)).toEqual(['config', 'tmp']);
  });
});

function read(file: string): string {
  return readFileSync(join(CHART, '../../..', file), 'utf8');
}
