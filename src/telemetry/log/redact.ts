import { stdSerializers } from 'pino';

const CENSORED = '[redacted]';
const SECRET =
  /authori[sz]ation|cookie|token|secret|passw(?:or)?d|passphrase|api[-_]?key|private[-_]?key|idempotency[-_]?key/i;
/** No log call of ours nests deeper; what does is somebody's object graph. */
const MAX_DEPTH = 8;
/** Names of fields are few, but header names come from clients. */
const MAX_REMEMBERED = 1000;
const LONGEST_REMEMBERED = 64;
const verdicts = new Map<string, boolean>();

/** What has been gone through: an object met again costs nothing, and a circle ends. */
type Seen = Map<object, unknown>;

/**
 * The fields with secrets blanked, at any depth: by name (`authorization`, `set-cookie`, `apiKey`, `redisPassword` …), in
 * lists of alternating or paired names and values (rawHeaders), and in URLs. Bytes are told by their number alone.
 * Returns `fields` itself when there is nothing to blank. pino's own `redact` would need a path for each depth.
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
    let kept = value;
    if (isSecret(name)) {
      if (value !== undefined && value !== null && typeof value !== 'boolean') kept = CENSORED;
    } else if (typeof value === 'object' && value !== null) {
      seen ??= new Map([[fields, '[circular]']]);
      kept = redactObject(value, seen, depth + 1);
    }
    if (kept !== value) {
      copy ??= { ...fields };
      copy[name] = kept;
    }
  }
  return copy ?? fields;
}

function redactObject(value: object, seen: Seen, depth: number): unknown {
  if (seen.has(value)) return seen.get(value);
  if (depth > MAX_DEPTH) return '[deep]';
  seen.set(value, '[circular]');
  const kept = redactUnseen(value, seen, depth);
  seen.set(value, kept);
  return kept;
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

/** A name of a secret in a list hides what comes after it. */
function redactList(list: readonly unknown[], seen: Seen, depth: number): unknown[] {
  return list.map((item, index) => {
    const before = list[index - 1];
    if (typeof before === 'string' && typeof item === 'string' && isSecret(before)) return CENSORED;
    return typeof item === 'object' && item !== null ? redactObject(item, seen, depth + 1) : item;
  });
}

function isSecret(name: string): boolean {
  const remembered = verdicts.get(name);
  if (remembered !== undefined) return remembered;
  // A rate limiter counts tokens; those of a login have an owner in their name.
  const verdict = SECRET.test(name) && name !== 'tokens';
  if (verdicts.size < MAX_REMEMBERED && name.length <= LONGEST_REMEMBERED) verdicts.set(name, verdict);
  return verdict;
}
