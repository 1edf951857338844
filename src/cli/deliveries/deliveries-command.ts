/** `tidegate deliveries`: lists, shows, retries, cancels and exports the deliveries that a running proxy stores. */
import { pluralize, printable, printableJson } from '../../telemetry/format-values.ts';
import type { AdminTarget, CommandFailure } from '../admin-request.ts';
import { type DeliveriesApi, type FetchResult, withDeliveriesApi } from './deliveries-api.ts';
import type { DeliveriesAction, DeliveriesCommand, DeliveriesListQuery } from './deliveries-arguments.ts';
import { exportDeliveries, type WriteText } from './export-deliveries.ts';
import { formatDeliveryList, formatMatching } from './format-delivery-list.ts';
import { formatChangedDelivery, formatDelivery } from './format-delivery.ts';
import { type CommandPrefix, formatNextCommand } from './next-command.ts';
import { countMatching, RETRIES_AT_A_TIME, type RetryReport, retryMatching } from './retry-matching.ts';

export interface DeliveriesContext {
  readonly access: AdminTarget;
  /** `tidegate`, or `npm start --`. */
  readonly program: string;
  /** Standard output, for what is too long for a text. */
  readonly write: WriteText;
}

export type DeliveriesResult =
  /** Exit code 1: of many, some failed. */
  { readonly kind: 'done'; readonly text: string; readonly exitCode: 0 | 1 } | CommandFailure;

/** Never rejects: a failure has a message with the cause and a remedy. */
export function runDeliveries(command: DeliveriesCommand, context: DeliveriesContext): Promise<DeliveriesResult> {
  const isRetryOfMany = command.action.name === 'retry-all';
  const run = (api: DeliveriesApi): Promise<DeliveriesResult> => runAction(api, command, context);
  return withDeliveriesApi(context.access, run, isRetryOfMany ? RETRIES_AT_A_TIME : 1);
}

async function runAction(
  api: DeliveriesApi,
  { action, json, admin }: DeliveriesCommand,
  { program, write }: DeliveriesContext,
): Promise<DeliveriesResult> {
  const prefix = { program, admin };
  switch (action.name) {
    case 'list': {
      const page = await api.list(action.query);
      if (page.kind === 'too_long') {
        return { ...page.failure, message: `${page.failure.message}: choose a smaller --limit` };
      }
      return print(page, json, (data) => formatDeliveryList(data, action.query, prefix));
    }
    case 'show':
      return print(await api.find(action.id, action.message), json, formatDelivery);
    case 'retry':
    case 'cancel':
      return print(await api.change(action.name, action.id), json, formatChangedDelivery);
    case 'retry-all':
      return retryAll(api, action, json, prefix);
    case 'export': {
      const end = await exportDeliveries(api, action, write);
      if ('kind' in end) return done('');
      if (end.last === undefined) return end.failure;
      const rest = formatNextCommand(prefix, ['export'], { ...action.query, after: end.last });
      const remedy = `for the rest, run ${rest}${action.message ? ' --message' : ''}`;
      return { ...end.failure, message: `the export has stopped (${remedy}): ${end.failure.message}` };
    }
  }
}

function print<T>(fetched: FetchResult<T>, json: boolean, format: (data: T) => string): DeliveriesResult {
  if (fetched.kind !== 'fetched') return fetched.failure;
  return done(json ? `${printableJson(fetched.data)}\n` : format(fetched.data));
}

async function retryAll(
  api: DeliveriesApi,
  { query, confirmed }: Extract<DeliveriesAction, { readonly name: 'retry-all' }>,
  json: boolean,
  prefix: CommandPrefix,
): Promise<DeliveriesResult> {
  const counted = await countMatching(api, query);
  if (counted.kind !== 'counted') return counted.failure;
  const { matching } = counted;
  const { count } = matching;
  if (confirmed === undefined) {
    return done(json ? `${printableJson({ matching: count })}\n` : formatMatching(count, query, prefix));
  }
  if (confirmed !== count) return refuseCount(count, confirmed, query, prefix);
  const report = await retryMatching(api, query, matching);
  const { retried, failed, stopped } = report;
  if (stopped !== null && retried + failed === 0) return { kind: 'failed', message: stopped, exitCode: 1 };
  const text = json ? `${printableJson(report)}\n` : formatReport(report);
  return done(text, failed > 0 || stopped !== null ? 1 : 0);
}

function refuseCount(
  count: number,
  confirmed: number,
  query: DeliveriesListQuery,
  prefix: CommandPrefix,
): CommandFailure {
  const found = count === 0 ? 'no delivery matches' : pluralize(count, 'delivery matches', 'deliveries match');
  const next = formatNextCommand(prefix, ['retry'], query);
  return {
    kind: 'failed',
    message: `${found}, not ${confirmed}: nothing was retried; look again with ${next}`,
    exitCode: 1,
  };
}

function formatReport({ matching, retried, failed, failures, stopped }: RetryReport): string {
  const lines = [
    `${retried} of ${pluralize(matching, 'delivery', 'deliveries')} retried: due now, with a new schedule`,
    ...(failed === 0 ? [] : [`${failed} failed:`, ...failures.map(({ id, why }) => `  ${id}: ${why}`)]),
    ...(failed > failures.length ? [`  and ${failed - failures.length} more`] : []),
    ...(stopped === null ? [] : [`stopped: ${stopped}`]),
  ];
  return lines.map((line) => `${printable(line)}\n`).join('');
}

function done(text: string, exitCode: 0 | 1 = 0): DeliveriesResult {
  return { kind: 'done', text, exitCode };
}
