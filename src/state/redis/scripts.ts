import { readFileSync } from 'node:fs';

/** What Redis runs: the pool's own code, translated (`npm run lua`). */
export interface Scripts {
  /** Serves a call. */
  readonly lease: string;
  /** The same for a call that wants no token and tells of no client. */
  readonly report: string;
}

/** @throws the file system's error where they do not lie beside this file, as they do in dist/ too */
export function readScripts(): Scripts {
  return { lease: read('lease'), report: read('report') };
}

function read(name: keyof Scripts): string {
  return readFileSync(new URL(`./scripts/${name}.lua`, import.meta.url), 'utf8');
}
