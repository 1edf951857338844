/**
 * What Kubernetes would say of objects, as far as its published types tell. The models' own validators let unknown fields
 * pass; TypeScript does not, in a literal. So the objects are written down as such, and compiled.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { KubernetesObject } from './build.ts';

interface Model {
  validate(): void;
}

const MODULES = join(import.meta.dirname, '../../../node_modules');
const TSC = join(MODULES, 'typescript/bin/tsc');

const OPTIONS = {
  strict: true,
  noEmit: true,
  module: 'nodenext',
  target: 'es2024',
  types: [],
  skipLibCheck: true,
  exactOptionalPropertyTypes: true,
};

/** What is wrong with each of them, by its place in the list; nothing for those that are sound. */
export function checkTypes(objects: readonly KubernetesObject[]): ReadonlyMap<number, string> {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-kubernetes-'));
  try {
    symlinkSync(MODULES, join(folder, 'node_modules'));
    writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: OPTIONS, files: ['objects.ts'] }));
    // One a line, so that a line of the compiler's tells which it speaks of.
    writeFileSync(join(folder, 'objects.ts'), objects.map((object) => `${statement(object)}\n`).join(''));
    const { stdout, stderr, status } = spawnSync(process.execPath, [TSC, '--pretty', 'false', '-p', folder], {
      cwd: folder,
      encoding: 'utf8',
      maxBuffer: 64 * 1024 ** 2,
    });
    const told = Array.from(stdout.matchAll(/^objects\.ts\((\d+),\d+\): (.*(?:\n +.*)*)/gm));
    if (status !== 0 && told.length === 0) throw new Error(`tsc has failed: ${stdout}${stderr}`);
    return new Map(told.map(([, line, message = '']) => [Number(line) - 1, message]));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A kind that has no model is an error of its own: its module is not found. */
function statement(object: KubernetesObject): string {
  return `(${JSON.stringify(object)}) satisfies import(${JSON.stringify(moduleOf(object))}).I${object.kind};`;
}

function moduleOf({ apiVersion, kind }: KubernetesObject): string {
  const models = apiVersion.startsWith('monitoring.coreos.com/')
    ? '@kubernetes-models/prometheus-operator'
    : 'kubernetes-models';
  return `${models}/${apiVersion}/${kind}`;
}

/** Rejects where a value has not the form that its model wants: quantities, whole numbers, times. */
export async function validate(object: KubernetesObject): Promise<void> {
  const models = (await import(moduleOf(object))) as Readonly<Record<string, new (data: unknown) => Model>>;
  const Kind = models[object.kind];
  if (Kind === undefined) throw new Error(`no model of ${object.kind}`);
  new Kind(object).validate();
}
