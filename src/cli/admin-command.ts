/** The commands that ask a running proxy once. */
import type { CommandFailure } from './admin-request.ts';
import type { CliCommand } from './parse-arguments.ts';

type AdminCommandResult = { readonly kind: 'explained' | 'done'; readonly text: string } | CommandFailure;

/** @param width columns of the terminal */
export async function runAdminCommand(
  command: Extract<CliCommand, { kind: 'explain' | 'keys' }>,
  { TIDEGATE_ADMIN, TIDEGATE_ADMIN_TOKEN }: NodeJS.ProcessEnv,
  width: number,
): Promise<AdminCommandResult> {
  const access = { admin: command.admin ?? TIDEGATE_ADMIN, token: command.token ?? TIDEGATE_ADMIN_TOKEN };
  if (command.kind === 'keys') {
    const { runKeys } = await import('./keys/keys-command.ts');
    return runKeys({ ...command, ...access });
  }
  const { explainRequest } = await import('./explain-command.ts');
  return explainRequest({ ...command, ...access, width });
}
