/** The output of kustomize for config/kubernetes is valid, and its parts refer to each other correctly. */
import type { IDeployment } from 'kubernetes-models/apps/v1';
import { describe, expect, test } from 'vitest';
import type { KubernetesObject } from '../../support/kubernetes/build.ts';
import { checkTypes, validate } from '../../support/kubernetes/check-types.ts';
import { all, containersOf, labelsOf, one, podOf } from '../../support/kubernetes/objects.ts';
import { readOverlays } from '../../support/kubernetes/overlays.ts';

type Labels = Readonly<Record<string, string>>;

const overlays = readOverlays();

/** Maps whose keys are free: labels, resource quantities, files. */
const FREE = new Set(['labels', 'matchLabels', 'selector', 'data', 'limits', 'requests']);

describe.each(overlays)('the overlay $name', ({ objects, secrets }) => {
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

  test('stays in one namespace, which enforces the restricted pod security profile', () => {
    const [namespace, ...others] = all(objects, 'Namespace');
    expect(others).toEqual([]);
    expect(namespace?.metadata?.labels).toMatchObject({ 'pod-security.kubernetes.io/enforce': 'restricted' });
    const inside = objects.filter(({ kind }) => kind !== 'Namespace').map(({ metadata }) => metadata.namespace);
    expect(new Set(inside)).toEqual(new Set([namespace?.metadata?.name]));
  });

  test('mounts only files that exist or that its documented commands create', () => {
    const present = new Set([...objects, ...secrets].map(({ kind, metadata }) => `${kind} ${metadata.name}`));
    const volumes = all(objects, 'Deployment').flatMap((deployment) => podOf(deployment).volumes ?? []);
    const mounted = volumes.flatMap(({ configMap, secret }) => [
      ...(configMap ? [`ConfigMap ${configMap.name}`] : []),
      ...(secret ? [`Secret ${secret.secretName}`] : []),
    ]);
    expect(mounted.length).toBeGreaterThan(0);
    expect(mounted.filter((name) => !present.has(name))).toEqual([]);
  });

  test('selects pods and ports that exist', () => {
    const deployments = all(objects, 'Deployment');
    const podsFor = (labels: Labels = {}) => deployments.filter((each) => includes(labelsOf(each), labels));
    for (const { spec } of deployments) {
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

test('defines one kind of Prometheus monitor for each overlay', () => {
  const kinds = overlays.map(({ objects }) =>
    ['ServiceMonitor', 'PodMonitor'].filter((kind) => objects.some((each) => each.kind === kind)),
  );
  expect(kinds).toEqual([['ServiceMonitor'], ['PodMonitor'], ['ServiceMonitor']]);
});

test('fails validation for a wrong type, a missing field and an unknown kind', () => {
  const [service] = all(overlays[0]?.objects ?? [], 'Service');
  const wrong = [
    { ...service, spec: { ...service?.spec, ports: [{ port: '80' }] } },
    { ...service, spec: { ...service?.spec, ports: [{ name: 'http' }] } },
    { ...service, kind: 'Servise' },
  ] as unknown as KubernetesObject[];
  expect([...checkTypes(wrong).keys()]).toEqual([0, 1, 2]);
});

test('fails validation for values in a wrong format', async () => {
  const [{ objects } = { objects: [] }] = overlays;
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
function portsOf(deployment: IDeployment): (string | undefined)[] {
  return containersOf(podOf(deployment)).flatMap(({ ports = [] }) => ports.map(({ name }) => name));
}

function includes(labels: Labels, wanted: Labels): boolean {
  const all = Object.entries(wanted);
  return all.length > 0 && all.every(([name, value]) => labels[name] === value);
}
