/** The arguments of `tidegate deliveries`. */
import { suggest } from '../../config/values/suggest.ts';
import { DELIVERY_STATES } from '../../core/delivery/delivery-states.ts';
import type { OptionSpecs, ParsedOptions, UsageError } from '../cli-parse.ts';
import { BOOLEAN_OPTION, STRING_OPTION, usageError } from '../cli-parse.ts';

export interface DeliveriesCommand {
  readonly kind: 'deliveries';
  readonly action: DeliveriesAction;
  readonly admin: string | undefined;
  readonly token: string | undefined;
  readonly json: boolean;
}

export type DeliveriesAction =
  | { readonly name: 'list'; readonly query: DeliveriesListQuery }
  | { readonly name: 'show'; readonly id: string; readonly message: boolean }
  | { readonly name: 'retry' | 'cancel'; readonly id: string }
  /** `confirmed`: how many are retried; undefined: they are counted only. */
  | { readonly name: 'retry-all'; readonly query: DeliveriesListQuery; readonly confirmed: number | undefined }
  | { readonly name: 'export'; readonly query: DeliveriesListQuery; readonly message: boolean };

/** The parameters of /api/deliveries. */
export type DeliveriesListQuery = {
  readonly [name in 'state' | 'route' | 'after' | 'limit']?: string | undefined;
};

export const DELIVERIES_OPTIONS: OptionSpecs = {
  state: STRING_OPTION,
  route: STRING_OPTION,
  after: STRING_OPTION,
  limit: STRING_OPTION,
  message: BOOLEAN_OPTION,
  confirm: STRING_OPTION,
  admin: STRING_OPTION,
  token: STRING_OPTION,
  json: BOOLEAN_OPTION,
};

/** By action, in addition to those that say where the proxy is. */
const ACTION_OPTIONS = {
  list: ['state', 'route', 'after', 'limit', 'json'],
  show: ['message', 'json'],
  retry: ['state', 'route', 'confirm', 'json'],
  cancel: ['json'],
  export: ['state', 'route', 'after', 'message'],
} as const;
type ActionWord = keyof typeof ACTION_OPTIONS;

const ACTIONS: readonly ActionWord[] = ['list', 'show', 'retry', 'cancel', 'export'];
const STATES = [...DELIVERY_STATES, 'open'];
const RETRIED_STATES = ['dead', 'canceled', 'waiting'];
/** Of a page of the API. */
const MAX_ROWS = 500;

export function toDeliveriesCommand(options: ParsedOptions): DeliveriesCommand | UsageError {
  const { value, has, positionals } = options;
  const [word, ...operands] = positionals;
  const name = ACTIONS.find((action) => action === word);
  if (name === undefined) {
    if (word === undefined) return usageError('deliveries needs an action: list, show, retry, cancel or export');
    return usageError(`deliveries has no action '${word}'`, suggest(word, ACTIONS) ?? ACTIONS.join(', '));
  }
  const allowed: readonly string[] = [...ACTION_OPTIONS[name], 'admin', 'token'];
  const unused = Object.keys(DELIVERIES_OPTIONS).find((option) => has(option) && !allowed.includes(option));
  if (unused !== undefined) return usageError(`deliveries ${name} takes no --${unused}`);
  const action = toAction(name, operands, options);
  if ('kind' in action) return action;
  return { kind: 'deliveries', action, admin: value('admin'), token: value('token'), json: has('json') };
}

function toAction(
  name: ActionWord,
  [id, ...surplus]: readonly string[],
  { value, has }: ParsedOptions,
): DeliveriesAction | UsageError {
  if (surplus.length > 0) return usageError(`deliveries ${name} takes one ID`);
  const query = {
    ...{ state: value('state'), route: value('route') },
    ...{ after: value('after'), limit: value('limit') },
  };
  const wrong = checkQuery(query, name === 'retry' ? RETRIED_STATES : STATES);
  if (wrong !== undefined) return wrong;
  if (name === 'list' || name === 'export') {
    if (id !== undefined) return usageError(`deliveries ${name} takes no '${id}'`, `deliveries show ${id}`);
    return name === 'list' ? { name, query } : { name, query, message: has('message') };
  }
  if (name === 'retry' && (id === undefined || query.state !== undefined)) return toRetryAll(id, query, value);
  if (id === undefined) return usageError(`deliveries ${name} needs an ID`);
  if (name === 'show') return { name, id, message: has('message') };
  const filter = (['route', 'confirm'] as const).find(has);
  return filter === undefined ? { name, id } : usageError(`deliveries retry takes --${filter} only with --state`);
}

function toRetryAll(
  id: string | undefined,
  query: DeliveriesListQuery,
  value: ParsedOptions['value'],
): DeliveriesAction | UsageError {
  if (query.state === undefined) return usageError('deliveries retry needs an ID, or --state dead');
  if (id !== undefined) return usageError('deliveries retry takes one ID, or --state');
  const confirm = value('confirm');
  if (confirm === undefined) return { name: 'retry-all', query, confirmed: undefined };
  if (!/^\d{1,12}$/.test(confirm)) return usageError('--confirm: expected the number of deliveries that match');
  return { name: 'retry-all', query, confirmed: Number(confirm) };
}

function checkQuery(
  { state, route, after, limit }: DeliveriesListQuery,
  states: readonly string[],
): UsageError | undefined {
  if (state !== undefined && !states.includes(state)) {
    const remedy = state === 'unknown' ? '; look up each unknown write at the upstream, then retry it by its ID' : '';
    return usageError(`--state: expected ${states.join(', ')}${remedy}`, suggest(state, states));
  }
  if (route === '') return usageError('--route: expected the name of a route, as in metrics');
  if (after !== undefined && !/^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i.test(after)) {
    return usageError('--after: expected the id of a delivery');
  }
  if (limit !== undefined && !(/^\d{1,3}$/.test(limit) && Number(limit) >= 1 && Number(limit) <= MAX_ROWS)) {
    return usageError(`--limit: expected a whole number from 1 to ${MAX_ROWS}`);
  }
  return undefined;
}
