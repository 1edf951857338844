import type { ServeFlags } from '../../config/load/serve-settings.ts';
import type { OptionSpecs, ParsedOptions, UsageError } from '../cli-parse.ts';
import { BOOLEAN_OPTION, STRING_OPTION, usageError } from '../cli-parse.ts';

export interface DoctorCommand {
  readonly kind: 'doctor';
  /** As those of `serve`. */
  readonly flags: Pick<ServeFlags, 'config' | 'upstream' | 'listen' | 'admin'>;
  /** Undefined if it is not given. */
  readonly token: string | undefined;
  readonly json: boolean;
}

export const DOCTOR_OPTIONS: OptionSpecs = {
  config: STRING_OPTION,
  upstream: STRING_OPTION,
  listen: STRING_OPTION,
  admin: STRING_OPTION,
  token: STRING_OPTION,
  json: BOOLEAN_OPTION,
};

export function toDoctorCommand({ value, has, positionals: [operand] }: ParsedOptions): DoctorCommand | UsageError {
  if (operand !== undefined) return usageError(`doctor takes no '${operand}'`, `--config ${operand}`);
  const flags = {
    config: value('config'),
    upstream: value('upstream'),
    listen: value('listen'),
    admin: value('admin'),
  };
  return { kind: 'doctor', flags, token: value('token'), json: has('json') };
}
