/** What the chart makes is valid, and its parts refer to each other correctly. */
import { describe, expect, test } from 'vitest';
import type { KubernetesObject } from '../../support/kubernetes/render.ts';
import { renderValueSet } from '../../support/kubernetes/render.ts';
import { checkTypes, validate } from '../../support/kubernetes/check-types.ts';
import type { Workload } from '../../support/kubernetes/objects.ts';
import { all, containersOf, labelsOf, one, podOf, workloadsOf } from '../../support/kubernetes/objects.ts';
import { readReleases } from '../../support/kubernetes/releases.ts';

type Labels = Readonly<Record<string, string>>;

const releases = readReleases();

/** Maps whose keys are free: labels, resource quantities, files. */
const FREE = new Set(['labels', 'annotations', 'matchLabels', 'selector', 'data', 'limits', 'requests']);

describe.each(releases)('the release $name', ({ objects, secrets }) => {
  test('matches the Kubernetes types, with values in valid formats', async () => {
    expect(checkTypes(objects)).toEqual(new Map());
    for (const object of objects) await validate(object);
  });

  test('would fail validation for an unknown field anywhere in it', () => {
    const misspelt = objects.flatMap((object) => withUnknownField(object, object));
    const refused = checkTypes(misspelt.map(({ object }) => object));
    expect(refused.size).toBeGreaterThan(30);
    expect(misspelt.filter((_, i) => !refused.has(i)).map(({ at }) => at)).toEqual([]);
  });

  test('stays in the namespace of its release', () => {
    for (const { metadata } of objects) expect(metadata.namespace, metadata.name).toBeUndefined();
  });

  test('mounts only files that exist or that its documented commands create', () => {
    const present = new Set([...objects, ...secrets].map(({ kind, metadata }) => `${kind} ${metadata.name}`));
    const volumes = workloadsOf(objects).flatMap((workload) => podOf(workload).volumes ?? []);
    const mounted = volumes.flatMap(({ configMap, secret }) => [
      ...(configMap ? [`ConfigMap ${configMap.name}`] : []),
      ...(secret ? [`Secret ${secret.secretName}`] : []),
    ]);
    expect(mounted.length).toBeGreaterThan(0);
    expect(mounted.filter((name) => !present.has(name))).toEqual([]);
  });

  test('selects pods and ports that exist', () => {
    const workloads = workloadsOf(objects);
    const podsFor = (labels: Labels = {}) => workloads.filter((each) => includes(labelsOf(each), labels));
    for (const { spec } of workloads) {
      expect(spec?.template.metadata?.labels).toMatchObject(spec?.selector.matchLabels ?? { none: '' });
    }
    for (const { metadata, spec } of all(objects, 'Service')) {
      const [pods, ...others] = podsFor(spec?.selector);
      expect(others).toEqual([]);
      const open = pods === undefined ? [] : portsOf(pods);
      for (const { targetPort } of spec?.ports ?? []) expect(open, metadata?.name ?? '').toContain(targetPort);
    }
    for (const { spec } of all(objects, 'PodDisruptionBudget')) {
      expect(podsFor(spec?.selector?.matchLabels)).toHaveLength(1);
    }
    for (const { spec } of all(objects, 'ServiceMonitor')) {
      const services = all(objects, 'Service').filter(({ metadata }) =>
        includes(metadata?.labels ?? {}, spec.selector.matchLabels ?? {}),
      );
      expect(services).toHaveLength(1);
      const ports = services[0]?.spec?.ports?.map(({ name }) => name);
      for (const { port } of spec.endpoints ?? []) expect(ports).toContain(port);
    }
    for (const { spec } of all(objects, 'PodMonitor')) {
      const pods = podsFor(spec.selector.matchLabels);
      expect(pods).toHaveLength(1);
      const open = pods.flatMap(portsOf);
      for (const { port } of spec.podMetricsEndpoints ?? []) expect(open).toContain(port);
    }
  });

  test('states its number of replicas in one place', () => {
    for (const { spec } of all(objects, 'HorizontalPodAutoscaler')) {
      const scaled = one(objects, 'Deployment', spec?.scaleTargetRef.name ?? '');
      expect(scaled.spec?.replicas).toBeUndefined();
      expect(spec?.minReplicas).toBeGreaterThanOrEqual(2);
      // A percentage of requested resources, which must exist.
      for (const { resources } of containersOf(podOf(scaled))) expect(resources?.requests?.['cpu']).toBeDefined();
    }
  });
});

