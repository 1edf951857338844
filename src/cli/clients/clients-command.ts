/** `tidegate clients`: creates, lists and removes API keys in the file that `clients.auth.apiKeys.file` names. */
import {
  appendFileSync,
  chmodSync,
  chownSync,
  existsSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createApiKey, hashApiKey } from '../../config/auth/api-key.ts';
import { formatKeyLine, KEY_FILE_HEADING, parseKeyFile, type StoredApiKey } from '../../config/auth/key-file.ts';
import { describeFileError } from '../../config/load/substitute.ts';
import type { EpochMillis } from '../../core/quota/calendar/quota-period.ts';
import type { ClientsAction, ClientsCommand, KeyExpiry } from './clients-arguments.ts';

export interface ClientsResult {
  readonly text: string;
  /** For people: not part of what a script reads. */
  readonly remarks: string;
  readonly exitCode: 0 | 1;
}

/** Group and others must not add keys; the hashes are of no use to whoever reads them. */
const FILE_MODE = 0o640;

/** Never throws. @param now the time of the creation */
export function runClients({ file, json, action }: Omit<ClientsCommand, 'kind'>, now = new Date()): ClientsResult {
  try {
    switch (action.name) {
      case 'add':
        return addKey(file, action, json, now);
      case 'list':
        return listKeys(file, json, now);
      case 'remove':
        return removeKeys(file, action.which, json);
    }
  } catch (error) {
    const problem = error instanceof Error && !('code' in error) ? error.message : describeFileError(error);
    return { text: '', remarks: `tidegate: ${file}: ${problem}\n`, exitCode: 1 };
  }
}

type AddAction = Extract<ClientsAction, { readonly name: 'add' }>;

function addKey(file: string, { client, expiry }: AddAction, json: boolean, now: Date): ClientsResult {
  const at = expiry === undefined ? undefined : timeOf(expiry, now.getTime());
  if (at !== undefined && at <= now.getTime()) {
    return { text: '', remarks: `tidegate: --expires ${toSeconds(at)} is over already\n`, exitCode: 1 };
  }
  const text = existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  parseKeyFile(text ?? ''); // before anything is written to a file that is something else
  const { id, text: key } = createApiKey();
  const createdAt = toSeconds(now.getTime());
  const expires = at === undefined ? {} : { expiresAt: toSeconds(at) };
  const line = formatKeyLine({ id, hash: hashApiKey(key), createdAt, ...expires, client });
  const before = text === undefined ? KEY_FILE_HEADING : text === '' || text.endsWith('\n') ? '' : '\n';
  // In one write, so that a process that reads the file meanwhile sees all of the line or nothing of it.
  appendFileSync(file, `${before}${line}`, { mode: FILE_MODE });
  if (json) {
    return { text: `${JSON.stringify({ id, client, createdAt, ...expires, key })}\n`, remarks: '', exitCode: 0 };
  }
  const until = at === undefined ? '' : `, which expires at ${toSeconds(at)}`;
  return { text: `${key}\n`, remarks: `added key ${id} of ${client}${until}; it is not shown again\n`, exitCode: 0 };
}

function timeOf(expiry: KeyExpiry, now: EpochMillis): EpochMillis {
  return expiry.kind === 'at' ? expiry.time : now + expiry.lifetime;
}

/** ISO 8601, to the second. */
function toSeconds(at: EpochMillis): string {
  return `${new Date(at).toISOString().slice(0, 19)}Z`;
}

function listKeys(file: string, json: boolean, now: Date): ClientsResult {
  const keys = parseKeyFile(readFileSync(file, 'utf8'));
  if (json) {
    const rows = keys.map(({ id, client, createdAt, expiresAt }) => ({ id, client, createdAt, expiresAt }));
    return { text: `${JSON.stringify({ keys: rows })}\n`, remarks: '', exitCode: 0 };
  }
  if (keys.length === 0) return { text: 'no keys\n', remarks: '', exitCode: 0 };
  const lines = keys.map(({ id, createdAt, expiresAt, client }) => {
    const isExpired = expiresAt !== undefined && Date.parse(expiresAt) <= now.getTime();
    return `${id}  ${createdAt}  ${(expiresAt ?? 'never').padEnd(20)}  ${client}${isExpired ? ' (expired)' : ''}\n`;
  });
  const heading = `${'id'.padEnd(12)}  ${'created'.padEnd(20)}  ${'expires'.padEnd(20)}  client\n`;
  return { text: `${heading}${lines.join('')}`, remarks: '', exitCode: 0 };
}

/** Other lines, comments among them, stay as they are. */
function removeKeys(file: string, which: string, json: boolean): ClientsResult {
  const text = readFileSync(file, 'utf8');
  const isMeant = ({ id, client }: StoredApiKey): boolean => id === which || client === which;
  const removed = parseKeyFile(text).filter(isMeant);
  if (removed.length === 0) {
    return {
      text: '',
      remarks: `tidegate: ${file} has no key of a client '${which}', and none with this id\n`,
      exitCode: 1,
    };
  }
  const ids = removed.map(({ id }) => id);
  const kept = text.split('\n').filter((line) => !ids.includes(line.trim().slice(0, 12)));
  replaceFile(file, kept.join('\n'));
  if (json) return { text: `${JSON.stringify({ removed: ids })}\n`, remarks: '', exitCode: 0 };
  return { text: ids.map((id) => `removed key ${id}\n`).join(''), remarks: '', exitCode: 0 };
}

/**
 * Atomic, so that nobody reads a part of it. The file keeps its permissions and its owner: a file that Tidegate cannot read would leave the
 * removed keys valid. A symbolic link stays one, so that its target changes.
 */
function replaceFile(link: string, text: string): void {
  const file = realpathSync(link);
  const { mode, uid, gid } = statSync(file);
  const next = `${file}.${process.pid}.new`;
  try {
    writeFileSync(next, text, { mode: 0o600, flag: 'wx' });
    const created = statSync(next);
    if (created.uid !== uid || created.gid !== gid) chownSync(next, uid, gid);
    chmodSync(next, mode & 0o777); // unlike the mode of a new file, not subject to the umask
    renameSync(next, file);
  } catch (error) {
    rmSync(next, { force: true });
    throw error;
  }
}
