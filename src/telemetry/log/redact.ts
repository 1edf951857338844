import { stdSerializers } from 'pino';

const REDACTED = '[redacted]';
const SECRET_NAME =
  /authori[sz]ation|cookie|token|secret|passw(?:or)?d|passphrase|api[-_]?key|private[-_]?key|idempotency[-_]?key/i;
/** Our log calls nest less; anything deeper is an arbitrary object graph. */
const MAX_DEPTH = 8;
/** Field names are few, but header names come from clients. */
const MAX_CACHED_NAMES = 1000;
const MAX_CACHED_NAME_LENGTH = 64;
const secretNameCache = new Map<string, boolean>();

/** Objects visited so far: each is redacted once, and cycles end. */
type Seen = Map<object, unknown>;

/**
 * Redacts secrets in the fields, at any depth: by name (`authorization`, `set-cookie`, `apiKey`, `redisPassword` …), in
 * lists of alternating or paired names and values (rawHeaders), and in URLs. Binary data is replaced by its length.
 * Returns `fields` itself when there is nothing to redact. pino's own `redact` would need a path for each depth.
 */
export function redact(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return redactFields(fields, undefined, 0);
}

function redactFields(
  fields: Readonly<Record<string, unknown>>,
  known: Seen | undefined,
  depth: number,
): Record<string, unknown> {
  let copy: Record<string, unknown> | undefined;
  let seen = known;
  for (const name of Object.keys(fields)) {
    const value = fields[name];
    let redacted = value;
    if (isSecretName(name)) {
      if (value !== undefined && value !== null && typeof value !== 'boolean') redacted = REDACTED;
    } else if (typeof value === 'object' && value !== null) {
      seen ??= new Map([[fields, '[circular]']]);
      redacted = redactObject(value, seen, depth + 1);
    }
    if (redacted !== value) {
      copy ??= { ...fields };
      copy[name] = redacted;
    }
  }
  return copy ?? fields;
}

function redactObject(value: object, seen: Seen, depth: number): unknown {
  if (seen.has(value)) return seen.get(value);
  if (depth > MAX_DEPTH) return '[deep]';
  seen.set(value, '[circular]');
  const redacted = redactUnseen(value, seen, depth);
  seen.set(value, redacted);
  return redacted;
}

function redactUnseen(value: object, seen: Seen, depth: number): unknown {
  if (Array.isArray(value)) return redactList(value, seen, depth);
  if (value instanceof Error) return redactFields({ ...stdSerializers.err(value) }, seen, depth);
  if (value instanceof URL) return `${value.protocol}//${value.host}${value.pathname}`;
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `[${value.byteLength} bytes]`;
  if (hasJson(value)) {
    const json = value.toJSON();
    return typeof json === 'object' && json !== null ? redactObject(json, seen, depth + 1) : json;
  }
  return redactFields(Object.fromEntries(Object.entries(value)), seen, depth);
}

function hasJson(value: object): value is { toJSON(): unknown } {
  return 'toJSON' in value && typeof value.toJSON === 'function';
}

/** Redacts the string after the name of a secret. */
function redactList(list: readonly unknown[], seen: Seen, depth: number): unknown[] {
  return list.map((item, index) => {
    const before = list[index - 1];
    if (typeof before === 'string' && typeof item === 'string' && isSecretName(before)) return REDACTED;
    return typeof item === 'object' && item !== null ? redactObject(item, seen, depth + 1) : item;
  });
}

function isSecretName(name: string): boolean {
  const cached = secretNameCache.get(name);
  if (cached !== undefined) return cached;
  // `tokens` is a count of the rate limiter; names of access tokens have a prefix or suffix.
  const verdict = SECRET_NAME.test(name) && name !== 'tokens';
  if (secretNameCache.size < MAX_CACHED_NAMES && name.length <= MAX_CACHED_NAME_LENGTH) {
    secretNameCache.set(name, verdict);
  }
  return verdict;
}
