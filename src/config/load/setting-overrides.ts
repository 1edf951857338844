import type { Path } from './mistakes.ts';
import { isMapping, valueAt } from '../values/plain-object.ts';

/** A setting of a flag or a variable, which takes precedence over the file. */
export interface SettingOverride {
  readonly setting: 'upstream' | 'listen' | 'admin' | 'clientKey' | 'logLevel' | 'redisUrl';
  /** The flag or variable, as mistakes name it: `--listen`, `TIDEGATE_LISTEN`. */
  readonly source: string;
  readonly text: string;
}

type OverrideResult = { readonly paths: readonly Path[] } | { readonly problem: string };

/** The upstream of `--upstream` if no file names one. */
const DEFAULT_UPSTREAM = 'default';

/** Sets the value in the configuration as written. @param root changed in place */
export function applySettingOverride(root: object, { setting, text }: SettingOverride): OverrideResult {
  switch (setting) {
    case 'listen': {
      // Keeps the certificate of the file.
      const listen = valueAt(root, ['listen']);
      return setAt(root, isMapping(listen) ? ['listen', 'address'] : ['listen'], text);
    }
    case 'logLevel':
      return setAt(root, ['log', 'level'], text);
    case 'clientKey':
      return setAt(
        root,
        ['clients', 'key'],
        text.split(',').map((key) => key.trim()),
      );
    case 'admin': {
      if (text === 'false' || text === 'off') return setAt(root, ['admin'], false);
      // Keeps the token of the file.
      const admin = valueAt(root, ['admin']);
      return setAt(root, isMapping(admin) ? ['admin', 'listen'] : ['admin'], text);
    }
    case 'redisUrl': {
      // Keeps the other settings of the store.
      const store = setAt(root, ['state', 'store'], 'redis');
      const url = setAt(root, ['state', 'url'], text);
      return { paths: [...store.paths, ...url.paths] };
    }
    case 'upstream': {
      const names = Object.keys(valueAt(root, ['upstreams']) ?? {});
      if (names.length > 1) {
        return { problem: `the file has ${names.length} upstreams: change the url of one of them in the file` };
      }
      const name = names[0] ?? DEFAULT_UPSTREAM;
      const upstream = valueAt(root, ['upstreams', name]);
      if (isMapping(upstream)) Reflect.deleteProperty(upstream, 'urls');
      return setAt(root, ['upstreams', name, 'url'], text);
    }
  }
}

/** Leaves anything other than a mapping on the way as it is: the schema reports it. */
function setAt(root: object, path: Path, value: unknown): { readonly paths: readonly Path[] } {
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
