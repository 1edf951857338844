import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGES } from './compiler.ts';
import { sealScript } from './fingerprint.ts';
import { minify } from './minify.ts';
import type { Compiler } from './translate.mjs';
import { translate } from './translate.mjs';

const ROOT = join(import.meta.dirname, '../..');

/** The whole script, with its header. */
export function generateScript(compiler: Compiler): string {
  const host = readPart('host.lua');
  const { lua, stateCodec, sources } = translate(compiler, join(ROOT, 'src/'), host);
  const layout = hashLayout(stateCodec, host);
  const parts = [
    readPart('prelude.lua'),
    lua,
    `local VERSION = '${layout}'`,
    // A function of its own: Lua allows 200 locals a function.
    'return (function()',
    host.replace('--@ state codec', () => stateCodec),
    'end)()',
  ];
  const paths = sources.map((path) => path.slice(ROOT.length + 1));
  return sealScript(PACKAGES.join(' and '), paths, `${minify(parts.join('\n'))}\n`);
}

/**
 * Names the format of the stored data. It stays the same when only behaviour changes, so that a newer version can read what an
 * older one stored. Of accounts and groups it covers all of the code that writes them: that code changes rarely, and to start
 * anew is better than to misread data.
 */
function hashLayout(stateCodec: string, host: string): string {
  const [recordReplica] = /^local function recordReplica\b.*?^function store\.waitsElsewhere\b/ms.exec(host) ?? [];
  if (recordReplica === undefined) throw new Error('host.lua has no function recordReplica');
  const account = readFileSync(join(ROOT, 'src/sharing/replicas/replica-account.ts'), 'utf8');
  const written = [stateCodec, account, recordReplica].join('\0');
  return createHash('sha256').update(written).digest('hex').slice(0, 16);
}

function readPart(name: string): string {
  return readFileSync(join(import.meta.dirname, name), 'utf8');
}
