/** An upgrade of a release that a cluster has: helm reads its Deployment from an API server, here one that has only that. */
import { execFile } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import type { KubernetesObject } from '../../support/kubernetes/render.ts';
import { CHART, helmPath, renderValueSet, valuesFile } from '../../support/kubernetes/render.ts';
import { one } from '../../support/kubernetes/objects.ts';

const APPS = { groupVersion: 'apps/v1', version: 'v1' };

/** What an API server returns to helm, by path. */
function responsesWith(deployment: KubernetesObject): Readonly<Record<string, unknown>> {
  const resources = (...kinds: readonly string[]) =>
    kinds.map((kind) => ({ name: `${kind.toLowerCase()}s`, namespaced: true, kind, verbs: ['get'] }));
  return {
    '/version': { major: '1', minor: '34', gitVersion: 'v1.34.0' },
    '/api': { kind: 'APIVersions', versions: ['v1'] },
    '/api/v1': { kind: 'APIResourceList', groupVersion: 'v1', resources: resources('ConfigMap', 'Service') },
    '/apis': { kind: 'APIGroupList', groups: [{ name: 'apps', versions: [APPS], preferredVersion: APPS }] },
    '/apis/apps/v1': { kind: 'APIResourceList', groupVersion: 'apps/v1', resources: resources('Deployment') },
    '/apis/apps/v1/namespaces/default/deployments/tidegate': deployment,
  };
}

/** Renders a set of values with what the server has. */
async function renderUpgrade(deployment: KubernetesObject, set: string, release = 'tidegate'): Promise<string> {
  const responses = responsesWith(deployment);
  const server = createServer(({ url = '' }, response) => {
    const body = responses[url.split('?')[0] ?? ''];
    response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body ?? { kind: 'Status', status: 'Failure', reason: 'NotFound', code: 404 }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const args = [
    'template',
    release,
    CHART,
    '--values',
    valuesFile(set),
    '--set=fullnameOverride=tidegate,monitor.enabled=false',
  ];
  const connect = [
    '--namespace=default',
    '--dry-run=server',
    `--kube-apiserver=http://127.0.0.1:${port}`,
    '--disable-openapi-validation',
  ];
  const env = { ...process.env, KUBECONFIG: '/dev/null' };
  const { stdout } = await promisify(execFile)(helmPath(), [...args, ...connect], { env, maxBuffer: 64 * 1024 ** 2 });
  return stdout;
}

const rendered = one(renderValueSet('gateway', 'default'), 'Deployment', 'tidegate');
/** With the annotations that helm adds when it installs an object. */
const gateway = {
  ...rendered,
  metadata: {
    ...rendered.metadata,
    annotations: { 'meta.helm.sh/release-name': 'tidegate', 'meta.helm.sh/release-namespace': 'default' },
  },
} as KubernetesObject;

test.each(['sidecar', 'ingress-helper'])('refuses to change the mode of a gateway to %s', async (set) => {
  await expect(renderUpgrade(gateway, set)).rejects.toThrow(
    `mode: this release is of mode gateway, which cannot become ${set}; install another release`,
  );
});

test('upgrades a release of the same mode, and installs beside the Deployment of another release', async () => {
  expect(await renderUpgrade(gateway, 'minimal')).toContain('kind: Deployment');
  expect(await renderUpgrade(gateway, 'sidecar', 'other')).toContain('patch.yaml');
});
