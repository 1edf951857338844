import type { Path } from './mistakes.ts';
import { valueAt } from './schema-issues.ts';

/** A setting that a flag or a variable gives, over what the file says. */
export interface Given {
  readonly setting: 'upstream' | 'listen' | 'admin' | 'clientKey' | 'logLevel' | 'redisUrl';
  /** The flag or variable, as mistakes name it: `--listen`, `TIDEGATE_LISTEN`. */
  readonly source: string;
  readonly text: string;
}

type Laid = { readonly paths: readonly Path[] } | { readonly refused: string };

/** The upstream of `--upstream` where no file names one. */
const DEFAULT_UPSTREAM = 'default';

/** Writes the setting into the configuration as written. @param root changed in place */
export function lay(root: object, { setting, text }: Given): Laid {
  switch (setting) {
    case 'listen': {
      // The certificate of the file is kept.
      const listen = valueAt(root, ['listen']);
      return put(root, typeof listen === 'object' && listen !== null ? ['listen', 'address'] : ['listen'], text);
    }
    case 'logLevel':
      return put(root, ['log', 'level'], text);
    case 'clientKey':
      return put(
        root,
        ['clients', 'key'],
        text.split(',').map((key) => key.trim()),
      );
    case 'admin': {
      if (text === 'false' || text === 'off') return put(root, ['admin'], false);
      // The token of the file is kept.
      const admin = valueAt(root, ['admin']);
      return put(root, typeof admin === 'object' && admin !== null ? ['admin', 'listen'] : ['admin'], text);
    }
    case 'redisUrl': {
      // What else the file says of it is kept.
      const store = put(root, ['state', 'store'], 'redis');
      const url = put(root, ['state', 'url'], text);
      return { paths: [...store.paths, ...url.paths] };
    }
    case 'upstream': {
      const names = Object.keys(valueAt(root, ['upstreams']) ?? {});
      if (names.length > 1) return { refused: `the file has ${names.length} upstreams: change the url of one there` };
      const name = names[0] ?? DEFAULT_UPSTREAM;
      const upstream = valueAt(root, ['upstreams', name]);
      if (typeof upstream === 'object' && upstream !== null) Reflect.deleteProperty(upstream, 'urls');
      return put(root, ['upstreams', name, 'url'], text);
    }
  }
}

/** Where the file has something else than a mapping on the way, that stays: it is a mistake of its own. */
function put(root: object, path: Path, value: unknown): { readonly paths: readonly Path[] } {
  let at = root;
  for (const step of path.slice(0, -1)) {
    const next = valueAt(at, [step]) ?? {};
    if (typeof next !== 'object') return { paths: [path] };
    Reflect.set(at, step, next);
    at = next;
  }
  Reflect.set(at, path.at(-1) ?? '', value);
  return { paths: [path] };
}
