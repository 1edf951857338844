// Writes what kubelet would give to the Tidegate container of a release of the Helm chart. Arguments: the mode of the release, and an
// output folder, which gets the mounted files in `root/` and the command and environment in `pod.json`.

import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { one } from '../support/kubernetes/objects.ts';
import type { ChartRelease } from '../support/kubernetes/releases.ts';
import { readRelease } from '../support/kubernetes/releases.ts';

const [mode, folder] = process.argv.slice(2);
assert.ok(mode && folder, 'usage: pod.ts MODE FOLDER');

const { objects: made, secrets, pod, tidegate } = readRelease(mode as ChartRelease['name']);
const objects = [...made, ...secrets];
const { args = [], env = [], volumeMounts = [] } = tidegate;

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
