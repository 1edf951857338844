/** The commands that ask a running proxy once. */
import type { CommandFailure } from './admin-request.ts';
import type { CliCommand } from './parse-arguments.ts';

type AdminCommandResult =
  | { readonly kind: 'explained' | 'done'; readonly text: string; readonly exitCode?: 0 | 1 }
  | CommandFailure;

/** The terminal, file or pipe that a command writes to. */
export interface CommandOutput {
  /** Columns of the terminal. */
  readonly width: number;
  /** Resolves once the text is written; false if nobody reads it any more. */
  readonly write: (text: string) => Promise<boolean>;
}

export type AdminCommand = Extract<CliCommand, { kind: 'client-quotas' | 'explain' | 'keys' | 'deliveries' }>;

export async function runAdminCommand(
  command: AdminCommand,
  env: NodeJS.ProcessEnv,
  { width, write }: CommandOutput,
): Promise<AdminCommandResult> {
  const { TIDEGATE_ADMIN, TIDEGATE_ADMIN_TOKEN } = env;
  const access = { admin: command.admin ?? TIDEGATE_ADMIN, token: command.token ?? TIDEGATE_ADMIN_TOKEN };
  if (command.kind === 'keys') {
    const { runKeys } = await import('./keys/keys-command.ts');
    return runKeys({ ...command, ...access });
  }
  if (command.kind === 'deliveries') {
    const [{ runDeliveries }, { programName }] = await Promise.all([
      import('./deliveries/deliveries-command.ts'),
      import('./npm-start.ts'),
    ]);
    return runDeliveries(command, { access, program: programName(env), write });
  }
  if (command.kind === 'client-quotas') {
    const { runClientQuotas } = await import('./clients/client-quotas-command.ts');
    return runClientQuotas({ ...command, ...access });
  }
  const { explainRequest } = await import('./explain-command.ts');
  return explainRequest({ ...command, ...access, width });
}
