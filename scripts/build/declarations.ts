import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { z } from 'zod';
import { ScenarioSchema } from '../../src/simulator/scenario-file/scenario-schema.ts';
import { ConfigSchema } from '../../src/config/schema/config-schema.ts';
import { typeOfSchema } from './type-of-schema.ts';

const ROOT = join(import.meta.dirname, '../..');

/** Declaration files beside the bundle, and the sources they are generated from. */
const ENTRIES = { 'index.d.ts': 'library/index.d.ts', 'policy.d.ts': 'library/policy.d.ts' };

/** Types derived from schemas, written out so that users do not need the schema library. */
const WRITTEN_OUT: Readonly<Record<string, () => string>> = {
  'config/schema/config-schema.d.ts': () => declare('ConfigInput', 'A configuration as written.', ConfigSchema),
  'simulator/scenario-file/scenario-schema.d.ts': () =>
    declare('ScenarioInput', 'A scenario as written.', ScenarioSchema),
};

/** Packages that users of the types have installed: the host of the plugin. */
const OF_OTHERS: ReadonlySet<string> = new Set(['fastify']);

/**
 * Writes the declarations of the entry points and all types they refer to.
 * @returns the number of files
 * @throws if they refer to a package that users do not have
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
      if (foreign !== undefined) throw new Error(`the types of ${file} name ${foreign}, which users do not have`);
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
  // `npm run types` checks the sources. To check them here too, on several threads, takes five times as much processor time.
  const args = ['--project', 'src/library', '--noCheck', '--singleThreaded', '--outDir', folder];
  const { status, stdout } = spawnSync(program, args, { cwd: ROOT, encoding: 'utf8' });
  if (status !== 0) throw new Error(`no types could be made: ${stdout}`);
}

function declare(name: string, description: string, schema: z.ZodType): string {
  const type = typeOfSchema(z.toJSONSchema(schema, { io: 'input' }));
  return `/** ${description} */\nexport interface ${name} ${type}\n`;
}
