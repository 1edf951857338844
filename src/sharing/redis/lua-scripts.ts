import { readFileSync } from 'node:fs';

/** What Redis runs: the pool's own code, translated (`npm run lua`). */
export interface Scripts {
  /** Serves a call. */
  readonly lease: string;
  /** The same for a call that wants no token and tells of no client. */
  readonly report: string;
  /** What names the form in which they keep a limit: those of another version may keep it in another. */
  readonly layout: string;
}

/** @throws the file system's error where they do not lie beside this file, as they do in dist/ too */
export function readScripts(): Scripts {
  const lease = read('lease');
  const [, layout] = /^local VERSION = '([0-9a-f]+)'$/m.exec(lease) ?? [];
  if (layout === undefined) throw new Error('the scripts do not say how they keep a limit: npm run lua');
  return { lease, report: read('report'), layout };
}

function read(name: 'lease' | 'report'): string {
  return readFileSync(new URL(`./scripts/${name}.lua`, import.meta.url), 'utf8');
}
