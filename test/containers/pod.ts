// Writes what kubelet would give to the Tidegate container of an overlay of config/kubernetes. Arguments: the overlay, and
// an output folder, which gets the mounted files in `root/` and the command and environment in `pod.json`.

import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { build } from '../support/kubernetes/build.ts';
import { all, one, podOf, tidegateIn } from '../support/kubernetes/objects.ts';
import { makeSecrets } from '../support/kubernetes/secrets.ts';

const [overlay, folder] = process.argv.slice(2);
assert.ok(overlay && folder, 'usage: pod.ts OVERLAY FOLDER');

const built = build(overlay);
const namespace = all(built, 'Namespace')[0]?.metadata?.name ?? '';
const objects = [...built, ...makeSecrets(namespace)];
const workload = all(objects, 'Deployment').find(({ metadata }) => metadata?.name !== 'redis');
assert.ok(workload, `${overlay} runs nothing`);
const pod = podOf(workload);
const { args = [], env = [], volumeMounts = [] } = tidegateIn(pod);

for (const { name, mountPath } of volumeMounts) {
  const volume = pod.volumes?.find((each) => each.name === name);
  if (volume?.configMap) {
    const { name: from = '' } = volume.configMap;
    put(mountPath, Object.entries(one(objects, 'ConfigMap', from).data ?? {}), 0o644);
  }
  if (volume?.secret) {
    const { secretName = '', defaultMode = 0o644 } = volume.secret;
    const data = Object.entries(one(objects, 'Secret', secretName).data ?? {});
    put(
      mountPath,
      data.map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]),
      defaultMode,
    );
  }
}

const variables = Object.fromEntries(env.map(({ name, value = '' }) => [name, value]));
writeFileSync(join(folder, 'pod.json'), JSON.stringify({ args, env: variables }));

function put(mountPath: string, files: readonly (readonly [string, string])[], mode: number): void {
  for (const [key, content] of files) {
    const file = join(folder ?? '', 'root', mountPath, key);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
    chmodSync(file, mode);
  }
}
