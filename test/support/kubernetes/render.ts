import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { KubernetesProgram } from '../../setup/kubernetes-programs.ts';
import { findKubernetesProgram, HELM, KUBECTL } from '../../setup/kubernetes-programs.ts';

export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

const FOLDER = join(import.meta.dirname, '../../../config/helm');
export const CHART = join(FOLDER, 'tidegate');
const CHECKOUT = join(FOLDER, 'examples/checkout.yaml');

/** Names of the sets of values in the folder `ci` of the chart. */
export const VALUE_SETS: readonly string[] = readdirSync(join(CHART, 'ci')).map((file) =>
  file.replace('-values.yaml', ''),
);

export function valuesFile(set: string): string {
  return join(CHART, 'ci', `${set}-values.yaml`);
}

/** Renders the chart with a set of values, for a release `tidegate`. */
export function renderValueSet(set: string, namespace: string, ...args: readonly string[]): KubernetesObject[] {
  return parseObjects(
    helm('template', 'tidegate', CHART, '--namespace', namespace, '--values', valuesFile(set), ...args),
  );
}

/** Runs helm. Returns its output; throws an error with its message. */
export function helm(...args: readonly string[]): string {
  const { stdout, stderr, status, error } = spawnSync(helmPath(), args, {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 ** 2,
  });
  if (status !== 0) throw error ?? new Error(stderr);
  return stdout;
}

/** Returns the Deployment of config/helm/examples/checkout.yaml, with the patch that a release for sidecars contains. */
export function patchCheckout(patch: string): KubernetesObject {
  return patchFile(CHECKOUT, patch);
}

/** Returns a Deployment with a patch. */
export function patchDeployment(deployment: KubernetesObject, patch: string): KubernetesObject {
  return patchFile('-', patch, JSON.stringify(deployment));
}

function patchFile(file: string, patch: string, input = ''): KubernetesObject {
  // `--local` needs no cluster. The patch is one of strategic merge, as in a cluster.
  const args = ['patch', '--local', '--filename', file, '--patch', patch, '--output', 'yaml'];
  const [patched] = parseObjects(execFileSync(kubectl(), args, { encoding: 'utf8', input }));
  if (patched === undefined) throw new Error('kubectl patch has printed nothing');
  return patched;
}

/** Throws the first error of a text that is not YAML, or in which a key stands twice. */
export function parseObjects(text: string): KubernetesObject[] {
  return parseAllDocuments(text)
    .map((document) => {
      const [error] = document.errors;
      if (error !== undefined) throw error;
      return document.toJS() as KubernetesObject | null;
    })
    .filter((object) => object !== null);
}

export function helmPath(): string {
  return programOf(HELM);
}

export function kubectl(): string {
  return programOf(KUBECTL);
}

const found = new Map<KubernetesProgram, string>();

/** Keeps what it has found, because the search runs the program. */
function programOf(program: KubernetesProgram): string {
  const path = found.get(program) ?? findKubernetesProgram(program);
  if (path === undefined) throw new Error(`no recent ${program.name} is installed: node test/setup/programs.ts tests`);
  found.set(program, path);
  return path;
}
