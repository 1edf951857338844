/** A JSON Web Key Set (RFC 7517) whose keys have not been looked at. */
export interface JwksText {
  readonly keys: readonly object[];
}

/** @throws an Error without text of the file or the response */
export function parseJwks(text: string): JwksText {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new Error('not JSON');
  }
  const keys = typeof parsed === 'object' && parsed !== null && 'keys' in parsed ? parsed.keys : undefined;
  if (!Array.isArray(keys) || keys.length === 0) {
    throw new Error('not a JWKS: expected a list keys with at least one key');
  }
  return { keys: keys.filter((key) => typeof key === 'object' && key !== null) };
}
