/** `tidegate keys`: lists, shows and forgets the idempotency keys of a running proxy. */
import type { ForgottenKey, KeyRow, KeysPage } from '../../admin/page/api-types.ts';
import type { AdminRequest, CommandFailure } from '../admin-request.ts';
import { notFromTidegate, requestAdmin } from '../admin-request.ts';
import { formatKey, formatKeyList, formatKeys } from './format-keys.ts';
import type { KeyReference, KeysCommand, KeysListQuery } from './keys-arguments.ts';

export type KeysOptions = Omit<KeysCommand, 'kind'>;
export type KeysResult = { readonly kind: 'done'; readonly text: string } | CommandFailure;

type Fetched<T> = { readonly kind: 'fetched'; readonly data: T } | CommandFailure;
type Access = Pick<AdminRequest, 'admin' | 'token'>;

const PROBLEMS = [400, 403, 404, 409, 503];

/** Never rejects: a failure has a message with the cause and a remedy. */
export async function runKeys({ action, json, ...access }: KeysOptions): Promise<KeysResult> {
  if (action.name === 'list') return print(await fetchPage(access, action.query, 'keys'), json, formatKeyList);
  const { which } = action;
  if (action.name === 'show') {
    return which.by === 'id'
      ? print(await fetchKey<KeyRow>(access, 'GET', which.id), json, formatKey)
      : print(await fetchKnown(access, which), json, formatKeys);
  }
  const id = which.by === 'id' ? { kind: 'fetched' as const, data: which.id } : await findOnlyId(access, which);
  if (id.kind === 'failed') return id;
  return print(await fetchKey<ForgottenKey>(access, 'DELETE', id.data), json, formatForgotten);
}

function print<T>(fetched: Fetched<T>, json: boolean, format: (data: T) => string): KeysResult {
  if (fetched.kind === 'failed') return fetched;
  return { kind: 'done', text: json ? `${JSON.stringify(fetched.data)}\n` : format(fetched.data) };
}

async function fetchPage(access: Access, query: KeysListQuery, subject: string): Promise<Fetched<KeysPage>> {
  const given = Object.entries(query).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, value]],
  );
  const path = `/api/keys${given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`}`;
  return fetchData(access, { method: 'GET', path, subject }, isKeysPage);
}

/** The writes with a key; fails if there is none. */
async function fetchKnown(
  access: Access,
  { key, upstream }: Extract<KeyReference, { readonly by: 'key' }>,
): Promise<Fetched<KeysPage>> {
  const fetched = await fetchPage(access, { key, upstream }, '--key');
  if (fetched.kind === 'failed' || fetched.data.keys.length > 0) return fetched;
  const where = upstream === undefined ? '' : ` at ${upstream}`;
  const message = fetched.data.truncated
    ? `no request with this key${where} is among those searched: Redis has more keys than one request searches`
    : `no request with this key${where} is known`;
  return { kind: 'failed', message, exitCode: 1 };
}

async function findOnlyId(
  access: Access,
  which: Extract<KeyReference, { readonly by: 'key' }>,
): Promise<Fetched<string>> {
  const known = await fetchKnown(access, which);
  if (known.kind === 'failed') return known;
  if (known.data.truncated) {
    const message = 'Redis has more keys than one request searches, and others may have this key; forget one by its id';
    return { kind: 'failed', message, exitCode: 1 };
  }
  const [row, ...others] = known.data.keys;
  if (row !== undefined && others.length === 0) return { kind: 'fetched', data: row.id };
  const ids = known.data.keys.map(({ id, upstream }) => `${id} (${upstream})`).join(', ');
  return { kind: 'failed', message: `several writes have this key; forget one by its id: ${ids}`, exitCode: 1 };
}

function fetchKey<T extends KeyRow>(access: Access, method: 'GET' | 'DELETE', id: string): Promise<Fetched<T>> {
  const path = `/api/keys/${encodeURIComponent(id)}`;
  return fetchData(access, { method, path, subject: id }, (data): data is T => isKeyRow(data));
}

async function fetchData<T>(
  access: Access,
  request: Pick<AdminRequest, 'method' | 'path' | 'subject'>,
  isExpected: (data: unknown) => data is T,
): Promise<Fetched<T>> {
  const response = await requestAdmin({ ...access, ...request, problems: PROBLEMS });
  if (response.kind === 'failed') return response;
  const { payload } = response;
  return isExpected(payload) ? { kind: 'fetched', data: payload } : notFromTidegate(access.admin);
}

function formatForgotten(forgotten: ForgottenKey): string {
  return `${formatKey(forgotten)}${['Forgotten.', ...forgotten.notes].join(' ')}\n`;
}

/** Checks what is printed: the proxy may be of another version. */
function isKeysPage(data: unknown): data is KeysPage {
  if (typeof data !== 'object' || data === null || !('keys' in data) || !Array.isArray(data.keys)) return false;
  return 'matching' in data && typeof data.matching === 'number' && data.keys.every(isKeyRow);
}

function isKeyRow(data: unknown): data is KeyRow {
  if (typeof data !== 'object' || data === null) return false;
  const areStrings = ['id', 'upstream', 'state'].every((name) => typeof Reflect.get(data, name) === 'string');
  return (
    areStrings && ['requests', 'responses', 'finalFor'].every((name) => typeof Reflect.get(data, name) === 'number')
  );
}
