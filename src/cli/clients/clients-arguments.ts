/** The arguments of `tidegate clients`. */
import { CLIENT_NAME_EXPECTED, isClientName } from '../../config/auth/key-file.ts';
import { suggest } from '../../config/values/suggest.ts';
import type { EpochMillis } from '../../core/quota/calendar/quota-period.ts';
import type { Millis } from '../../core/scalars.ts';
import type { OptionSpecs, ParsedOptions, UsageError } from '../cli-parse.ts';
import { BOOLEAN_OPTION, STRING_OPTION, usageError } from '../cli-parse.ts';

export interface ClientsCommand {
  readonly kind: 'clients';
  readonly file: string;
  readonly json: boolean;
  readonly action: ClientsAction;
}

export type ClientsAction =
  | { readonly name: 'list' }
  /** @param expiry undefined: the key does not expire */
  | { readonly name: 'add'; readonly client: string; readonly expiry: KeyExpiry | undefined }
  /** @param which the name of a client, for all of its keys, or the id of a key */
  | { readonly name: 'remove'; readonly which: string };

/** When a key expires: so long after its creation, or at a time. */
export type KeyExpiry =
  | { readonly kind: 'after'; readonly lifetime: Millis }
  | { readonly kind: 'at'; readonly time: EpochMillis };

export const CLIENTS_OPTIONS: OptionSpecs = { file: STRING_OPTION, expires: STRING_OPTION, json: BOOLEAN_OPTION };

const ACTIONS = ['add', 'list', 'remove'] as const;

export function toClientsCommand({ value, has, positionals }: ParsedOptions): ClientsCommand | UsageError {
  const [word, operand, ...surplus] = positionals;
  const name = ACTIONS.find((action) => action === word);
  if (name === undefined) {
    if (word === undefined) return usageError('clients needs an action: add, list or remove');
    return usageError(`clients has no action '${word}'`, suggest(word, ACTIONS) ?? 'add, list, remove');
  }
  const file = value('file');
  if (file === undefined || file === '') {
    return usageError(`clients ${name} needs --file FILE: clients.auth.apiKeys.file`);
  }
  const common = { kind: 'clients', file, json: has('json') } as const;
  const expires = value('expires');
  if (expires !== undefined && name !== 'add') return usageError(`clients ${name} takes no --expires`);
  if (name === 'list') {
    return operand === undefined ? { ...common, action: { name } } : usageError(`clients list takes no '${operand}'`);
  }
  if (surplus.length > 0) return usageError(`clients ${name} takes one NAME`);
  if (operand === undefined) return usageError(`clients ${name} needs a NAME${name === 'add' ? '' : ' or an ID'}`);
  if (name === 'remove') return { ...common, action: { name, which: operand } };
  if (!isClientName(operand)) return usageError(CLIENT_NAME_EXPECTED);
  const expiry = expires === undefined ? undefined : parseExpiry(expires);
  if (expires !== undefined && expiry === undefined) return usageError(EXPIRY_EXPECTED);
  return { ...common, action: { name, client: operand, expiry } };
}

const EXPIRY_EXPECTED =
  '--expires expects days or hours such as 90d or 12h, from now on, or a date such as 2027-06-30 (its begin, in UTC)';

const HOUR: Millis = 3_600_000;
const MAX_LIFETIME: Millis = 3650 * 24 * HOUR;

function parseExpiry(text: string): KeyExpiry | undefined {
  const [, count, unit] = /^([1-9]\d{0,4})([dh])$/.exec(text) ?? [];
  if (count !== undefined) {
    const lifetime = Number(count) * (unit === 'd' ? 24 * HOUR : HOUR);
    return lifetime <= MAX_LIFETIME ? { kind: 'after', lifetime } : undefined;
  }
  const time = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : Number.NaN;
  // Date.parse accepts 30 February as 2 March.
  const exists = !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
  return exists ? { kind: 'at', time } : undefined;
}
