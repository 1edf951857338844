/** The commands. */
export const COMMAND_NAMES = [
  'serve',
  'check',
  'doctor',
  'diff',
  'schema',
  'explain',
  'clients',
  'keys',
  'deliveries',
  'backoff',
  'lab',
  'simulate',
  'demo',
  'top',
  'completion',
  'man',
  'help',
  'version',
] as const;

export type CommandName = (typeof COMMAND_NAMES)[number];

/** The shells that `tidegate completion` writes a script for. */
export const SHELLS = ['bash', 'zsh', 'fish'] as const;

export type Shell = (typeof SHELLS)[number];
