/** `tidegate clients quotas` and `reset-quotas`: what a client has used of its quotas, at a running proxy. */
import type { ClientQuotas } from '../../admin/page/api-types.ts';
import { type CommandFailure, notFromTidegate, requestAdmin } from '../admin-request.ts';
import type { ClientQuotasCommand } from './clients-arguments.ts';

export type ClientQuotasResult = { readonly kind: 'done'; readonly text: string } | CommandFailure;

const PROBLEMS = [403, 404, 409, 503];

/** Never rejects: a failure has a message with the cause and a remedy. */
export async function runClientQuotas({
  action,
  client,
  json,
  ...target
}: Omit<ClientQuotasCommand, 'kind'>): Promise<ClientQuotasResult> {
  const quotas = `/api/clients/${encodeURIComponent(client)}/quotas`;
  const isReset = action === 'reset-quotas';
  const call = isReset
    ? ({ method: 'POST', path: `${quotas}/reset` } as const)
    : ({ method: 'GET', path: quotas } as const);
  const response = await requestAdmin({ ...target, ...call, subject: client, problems: PROBLEMS });
  if (response.kind === 'failed') return response;
  const { payload } = response;
  if (!isClientQuotas(payload)) return notFromTidegate(target.admin);
  if (json) return { kind: 'done', text: `${JSON.stringify(payload)}\n` };
  const heading = isReset ? `quotas of client ${payload.client}, reset:` : `quotas of client ${payload.client}:`;
  return { kind: 'done', text: `${heading}\n${formatQuotas(payload)}` };
}

const COLUMNS = ['upstream', 'quota', 'used', 'limit', 'remaining', 'resets'] as const;

function formatQuotas({ quotas }: ClientQuotas): string {
  const rows = quotas.map(({ upstream, quota, used, limit, remaining, resetAt }) => {
    return [upstream, quota, ...[used, limit, remaining].map(String), `${resetAt.slice(0, 19)}Z`];
  });
  const cells = [[...COLUMNS], ...rows];
  const widths = COLUMNS.map((_, i) => Math.max(...cells.map((line) => line[i]?.length ?? 0)));
  return cells
    .map(
      (line) =>
        `${line
          .map((cell, i) => cell.padEnd(widths[i] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('');
}

/** Checks what is printed: the proxy may be of another version. */
function isClientQuotas(data: unknown): data is ClientQuotas {
  if (typeof data !== 'object' || data === null || !('quotas' in data) || !Array.isArray(data.quotas)) return false;
  return 'client' in data && typeof data.client === 'string' && data.quotas.every(isQuota);
}

function isQuota(data: unknown): boolean {
  if (typeof data !== 'object' || data === null) return false;
  const has = (type: string, names: readonly string[]): boolean =>
    names.every((name) => typeof Reflect.get(data, name) === type);
  return has('string', ['upstream', 'quota', 'resetAt']) && has('number', ['used', 'limit', 'remaining']);
}
