/**
 * Validates objects against the published types of Kubernetes. The models' own validators accept unknown fields;
 * TypeScript rejects them in literals, so the objects are written as literals and compiled.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { KubernetesObject } from './render.ts';

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

/** Returns the error of each invalid object by its index. */
export function checkTypes(objects: readonly KubernetesObject[]): ReadonlyMap<number, string> {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-kubernetes-'));
  try {
    symlinkSync(MODULES, join(folder, 'node_modules'));
    writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: OPTIONS, files: ['objects.ts'] }));
    // One object a line, so that the line number of an error identifies it.
    writeFileSync(join(folder, 'objects.ts'), objects.map((object) => `${statement(object)}\n`).join(''));
    const { stdout, stderr, status } = spawnSync(process.execPath, [TSC, '--pretty', 'false', '-p', folder], {
      cwd: folder,
      encoding: 'utf8',
      maxBuffer: 64 * 1024 ** 2,
    });
    const errors = Array.from(stdout.matchAll(/^objects\.ts\((\d+),\d+\): (.*(?:\n +.*)*)/gm));
    if (status !== 0 && errors.length === 0) throw new Error(`tsc has failed: ${stdout}${stderr}`);
    return new Map(errors.map(([, line, message = '']) => [Number(line) - 1, message]));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A kind without a model is a compile error, because its module is not found. */
function statement(object: KubernetesObject): string {
  return `(${JSON.stringify(object)}) satisfies import(${JSON.stringify(moduleOf(object))}).I${object.kind};`;
}

function moduleOf({ apiVersion, kind }: KubernetesObject): string {
  const models = apiVersion.startsWith('monitoring.coreos.com/')
    ? '@kubernetes-models/prometheus-operator'
    : 'kubernetes-models';
  return `${models}/${apiVersion}/${kind}`;
}

/** Rejects if a value does not match the format of its model: quantities, integers, times. */
export async function validate(object: KubernetesObject): Promise<void> {
  const models = (await import(moduleOf(object))) as Readonly<Record<string, new (data: unknown) => Model>>;
  const Kind = models[object.kind];
  if (Kind === undefined) throw new Error(`no model of ${object.kind}`);
  new Kind(object).validate();
}
