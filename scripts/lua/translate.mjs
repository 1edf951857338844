// From the sources to Lua.

import { writeKeeper } from './keep.mjs';
import { failOn, link } from './link.mjs';
import { prune } from './prune.mjs';

const ENTRIES = [
  'core/events/proxy-events.ts',
  'core/rate/breaker/active-block.ts',
  'core/rate/rules.ts',
  'core/limits/meter.ts',
  'sharing/replicas/replica-shared-limit.ts',
  'sharing/replicas/memory-backend.ts',
];
/** What the host speaks of, and which methods it calls. */
const ROOTS = ['PooledLimit', 'LocalMeter', 'RULES', 'LIMIT_STATES', 'CUT_CAUSES', 'BLOCK_CAUSES', 'WAITS_FOR'];
const CALLED = ['now', 'serve'];

export function translate({ typescript: ts, toLua }, src) {
  const linked = link(ts, { entries: ENTRIES.map((path) => src + path), roots: ROOTS, folder: src });
  const { diagnostics, transpiledFiles } = toLua.transpileVirtualProject(
    { 'linked.ts': prune(ts, linked.text, CALLED) },
    {
      target: ts.ScriptTarget.ESNext,
      lib: ['lib.es2024.d.ts'],
      types: [],
      strict: true,
      noUncheckedIndexedAccess: true,
      removeComments: true,
      luaTarget: '5.1',
      luaLibImport: 'inline',
      noHeader: true,
    },
  );
  // What TypeScript minds now it did not mind before (a method's result is not narrowed as an accessor's is), unless it
  // cannot read it.
  failOn(
    ts,
    diagnostics.filter(({ source, code }) => source === 'typescript-to-lua' || code < 2000),
  );
  const lua = transpiledFiles.find((file) => file.lua !== undefined).lua;
  const waitsFor = `local WAITS_FOR = ${linked.constant('WAITS_FOR')}\n`;
  return { lua: waitsFor + bare(lua), keeper: writeKeeper(ts, linked, 'PooledLimit'), sources: linked.sources };
}

/** Without the module around it, and with the functions of `math` as locals. */
function bare(lua) {
  return lua
    .replace(/^local ____exports = \{\}\n/m, '')
    .replace(/^return ____exports\n?/m, '')
    .replaceAll(/\bmath\.(floor|max|min|huge)\b/g, 'math_$1');
}
