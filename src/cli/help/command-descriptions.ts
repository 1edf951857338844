import type { CommandName } from '../command-names.ts';
import type { CommandDescription } from './command-description.ts';
import { BACKOFF, LAB, SIMULATE } from './experiment-commands.ts';
import { CLIENTS, COMPLETION, DELIVERIES, EXPLAIN, HELP, KEYS, MAN, TOP, VERSION } from './inspection-commands.ts';
import { CHECK, DEMO, DIFF, DOCTOR, SCHEMA, SERVE } from './serving-commands.ts';

/** All commands, in the order of the overview. The help, the man page and the completion of shells are made from it. */
export const COMMAND_DESCRIPTIONS: Readonly<Record<CommandName, CommandDescription>> = {
  serve: SERVE,
  check: CHECK,
  doctor: DOCTOR,
  diff: DIFF,
  schema: SCHEMA,
  explain: EXPLAIN,
  clients: CLIENTS,
  keys: KEYS,
  deliveries: DELIVERIES,
  backoff: BACKOFF,
  lab: LAB,
  simulate: SIMULATE,
  demo: DEMO,
  top: TOP,
  completion: COMPLETION,
  man: MAN,
  help: HELP,
  version: VERSION,
};

/** What Tidegate is, in one sentence. */
export const PROGRAM_SUMMARY =
  "an HTTP reverse proxy that learns an upstream's limit, paces and shares it, and retries only what is safe to retry";
