/** The names of what Redis keeps of keys of writes. Digests are hexadecimal there. */
import type { WriteName } from '../../keys/key-state-backend.ts';
import { NAME_STATE_LAYOUT } from './name-state-codec.ts';

/** The upstreams of a configuration have such names. */
const UPSTREAM = /^[\w.-]+$/;

/** What is kept of one upstream: all of it is in one slot of a cluster. */
export interface UpstreamKeys {
  /** Prefix of the states of names. */
  readonly names: string;
  /** The names with unresolved writes or claims. */
  readonly open: string;
  /** The other names of which something is known. */
  readonly answered: string;
  /** See key-store-time.ts. */
  readonly time: string;
  /** The clients with unresolved names. */
  readonly clients: string;
  /** Prefix of the unresolved names of each client. */
  readonly namesOfClients: string;
}

export function upstreamKeys(prefix: string, upstream: string): UpstreamKeys {
  const base = `${prefix}:{${upstream}/keys}:${NAME_STATE_LAYOUT}`;
  return {
    ...{ names: `${base}:name:`, open: `${base}:open`, answered: `${base}:answered`, time: `${base}:time` },
    ...{ clients: `${base}:clients`, namesOfClients: `${base}:client:` },
  };
}

/** Which of the clients' keys a script uses: none, `clients`, or that and the names of one client. */
export type UsedClients = 'none' | 'all' | { readonly client: string };

/** KEYS of each script: see key-scripts.ts. */
export function scriptKeys(
  prefix: string,
  upstream: string,
  names: readonly string[],
  clients: UsedClients = 'none',
): readonly string[] {
  const keys = upstreamKeys(prefix, upstream);
  const ofClients = clients === 'none' ? [] : [keys.clients];
  if (typeof clients === 'object') ofClients.push(`${keys.namesOfClients}${clients.client}`);
  return [...names.map((name) => `${keys.names}${toHex(name)}`), ...ofClients, keys.answered, keys.open, keys.time];
}

export function isUpstreamName(text: string): boolean {
  return UPSTREAM.test(text);
}

/** The glob pattern of the states of names, for SCAN. @param upstream undefined for all @param digits a pattern itself */
export function namesPattern(prefix: string, upstream: string | undefined, digits: string): string {
  const { names } = upstreamKeys(escapeGlob(prefix), upstream === undefined ? '*' : escapeGlob(upstream));
  return `${names}${digits}`;
}

/** @returns undefined for the key of something else */
export function parseNameKey(prefix: string, key: string): WriteName | undefined {
  if (!key.startsWith(prefix)) return undefined;
  const [, upstream, layout, name] = /^:\{([^}]+)\/keys\}:(\w+):name:([\da-f]+)$/.exec(key.slice(prefix.length)) ?? [];
  if (upstream === undefined || name === undefined || layout !== NAME_STATE_LAYOUT) return undefined;
  return { upstream, name: fromHex(name) };
}

/** @returns undefined for a message of another program */
export function parseAnnouncement(message: string): WriteName | undefined {
  const [, name, upstream] = /^([0-9a-f]+) (.+)$/.exec(message) ?? [];
  return name === undefined || upstream === undefined ? undefined : { upstream, name: fromHex(name) };
}

export function announcementOf({ upstream, name }: WriteName): string {
  return `${toHex(name)} ${upstream}`;
}

export function toHex(name: string): string {
  return Buffer.from(name, 'latin1').toString('hex');
}

export function fromHex(hex: string): string {
  return Buffer.from(hex, 'hex').toString('latin1');
}

function escapeGlob(text: string): string {
  return text.replaceAll(/[\\*?[\]^-]/g, String.raw`\$&`);
}
