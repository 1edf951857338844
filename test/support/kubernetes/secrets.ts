import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { KubernetesObject } from './render.ts';
import { kubectl } from './render.ts';

/** Replacements for kubectl and helm that skip everything that needs a cluster. */
const WITHOUT_CLUSTER = `helm() { :; }; cp() { :; }; kubectl() { case "$*" in *"create secret"*) "$KUBECTL" "$@" --dry-run=client --output=yaml; echo ---;; esac; };`;

const DOCUMENT = join(import.meta.dirname, '../../../docs/kubernetes.md');

/** Runs the commands of docs/kubernetes.md with a dry-run kubectl. Returns the objects they would create. */
export function makeSecrets(namespace: string): KubernetesObject[] {
  const blocks = Array.from(readFileSync(DOCUMENT, 'utf8').matchAll(/^```sh\n(.*?)^```/gms), ([, block = '']) => block);
  const commands = blocks.filter((block) => block.includes(`kubectl -n ${namespace} create secret`)).join('');
  const script = `set -eu; ${WITHOUT_CLUSTER} ${commands}`;
  const env = { PATH: process.env['PATH'], KUBECTL: kubectl() };
  return parseAllDocuments(execFileSync('sh', ['-c', script], { encoding: 'utf8', env }))
    .map((document) => document.toJS() as KubernetesObject | null)
    .filter((object) => object !== null);
}
