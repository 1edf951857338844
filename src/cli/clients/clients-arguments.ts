/** The arguments of `tidegate clients`: its actions change a file, or ask a running Tidegate. */
import { CLIENT_NAME_EXPECTED, isClientName } from '../../config/auth/key-file.ts';
import { suggest } from '../../config/values/suggest.ts';
import type { EpochMillis } from '../../core/quota/calendar/quota-period.ts';
import type { Millis } from '../../core/scalars.ts';
import type { AdminTarget } from '../admin-request.ts';
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

/** What a client has used of its quotas, at a running Tidegate. */
export interface ClientQuotasCommand extends AdminTarget {
  readonly kind: 'client-quotas';
  readonly action: 'quotas' | 'reset-quotas';
  /** Its key, or the name that it authenticates with. */
  readonly client: string;
  readonly json: boolean;
}

/** When a key expires: so long after its creation, or at a time. */
export type KeyExpiry =
  | { readonly kind: 'after'; readonly lifetime: Millis }
  | { readonly kind: 'at'; readonly time: EpochMillis };

export const CLIENTS_OPTIONS: OptionSpecs = {
  file: STRING_OPTION,
  expires: STRING_OPTION,
  admin: STRING_OPTION,
  token: STRING_OPTION,
  json: BOOLEAN_OPTION,
};

const FILE_ACTIONS = ['add', 'list', 'remove'] as const;
const QUOTA_ACTIONS = ['quotas', 'reset-quotas'] as const;
const ACTIONS = [...FILE_ACTIONS, ...QUOTA_ACTIONS];
const ALL_ACTIONS = 'add, list, remove, quotas or reset-quotas';

export function toClientsCommand(options: ParsedOptions): ClientsCommand | ClientQuotasCommand | UsageError {
  const { value, has, positionals } = options;
  const [word, operand, ...surplus] = positionals;
  const quotaAction = QUOTA_ACTIONS.find((action) => action === word);
  if (quotaAction !== undefined) return toQuotasCommand(quotaAction, options);
  const name = FILE_ACTIONS.find((action) => action === word);
  if (name === undefined) {
    if (word === undefined) return usageError(`clients needs an action: ${ALL_ACTIONS}`);
    return usageError(`clients has no action '${word}'`, suggest(word, ACTIONS) ?? ALL_ACTIONS);
  }
  const unused = ADMIN_OPTIONS.find(has);
  if (unused !== undefined) return usageError(`clients ${name} takes no --${unused}`);
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

const ADMIN_OPTIONS = ['admin', 'token'] as const;
const FILE_OPTIONS = ['file', 'expires'] as const;

function toQuotasCommand(
  action: ClientQuotasCommand['action'],
  { value, has, positionals }: ParsedOptions,
): ClientQuotasCommand | UsageError {
  const unused = FILE_OPTIONS.find(has);
  if (unused !== undefined) return usageError(`clients ${action} takes no --${unused}`);
  const [, client, ...surplus] = positionals;
  const isOne = client !== undefined && surplus.length === 0;
  if (!isOne) return usageError(`clients ${action} needs one CLIENT: a name or a key`);
  return { kind: 'client-quotas', action, client, admin: value('admin'), token: value('token'), json: has('json') };
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
