import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { z } from 'zod';
import { ScenarioSchema } from '../../src/simulator/scenario-file/scenario-schema.ts';
import { ConfigSchema } from '../../src/config/schema/config-schema.ts';
import { typeOfSchema } from './type-of-schema.ts';

const ROOT = join(import.meta.dirname, '../..');

/** What programs import: the file of types beside the bundle, and the source that it is of. */
const ENTRIES = { 'index.d.ts': 'library/index.d.ts', 'policy.d.ts': 'library/policy.d.ts' };

/** Types that are derived of schemas, written out: whoever uses them need not have what they are derived with. */
const WRITTEN_OUT: Readonly<Record<string, () => string>> = {
  'config/schema/config-schema.d.ts': () => declare('ConfigInput', 'A configuration as written.', ConfigSchema),
  'simulator/scenario-file/scenario-schema.d.ts': () =>
    declare('ScenarioInput', 'A scenario as written.', ScenarioSchema),
};

/** Imports that whoever uses the types has: that of a plugin's host. */
const OF_OTHERS: ReadonlySet<string> = new Set(['fastify']);

/**
 * Writes the types of what programs import, and of all that those name.
 * @returns how many files
 * @throws where they name what a program that installs the package would not have
 */
export function writeDeclarations(folder: string): number {
  const emitted = mkdtempSync(join(tmpdir(), 'tidegate-types-'));
  try {
    emit(emitted);
    const named = new Set<string>(Object.values(ENTRIES));
    for (const file of named) {
      const text = WRITTEN_OUT[file]?.() ?? readFileSync(join(emitted, file), 'utf8');
      const target = join(folder, 'types', file);
      mkdirSync(dirname(target), { recursive: true });
      writeFileSync(
        target,
        text.replaceAll(RELATIVE, (_, before: string, path: string) => `${before}${path}.js'`),
      );
      for (const [, , path = ''] of text.matchAll(RELATIVE)) {
        named.add(relative(emitted, join(emitted, dirname(file), `${path}.d.ts`)));
      }
      const foreign = Array.from(text.matchAll(FOREIGN), ([, name = '']) => name).find((name) => !OF_OTHERS.has(name));
      if (foreign !== undefined) throw new Error(`the types of ${file} name ${foreign}, which nobody has then`);
    }
    for (const [entry, file] of Object.entries(ENTRIES)) {
      writeFileSync(join(folder, entry), `export * from './types/${file.replace(/\.d\.ts$/, '.js')}';\n`);
    }
    return named.size + Object.keys(ENTRIES).length;
  } finally {
    rmSync(emitted, { recursive: true });
  }
}

const RELATIVE = /(\bfrom '|\bimport\(')(\.[^']*)\.ts'/g;
const FOREIGN = /(?:\bfrom '|\bimport\('|\bimport '|<reference types=")([^.'"][^'"]*)['"]/g;

function emit(folder: string): void {
  const program = join(ROOT, 'node_modules/.bin/tsc');
  const { status, stdout } = spawnSync(program, ['--project', 'src/library', '--outDir', folder], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`no types could be made: ${stdout}`);
}

function declare(name: string, description: string, schema: z.ZodType): string {
  const type = typeOfSchema(z.toJSONSchema(schema, { io: 'input' }));
  return `/** ${description} */\nexport interface ${name} ${type}\n`;
}
