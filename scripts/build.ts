// Bundles the program with its dependencies as ES modules; docs/start.md gives the reasons.
//
//   npm run build [-- --out FOLDER] [--types] [--modules FILE]
//
//   --types          also writes type declarations, which takes some seconds
//   --modules FILE   writes as JSON which modules of src each file contains

import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { rolldown } from 'rolldown';
import { builtins } from './build/builtins.ts';
import { filesByLoader } from './build/files.ts';
import { licences } from './build/licences.ts';
import { leftOut } from './build/left-out.ts';
import { ascii } from './build/ascii.ts';

const ROOT = join(import.meta.dirname, '..');
/** Entry points that programs import. */
const LIBRARIES: ReadonlySet<string> = new Set(['index', 'policy']);
const source = (path: string): string => join(ROOT, 'src', path);
const input = {
  // main.js beside it checks the Node version first.
  program: source('main.ts'),
  practice: source('simulator/practice/main.ts'),
  index: source('library/index.ts'),
  policy: source('library/policy.ts'),
};
const { values } = parseArgs({
  options: {
    out: { type: 'string', default: join(ROOT, 'dist') },
    types: { type: 'boolean', default: false },
    modules: { type: 'string' },
  },
});

const since = performance.now();
const bundle = await rolldown({
  input,
  platform: 'node',
  // Modules are grouped in files, so an entry may also export what other files need.
  preserveEntrySignatures: 'allow-extension',
  tsconfig: false,
  plugins: [
    builtins(),
    leftOut(),
    ascii(),
    licences('LICENCES.txt', [join(ROOT, 'node_modules/uplot'), join(ROOT, 'scripts/grpc/protos')]),
  ],
  onLog(level, log) {
    if (level === 'warn') throw new Error(log.message);
  },
});
const folder = resolve(values.out);
rmSync(folder, { recursive: true, force: true });
const { output } = await bundle.write({
  dir: folder,
  format: 'esm',
  // Imported modules run in order, so this one runs before everything that could fail in an old Node.
  banner: ({ isEntry, name }) => (isEntry && LIBRARIES.has(name) ? "import './check-node.js';" : ''),
  // All files in one folder, as src/installation.ts expects.
  entryFileNames: '[name].js',
  chunkFileNames: '[name].js',
  codeSplitting: filesByLoader(Object.values(input)),
  // Keeps names for readable error stacks.
  minify: { compress: true, mangle: false, codegen: { removeWhitespace: true } },
});
await bundle.close();
// `errorOnExist` guards against a name conflict with a bundle file.
cpSync(join(ROOT, 'scripts/build/entrance'), folder, { recursive: true, force: false, errorOnExist: true });
// Next to the chunk of src/sharing/redis/lua-script.ts, which reads it.
cpSync(join(ROOT, 'src/sharing/redis/scripts'), join(folder, 'scripts'), { recursive: true });
// Unbundled files for browsers, served by src/admin/serve-page.ts.
cpSync(join(ROOT, 'src/admin/page'), join(folder, 'page'), {
  recursive: true,
  filter: (path) => !/\.(ts|json)$/.test(path),
});
const uplot = join(ROOT, 'node_modules/uplot/dist');
cpSync(join(uplot, 'uPlot.esm.js'), join(folder, 'page/uplot.js'));
cpSync(join(uplot, 'uPlot.min.css'), join(folder, 'page/uplot.css'));
if (values.types) {
  // Imported only here, because it loads the compiler.
  const { writeDeclarations } = await import('./build/declarations.ts');
  console.log(`${writeDeclarations(folder)} files of types`);
}

if (values.modules !== undefined) {
  const own = output.flatMap((file) => (file.type === 'chunk' ? [[file.fileName, ownModules(file.moduleIds)]] : []));
  writeFileSync(values.modules, JSON.stringify(Object.fromEntries(own)));
}

const size = output.reduce((sum, file) => sum + (file.type === 'chunk' ? Buffer.byteLength(file.code) : 0), 0);
console.log(
  `${output.length} files, ${(size / 1024).toFixed(0)} KiB, in ${(performance.now() - since).toFixed(0)} ms: ${folder}`,
);

function ownModules(ids: readonly string[]): string[] {
  return ids.map((id) => relative(source(''), id)).filter((path) => !path.startsWith('.'));
}
