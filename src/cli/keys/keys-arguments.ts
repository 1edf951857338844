/** The arguments of `tidegate keys`. */
import { suggest } from '../../config/values/suggest.ts';
import { WRITE_STATES } from '../../core/idempotency/key-inspection.ts';
import type { OptionSpecs, ParsedOptions, UsageError } from '../cli-parse.ts';
import { BOOLEAN_OPTION, STRING_OPTION, usageError } from '../cli-parse.ts';

export interface KeysCommand {
  readonly kind: 'keys';
  readonly action: KeysAction;
  readonly admin: string | undefined;
  readonly token: string | undefined;
  readonly json: boolean;
}

export type KeysAction =
  | { readonly name: 'list'; readonly query: KeysListQuery }
  | { readonly name: 'show' | 'forget'; readonly which: KeyReference };

/** The parameters of /api/keys. */
export type KeysListQuery = {
  readonly [name in 'upstream' | 'state' | 'order' | 'limit' | 'key']?: string | undefined;
};

export type KeyReference =
  | { readonly by: 'id'; readonly id: string }
  | { readonly by: 'key'; readonly key: string; readonly upstream: string | undefined };

export const KEYS_OPTIONS: OptionSpecs = {
  upstream: STRING_OPTION,
  state: STRING_OPTION,
  key: STRING_OPTION,
  oldest: BOOLEAN_OPTION,
  limit: STRING_OPTION,
  admin: STRING_OPTION,
  token: STRING_OPTION,
  json: BOOLEAN_OPTION,
};

const ACTIONS = ['list', 'show', 'forget'] as const;
const STATES = [...WRITE_STATES, 'open'];
const LIST_OPTIONS = ['state', 'oldest', 'limit'] as const;
const MAX_ROWS = 500;

export function toKeysCommand({ value, has, positionals }: ParsedOptions): KeysCommand | UsageError {
  const [word, operand, ...surplus] = positionals;
  const name = ACTIONS.find((action) => action === word);
  if (name === undefined) {
    if (word === undefined) return usageError('keys needs an action: list, show or forget');
    return usageError(`keys has no action '${word}'`, suggest(word, ACTIONS) ?? 'list, show, forget');
  }
  const common = { kind: 'keys', admin: value('admin'), token: value('token'), json: has('json') } as const;
  const [key, upstream] = [value('key'), value('upstream')];
  if (name === 'list') {
    if (operand !== undefined) return usageError(`keys list takes no '${operand}'`, `keys show ${operand}`);
    const query = toListQuery(value, has);
    return 'kind' in query ? query : { ...common, action: { name, query: { ...query, upstream, key } } };
  }
  const unused = LIST_OPTIONS.find(has);
  if (unused !== undefined) return usageError(`keys ${name} takes no --${unused}`);
  if (surplus.length > 0 || (operand !== undefined && key !== undefined)) {
    return usageError(`keys ${name} takes one ID, or --key`);
  }
  if (key !== undefined) return { ...common, action: { name, which: { by: 'key', key, upstream } } };
  if (operand === undefined) return usageError(`keys ${name} needs an ID, or --key`);
  if (upstream !== undefined) return usageError(`keys ${name} takes --upstream only with --key`);
  return { ...common, action: { name, which: { by: 'id', id: operand } } };
}

function toListQuery(
  value: ParsedOptions['value'],
  has: ParsedOptions['has'],
): Pick<KeysListQuery, 'state' | 'order' | 'limit'> | UsageError {
  const [state, limit] = [value('state'), value('limit')];
  if (state !== undefined && !STATES.includes(state)) {
    return usageError(`--state: expected ${STATES.join(', ')}`, suggest(state, STATES));
  }
  if (limit !== undefined && !(/^\d{1,3}$/.test(limit) && Number(limit) >= 1 && Number(limit) <= MAX_ROWS)) {
    return usageError(`--limit: expected a whole number from 1 to ${MAX_ROWS}`);
  }
  return { state, limit, order: has('oldest') ? 'oldest' : undefined };
}
