import { readFileSync } from 'node:fs';

/** The parts of a limit that have keys of their own, in the order of the script. */
export const LIMIT_KEYS = ['limit', 'accounts', 'heard', 'waiting-0', 'waiting-1', 'returning-0', 'returning-1'];

/** The script that serves a request in Redis. `npm run lua` generates it from the code that serves one in memory. */
export interface LuaScript {
  readonly source: string;
  /** Names the format of the data that the script stores: other versions may use another format. */
  readonly layout: string;
}

/** @throws the file system's error if the script is not in the folder beside this file, as in dist/ */
export function loadLuaScript(): LuaScript {
  const source = readFileSync(new URL('./scripts/limit.lua', import.meta.url), 'utf8');
  const [, layout] = /^local VERSION = '([0-9a-f]+)'$/m.exec(source) ?? [];
  if (layout === undefined) throw new Error('limit.lua does not name its layout: run npm run lua');
  return { source, layout };
}
