/** The arguments of `tidegate clients`. */
import { CLIENT_NAME_EXPECTED, isClientName } from '../../config/auth/key-file.ts';
import { suggest } from '../../config/values/suggest.ts';
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
  | { readonly name: 'add'; readonly client: string }
  /** @param which the name of a client, for all of its keys, or the id of a key */
  | { readonly name: 'remove'; readonly which: string };

export const CLIENTS_OPTIONS: OptionSpecs = { file: STRING_OPTION, json: BOOLEAN_OPTION };

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
  if (name === 'list') {
    return operand === undefined ? { ...common, action: { name } } : usageError(`clients list takes no '${operand}'`);
  }
  if (surplus.length > 0) return usageError(`clients ${name} takes one NAME`);
  if (operand === undefined) return usageError(`clients ${name} needs a NAME${name === 'add' ? '' : ' or an ID'}`);
  if (name === 'remove') return { ...common, action: { name, which: operand } };
  return isClientName(operand) ? { ...common, action: { name, client: operand } } : usageError(CLIENT_NAME_EXPECTED);
}
