/** Pods of config/helm have the least privileges, and their settings agree with the Tidegate configuration. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { IVolume } from 'kubernetes-models/v1';
import { describe, expect, test } from 'vitest';
import type { Address } from '../../../src/config/values/listen-address.ts';
import { oldSpaceLimit } from '../../../src/http/overload/v8-heap.ts';
import { all, bytes, containersOf, podOf, workloadsOf } from '../../support/kubernetes/objects.ts';
import { readReleases } from '../../support/kubernetes/releases.ts';

const releases = readReleases();
const ROOT = join(import.meta.dirname, '../../..');
const MIB = 1024 ** 2;

/** Node and the proxy's code (docs/start.md), V8's young generation, and socket buffers. */
const BESIDE_HEAP = 150 * MIB;

describe.each(releases)('pods of the release $name', ({ name, objects, pod, tidegate, config, warnings }) => {
  test('meet the profile "restricted", and mount no cluster credentials', () => {
    for (const workload of workloadsOf(objects)) {
      const { securityContext, automountServiceAccountToken, volumes = [], ...rest } = podOf(workload);
      expect(automountServiceAccountToken).toBe(false);
      expect([rest.hostNetwork, rest.hostPID, rest.hostIPC]).toEqual([undefined, undefined, undefined]);
      expect(securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
      for (const volume of volumes) expect(['configMap', 'secret', 'emptyDir']).toContain(kindOf(volume));
      for (const container of containersOf(podOf(workload))) {
        expect(container.securityContext, container.name).toMatchObject({
          allowPrivilegeEscalation: false,
          capabilities: { drop: ['ALL'] },
        });
        expect(container.securityContext?.runAsUser ?? securityContext?.runAsUser, container.name).toBeGreaterThan(0);
        expect(container.ports?.filter(({ hostPort }) => hostPort !== undefined) ?? []).toEqual([]);
      }
    }
  });

  test('can write only to their own bounded volumes', () => {
    for (const container of containersOf(pod).filter(({ image = '' }) => /\/tidegate:|^redis:/.test(image))) {
      expect(container.securityContext?.readOnlyRootFilesystem, container.name).toBe(true);
    }
    const mine = workloadsOf(objects).flatMap((workload) => podOf(workload).volumes ?? []);
    for (const { emptyDir } of mine) if (emptyDir) expect(emptyDir.sizeLimit).toBeDefined();
    for (const { mountPath, subPath, readOnly } of tidegate.volumeMounts ?? []) {
      // Kubelet never updates a subPath mount: a reload would not see a change.
      expect(subPath).toBeUndefined();
      expect(readOnly ?? false, mountPath).toBe(mountPath !== '/tmp');
    }
  });

  test('run the image of this version, as its user', () => {
    const { version } = JSON.parse(read('package.json')) as { version: string };
    expect(tidegate.image).toMatch(new RegExp(`/tidegate:${version.replaceAll('.', '\\.')}$`));
    const { runAsUser, runAsGroup } = { ...pod.securityContext, ...tidegate.securityContext };
    expect(read('Dockerfile')).toContain(`\nUSER ${runAsUser}:${runAsGroup}\n`);
    // Compose and the cluster run the same Redis.
    for (const { image = '' } of workloadsOf(objects).flatMap((each) => podOf(each).containers)) {
      if (image.startsWith('redis')) expect(read('docker/compose.yaml')).toContain(`image: ${image}\n`);
    }
  });

  test('are configured without errors or warnings', () => {
    expect(warnings).toBe('');
  });

  test('open the ports that the configuration listens on', () => {
    const open = new Map(tidegate.ports?.map((port) => [port.name, port.containerPort]));
    expect(open.get('telemetry')).toBe(portOf(config.telemetry, '0.0.0.0'));
    if (name === 'sidecar') {
      expect(portOf(config.listen.address, '127.0.0.1')).toBe(8080);
      expect(open.has('http')).toBe(false);
    } else {
      expect(open.get('http')).toBe(portOf(config.listen.address, '0.0.0.0'));
    }
    expect(config.admin && portOf(config.admin.listen, '127.0.0.1')).toBe(9901);
  });

  test('are probed where their health is served', () => {
    const { startupProbe, livenessProbe, readinessProbe } = tidegate;
    expect(startupProbe?.httpGet).toEqual({ path: '/readyz', port: 'telemetry' });
    expect(livenessProbe?.httpGet).toEqual({ path: '/livez', port: 'telemetry' });
    if (name !== 'sidecar') expect(readinessProbe?.httpGet).toEqual({ path: '/readyz', port: 'telemetry' });
  });

  test('have memory for Node’s heap limit and for what lies outside the heap', () => {
    const options = tidegate.env?.find((variable) => variable.name === 'NODE_OPTIONS')?.value ?? '';
    const limit = bytes(tidegate.resources?.limits?.['memory']);
    expect(options).toMatch(/--max-old-space-size=\d+/);
    const heap = oldSpaceLimit(options.split(' '));
    expect(limit).toBeGreaterThanOrEqual(heap + config.limits.replayMemory + config.log.buffer + BESIDE_HEAP);
    // Requests equal limits for memory, so that the node reserves it.
    expect(tidegate.resources?.requests?.['memory']).toBe(tidegate.resources?.limits?.['memory']);
    expect(tidegate.resources?.limits?.['cpu']).toBeUndefined();
  });
});

describe('a sidecar', () => {
  test('is one that Kubernetes starts first, stops last, and restarts', () => {
    const { pod } = releases.find(({ name }) => name === 'sidecar') ?? { pod: undefined };
    const [sidecar, ...others] = pod?.initContainers ?? [];
    expect(others).toEqual([]);
    expect(sidecar).toMatchObject({ name: 'tidegate', restartPolicy: 'Always' });
    // The application starts when this probe has succeeded.
    expect(sidecar?.startupProbe).toBeDefined();
    expect(pod?.containers.map(({ name }) => name)).toEqual(['checkout']);
  });

  test('listens where the application expects it', () => {
    const { pod } = releases.find(({ name }) => name === 'sidecar') ?? { pod: undefined };
    expect(pod?.containers[0]?.env).toContainEqual({ name: 'STRIPE_API_BASE', value: 'http://127.0.0.1:8080' });
  });
});

test('as an ingress helper answers checks and sends nothing', () => {
  const { config } = releases.find(({ name }) => name === 'ingress-helper') ?? { config: undefined };
  expect(config?.check?.path).toBe('/check');
  expect(config?.routes.map(({ check }) => check)).toEqual(['only']);
  // Reports change rates, so they need a token.
  expect(config?.check?.token).toMatch(/^[0-9a-f]{64}$/);
});

test('spreads replicas over nodes and zones, and never runs fewer during a rollout', () => {
  const { objects, pod, deployment } = releases[0] ?? { objects: [], pod: undefined, deployment: '' };
  const { spec } = all(objects, 'Deployment').find(({ metadata }) => metadata?.name === deployment) ?? {};
  const own = { matchLabels: spec?.selector.matchLabels };
  expect(pod?.topologySpreadConstraints?.map(({ topologyKey }) => topologyKey).toSorted()).toEqual([
    'kubernetes.io/hostname',
    'topology.kubernetes.io/zone',
  ]);
  for (const { labelSelector } of pod?.topologySpreadConstraints ?? []) expect(labelSelector).toEqual(own);
  expect(spec?.strategy?.rollingUpdate).toMatchObject({ maxUnavailable: 0 });
});

function read(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8');
}

function kindOf(volume: IVolume): string | undefined {
  return Object.keys(volume).find((key) => key !== 'name');
}

function portOf(address: Address | undefined, host: string): number | undefined {
  expect(address).toMatchObject({ kind: 'tcp', host });
  return address?.kind === 'tcp' ? address.port : undefined;
}
