// Translates the sources to Lua.

import { checkHost } from './check-host.mjs';
import { failOn, link } from './link.mjs';
import { prune } from './prune.mjs';
import { generateStateCodec } from './state-codec.mjs';

const ENTRIES = [
  'core/limits/limit-state.ts',
  'core/rate/breaker/active-block.ts',
  'core/rate/rules.ts',
  'core/limits/local-meter.ts',
  'sharing/replicas/replica-shared-limit.ts',
  'sharing/replicas/memory-backend.ts',
];
/** The class whose instances Redis stores. */
const LIMIT_CLASS = 'ReplicaSharedLimit';
/** The names of constants in the sources, and of locals in the script. */
const WINDOWS = ['WAITING_WINDOW', 'RETURNING_WINDOW'];
/** The declarations that host.lua uses, and the methods that it calls. */
const ROOTS = [LIMIT_CLASS, 'LocalMeter', 'RATE_RULES', 'LIMIT_STATES', 'CUT_CAUSES', 'BLOCK_CAUSES', ...WINDOWS];
const CALLED = ['now', 'retention', 'serve', 'takeClaimed'];

export function translate({ typescript: ts, toLua }, src, host) {
  const linked = link(ts, { entries: ENTRIES.map((path) => src + path), roots: ROOTS, folder: src });
  checkHost(ts, linked, host);
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
  // The linked file may have type errors that the sources do not have, for the result of a method is not narrowed as an
  // accessor is. Only errors of syntax and of the translation count.
  failOn(
    ts,
    diagnostics.filter(({ source, code }) => source === 'typescript-to-lua' || code < 2000),
  );
  const lua = transpiledFiles.find((file) => file.lua !== undefined).lua;
  return {
    lua: `${WINDOWS.map((name) => `local ${name} = ${linked.constant(name)}\n`).join('')}${stripModule(lua)}`,
    stateCodec: generateStateCodec(ts, linked, LIMIT_CLASS),
    sources: linked.sources,
  };
}

/** Removes the module around the code, and calls the functions of `math` by locals. */
function stripModule(lua) {
  return lua
    .replace(/^local ____exports = \{\}\n/m, '')
    .replace(/^return ____exports\n?/m, '')
    .replaceAll(/\bmath\.(floor|max|min|huge)\b/g, 'math_$1');
}
