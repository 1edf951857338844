/** The commands of docs/kubernetes.md that need no cluster. */
import { execFileSync } from 'node:child_process';
import { readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { assert, expect, test } from 'vitest';
import { readSnippets } from '../../support/documents/snippets.ts';
import { checkTypes } from '../../support/kubernetes/check-types.ts';
import type { Workload } from '../../support/kubernetes/objects.ts';
import { one, podOf } from '../../support/kubernetes/objects.ts';
import { patchOf } from '../../support/kubernetes/releases.ts';
import type { KubernetesObject } from '../../support/kubernetes/render.ts';
import { helmPath, kubectl, parseObjects, patchCheckout } from '../../support/kubernetes/render.ts';
import { makeFolder } from '../../support/redis/redis-process.ts';

const ROOT = join(import.meta.dirname, '../../..');
const document = readFileSync(join(ROOT, 'docs/kubernetes.md'), 'utf8');
const commands = readSnippets(document)
  .filter(({ marks }) => marks.some((mark) => mark.kind === 'by' && mark.whom.endsWith('helm-commands.test.ts')))
  .map(({ text }) => text);

test('render the gateway, check its configuration, change it with kustomize, and add the sidecar to an application', () => {
  const folder = makeFolder();
  symlinkSync(join(ROOT, 'config'), join(folder, 'config'));
  const main = join(ROOT, 'src/main.ts');
  const outputs = commands.map((text) => {
    const programs = `helm() { "$HELM" "$@"; }; kubectl() { "$KUBECTL" "$@"; }; tidegate() { "$NODE" "$MAIN" "$@"; }`;
    const env = {
      PATH: process.env['PATH'],
      HOME: folder,
      HELM: helmPath(),
      KUBECTL: kubectl(),
      NODE: process.execPath,
      MAIN: main,
    };
    return execFileSync('sh', ['-c', `set -eu; ${programs}\n${text}\n`], { cwd: folder, encoding: 'utf8', env });
  });
  expect(outputs).toHaveLength(4);
  const [gateway, changed, checkout] = [outputs[0], outputs[2], outputs[3]].map((text = '') => parseObjects(text));
  assert(gateway && changed && checkout);

  expect(outputs[1]).toMatch(/^check\.yaml: valid, no warnings\n/);

  expect(namesOf(changed)).toEqual(namesOf(gateway));
  for (const { metadata } of changed) expect(metadata.namespace).toBe('tidegate');
  expect(podOf(one(changed, 'Deployment', 'tidegate')).dnsConfig).toEqual({ options: [{ name: 'ndots', value: '1' }] });

  expect(checkTypes(checkout)).toEqual(new Map());
  const pod = podOf(one(checkout, 'Deployment', 'checkout'));
  expect(pod.containers.map(({ name }) => name)).toEqual(['checkout']);
  // kubectl makes the same pod of the other form of the patch.
  expect(pod).toEqual(podOf(patchCheckout(patchOf(checkout)) as Workload));
});

function namesOf(objects: readonly KubernetesObject[]): string[] {
  return objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`).toSorted();
}