test('fails validation for an unknown field anywhere in the objects that these releases do not have', () => {
  const [rule] = all(renderValueSet('monitoring', 'payments'), 'PrometheusRule');
  const [group] = rule?.spec?.groups ?? [];
  const others = [
    // One of the rules, because each field makes a copy.
    { ...rule, spec: { groups: [{ ...group, rules: group?.rules?.slice(0, 1) }] } } as KubernetesObject,
    ...all(renderValueSet('webhooks', 'payments'), 'PersistentVolumeClaim'),
    ...all(renderValueSet('redis-persistence', 'payments'), 'StatefulSet'),
  ] as KubernetesObject[];
  expect(others.map(({ kind }) => kind)).toEqual(['PrometheusRule', 'PersistentVolumeClaim', 'StatefulSet']);
  const misspelt = others.flatMap((object) => withUnknownField(object, object));
  const refused = checkTypes(misspelt.map(({ object }) => object));
  expect(misspelt.filter((_, i) => !refused.has(i)).map(({ at }) => at)).toEqual([]);
});

test('defines one kind of Prometheus monitor for each release', () => {
  const kinds = releases.map(({ objects }) =>
    ['ServiceMonitor', 'PodMonitor'].filter((kind) => objects.some((each) => each.kind === kind)),
  );
  expect(kinds).toEqual([['ServiceMonitor'], ['PodMonitor'], ['ServiceMonitor']]);
});

test('fails validation for a wrong type, a missing field and an unknown kind', () => {
  const [service] = all(releases[0]?.objects ?? [], 'Service');
  const wrong = [
    { ...service, spec: { ...service?.spec, ports: [{ port: '80' }] } },
    { ...service, spec: { ...service?.spec, ports: [{ name: 'http' }] } },
    { ...service, kind: 'Servise' },
  ] as unknown as KubernetesObject[];
  expect([...checkTypes(wrong).keys()]).toEqual([0, 1, 2]);
});

test('fails validation for values in a wrong format', async () => {
  const [{ objects } = { objects: [] }] = releases;
  const deployment = structuredClone(one(objects, 'Deployment', 'tidegate'));
  const [container] = podOf(deployment).containers;
  if (container) container.resources = { limits: { memory: '768 MB' } };
  await expect(validate(deployment as KubernetesObject)).rejects.toThrow('quantity');
});

/** Copies of an object, each with an unknown field in one of its mappings. */
function withUnknownField(root: KubernetesObject, part: unknown, path: readonly (string | number)[] = []) {
  const found: { readonly at: string; readonly object: KubernetesObject }[] = [];
  if (typeof part !== 'object' || part === null) return found;
  const isFree = FREE.has(String(path.at(-1))) && Object.values(part).every((value) => typeof value !== 'object');
  if (!Array.isArray(part) && !isFree) {
    const object = structuredClone(root);
    const place = path.reduce<unknown>((whole, key) => Reflect.get(whole as object, key) as unknown, object);
    Reflect.set(place as object, 'unknownField', 'x');
    found.push({ at: [root.kind, ...path].join('.'), object });
  }
  for (const [key, inner] of Object.entries(part)) found.push(...withUnknownField(root, inner, [...path, key]));
  return found;
}

/** Names of ports that its containers open. */
function portsOf(workload: Workload): (string | undefined)[] {
  return containersOf(podOf(workload)).flatMap(({ ports = [] }) => ports.map(({ name }) => name));
}

function includes(labels: Labels, wanted: Labels): boolean {
  const all = Object.entries(wanted);
  return all.length > 0 && all.every(([name, value]) => labels[name] === value);
}
