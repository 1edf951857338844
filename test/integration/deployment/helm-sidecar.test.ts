/** The patch that adds Tidegate to the pods of an application: on a Deployment that a patch has changed before, too. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { checkTypes } from '../../support/kubernetes/check-types.ts';
import type { Workload } from '../../support/kubernetes/objects.ts';
import { all, labelsOf, one, podOf, tidegateIn } from '../../support/kubernetes/objects.ts';
import { patchOf } from '../../support/kubernetes/releases.ts';
import type { KubernetesObject } from '../../support/kubernetes/render.ts';
import {
  CHART,
  helm,
  kubectl,
  parseObjects,
  patchCheckout,
  patchDeployment,
  renderValueSet,
  valuesFile,
} from '../../support/kubernetes/render.ts';
import { makeFolder } from '../../support/redis/redis-process.ts';

const render = (...args: readonly string[]) => renderValueSet('sidecar', 'checkout', ...args);

const BEFORE = [
  '--set=config.telemetry=0.0.0.0:9000',
  '--set=config.secret=${file:/run/secrets/tidegate/hash}', // oxlint-disable-line eslint/no-template-curly-in-string -- as a config has it
  '--set-json=extraEnv=[{"name": "TOKEN", "value": "a"}, {"name": "OLD", "value": "b"}]',
  '--set-json=extraEnvFrom=[{"secretRef": {"name": "old"}}]',
  '--set-json=extraVolumes=[{"name": "ca", "configMap": {"name": "ca"}}]',
  '--set-json=extraVolumeMounts=[{"name": "ca", "mountPath": "/etc/ca"}]',
  '--set-json=livenessProbe={"httpGet": null, "exec": {"command": ["true"]}}',
];
const AFTER = [
  '--set-json=extraEnv=[{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "new", "key": "token"}}}]',
];

test('gives the same sidecar to an application that has one as to an application that has none', () => {
  const before = patchCheckout(patchOf(render(...BEFORE)));
  expect(tidegateIn(podOf(before as Workload)).livenessProbe?.exec).toBeDefined();
  const patch = patchOf(render(...AFTER));
  const again = patchDeployment(before, patch);
  const pod = podOf(again as Workload);
  expect(tidegateIn(pod)).toEqual(tidegateIn(podOf(patchCheckout(patch) as Workload)));
  // Volumes of one's own stay: the chart no longer knows them.
  expect(pod.volumes?.map(({ name }) => name).toSorted()).toEqual(['ca', 'tidegate-config', 'tidegate-tmp']);
  expect(checkTypes([again])).toEqual(new Map());
  // A third time, it changes nothing.
  expect(patchDeployment(again, patch)).toEqual(again);
});

test('gives it by kustomize too', () => {
  const folder = makeFolder();
  const patch = render(...AFTER);
  writeFileSync(join(folder, 'checkout.yaml'), JSON.stringify(patchCheckout(patchOf(render(...BEFORE)))));
  writeFileSync(join(folder, 'sidecar.yaml'), patchOf(patch, 'kustomize'));
  writeFileSync(
    join(folder, 'kustomization.yaml'),
    'resources: [checkout.yaml]\npatches: [{path: sidecar.yaml, target: {kind: Deployment, name: checkout}}]\n',
  );
  const objects = parseObjects(execFileSync(kubectl(), ['kustomize', folder], { encoding: 'utf8' }));
  const pod = podOf(one(objects, 'Deployment', 'checkout'));
  expect(tidegateIn(pod)).toEqual(tidegateIn(podOf(patchCheckout(patchOf(patch)) as Workload)));
  expect(pod.volumes?.map(({ name }) => name).toSorted()).toEqual(['ca', 'tidegate-config', 'tidegate-tmp']);
});

test('gives the pods of two releases in one namespace to one monitor each', () => {
  const pods = new Map<string, KubernetesObject>();
  const selectors = new Map<string, Readonly<Record<string, string>>>();
  for (const name of ['payments', 'reports']) {
    const objects = parseObjects(helm('template', name, CHART, '--values', valuesFile('sidecar')));
    const patch = one(objects, 'ConfigMap', `${name}-tidegate-patch`).data?.['patch.yaml'] ?? '';
    pods.set(name, patchCheckout(patch));
    selectors.set(name, all(objects, 'PodMonitor')[0]?.spec.selector.matchLabels ?? {});
  }
  for (const [name, selector] of selectors) {
    expect(Object.keys(selector)).not.toEqual([]);
    const selected = [...pods].filter(([, pod]) =>
      Object.entries(selector).every(([key, value]) => labelsOf(pod as Workload)[key] === value),
    );
    expect(selected.map(([release]) => release)).toEqual([name]);
  }
});

test('gives the pods the labels, annotations and registry secrets of the values, beside its own', () => {
  const patch = patchOf(
    render(
      '--set=podLabels.tidegate/sidecar=no,podLabels.tier=app,podAnnotations.owner=shop',
      '--set-json=imagePullSecrets=[{"name": "registry"}]',
    ),
  );
  const deployment = patchCheckout(patch) as Workload;
  expect(labelsOf(deployment)).toMatchObject({ 'tidegate/sidecar': 'tidegate', tier: 'app' });
  expect(deployment.spec?.template.metadata?.annotations).toMatchObject({
    owner: 'shop',
    'tidegate/restart-checksum': expect.stringMatching(/^[0-9a-f]{64}$/) as string,
  });
  expect(podOf(deployment).imagePullSecrets).toEqual([{ name: 'registry' }]);
});

test('listens where its notes state it: at a port, with TLS, or at a socket', () => {
  const notes = (argument: string) =>
    helm('install', 'tidegate', CHART, '--dry-run=client', '--values', valuesFile('sidecar'), argument);
  expect(notes('--set=config.listen=127.0.0.1:8081')).toContain('client use http://127.0.0.1:8081.');
  expect(notes('--set=config.listen=unix:/run/tidegate/t.sock')).toContain(
    'client use the socket /run/tidegate/t.sock.',
  );
  expect(
    notes('--set-json=config.listen={"address": "127.0.0.1:8443", "tls": {"cert": "/a.pem", "key": "/b.pem"}}'),
  ).toContain('client use https://127.0.0.1:8443.');
});
