import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { findKubectl } from '../../setup/find-kubectl.ts';

export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

export const FOLDER = join(import.meta.dirname, '../../../config/kubernetes');

/** Builds an overlay of config/kubernetes with kustomize. */
export function build(overlay: string): KubernetesObject[] {
  const folder = join(FOLDER, 'overlays', overlay);
  const text = execFileSync(kubectl(), ['kustomize', folder], { encoding: 'utf8' });
  return parseAllDocuments(text).map((document) => document.toJS() as KubernetesObject);
}

export function kubectl(): string {
  const program = findKubectl();
  if (program === undefined) throw new Error('there is no kubectl of today: node test/setup/programs.ts tests');
  return program;
}
