/** The file with the hashes of API keys: a key on each line, with its id, its hash, the time of its creation, its expiry and its client. */

/** A key as the file has it. */
export interface StoredApiKey {
  readonly id: string;
  /** SHA-256. */
  readonly hash: Buffer;
  /** ISO 8601, to the second. */
  readonly createdAt: string;
  /** From then on, the key is not valid. ISO 8601, to the second; absent if it does not expire. */
  readonly expiresAt?: string;
  /** The name of its client. Several keys may have the same. */
  readonly client: string;
}

/** Names of clients: they become labels, fields of the log and patterns. */
const CLIENT_NAME = /^[!-~]{1,128}$/;
export const CLIENT_NAME_EXPECTED = 'a name has 1 to 128 printable ASCII characters, without spaces';

const LINE =
  /^(?<id>[0-9a-f]{12})\s+sha256:(?<hash>[0-9a-f]{64})\s+(?<createdAt>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)(?:\s+expires:(?<expiresAt>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ))?\s+(?<client>[!-~]{1,128})$/;

export const KEY_FILE_HEADING =
  '# Hashes of the API keys of Tidegate. Each line: id, SHA-256, creation, expiry if any, client. See tidegate help clients.\n';

export function isClientName(name: string): boolean {
  return CLIENT_NAME.test(name) && !name.startsWith('#');
}

/**
 * Reads the text of the file. Empty lines and lines that begin with `#` are ignored.
 * @throws an Error that names the line; it never contains text of the file
 */
export function parseKeyFile(text: string): readonly StoredApiKey[] {
  const keys = new Map<string, StoredApiKey>();
  for (const [i, each] of text.split('\n').entries()) {
    const line = each.trim();
    if (line === '' || line.startsWith('#')) continue;
    const { id, hash, createdAt, expiresAt, client } = LINE.exec(line)?.groups ?? {};
    if (id === undefined || hash === undefined || createdAt === undefined || client === undefined) {
      throw new Error(`line ${i + 1}: expected the id, sha256:HASH, the time and the client of a key`);
    }
    if (keys.has(id)) throw new Error(`line ${i + 1}: the id ${id} is used twice`);
    if (expiresAt !== undefined && !isDateTime(expiresAt)) {
      throw new Error(`line ${i + 1}: the time after expires: does not exist`);
    }
    const expiry = expiresAt === undefined ? {} : { expiresAt };
    keys.set(id, { id, hash: Buffer.from(hash, 'hex'), createdAt, ...expiry, client });
  }
  return [...keys.values()];
}

/** `Date` reads 30 February as 2 March. */
function isDateTime(text: string): boolean {
  const time = Date.parse(text);
  return !Number.isNaN(time) && new Date(time).toISOString() === text.replace('Z', '.000Z');
}

/** The line of a key, line feed included. */
export function formatKeyLine({ id, hash, createdAt, expiresAt, client }: StoredApiKey): string {
  const expiry = expiresAt === undefined ? '' : ` expires:${expiresAt}`;
  return `${id} sha256:${hash.toString('hex')} ${createdAt}${expiry} ${client}\n`;
}
