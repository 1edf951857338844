/** Makes `npm start` start the built program at once, without npm and the sources, which take three times as much processor time. */
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { builtProgram } from '../programs/built-program.ts';

const ROOT = join(import.meta.dirname, '../../..');
/** What stands in for these scripts of the package does the same. */
const STAND_FOR = {
  start: 'exec node scripts/start.ts',
  practice: 'exec node src/simulator/practice/main.ts',
} as const;

/**
 * Writes a program `npm` into the folder, which must be the first one in PATH. It knows `npm start`, with or without `--silent`
 * and arguments after `--`, and the practice API. It fails for everything else.
 */
export function writeStandInForNpm(folder: string): void {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  for (const [name, command] of Object.entries(STAND_FOR)) {
    if (scripts[name] !== command) throw new Error(`the script ${name} of package.json is no longer: ${command}`);
  }
  const start = join(folder, 'start.ts');
  writeFileSync(start, startBuilt(readFileSync(join(ROOT, 'scripts/start.ts'), 'utf8')));
  const npm = join(folder, 'npm');
  writeFileSync(
    npm,
    `#!/bin/sh
case "$*" in
  start | 'start --silent') set -- ;;
  'start -- '*) shift 2 ;;
  'start --silent -- '*) shift 3 ;;
  'run practice -- '*) shift 3; exec node '${builtProgram('practice')}' "$@" ;;
  *) echo "only npm can do this: npm $*" >&2; exit 1 ;;
esac
export npm_lifecycle_event=start npm_package_name=tidegate npm_execpath=npm
exec node '${start}' "$@"
`,
  );
  chmodSync(npm, 0o755);
}

/** The script of `npm start`, with the built program. */
function startBuilt(script: string): string {
  const modules = [
    ['../src/main.ts', builtProgram('main')],
    ['../src/cli/npm-start.ts', join(ROOT, 'src/cli/npm-start.ts')],
  ] as const;
  return modules.reduce((text, [from, to]) => {
    if (!text.includes(`'${from}'`)) throw new Error(`scripts/start.ts no longer imports ${from}`);
    return text.replace(`'${from}'`, `'${pathToFileURL(to).href}'`);
  }, script);
}
