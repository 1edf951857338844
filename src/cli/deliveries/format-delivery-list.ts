/** Texts about many deliveries for a terminal. */
import type { DeliveriesPage, DeliveryRow } from '../../admin/page/api-types.ts';
import { pluralize, printable } from '../../telemetry/format-values.ts';
import { formatBytes } from '../format-bytes.ts';
import { drawTable, type TableColumn } from '../top/draw-table.ts';
import { PLAIN_STYLE } from '../top/terminal-style.ts';
import type { DeliveriesListQuery } from './deliveries-arguments.ts';
import { type CommandPrefix, formatNextCommand } from './next-command.ts';

const NONE = '–';
/** Longer ids of events are cut. */
const MAX_EVENT_ID = 40;

const COLUMNS: readonly TableColumn<DeliveryRow>[] = [
  column('id', ({ id }) => id),
  column('state', ({ state }) => state),
  column('route', ({ route }) => route),
  column('accepted', ({ acceptedAt }) => acceptedAt),
  { title: 'attempts', text: ({ attempts }) => String(attempts) },
  column('next or end', ({ nextAttemptAt, endedAt }) => nextAttemptAt ?? endedAt ?? NONE),
  column('last result', ({ lastAttempt: last }) => (last === null ? NONE : (last.reason ?? 'acknowledged'))),
  { ...column('event', ({ eventId }) => eventId ?? NONE), maxWidth: MAX_EVENT_ID },
];

function column(title: string, text: (row: DeliveryRow) => string): TableColumn<DeliveryRow> {
  return { title, text: (row) => printable(text(row)), align: 'left', maxWidth: Infinity };
}

/** A line for each, under a heading; then the totals, and the command for the next page. */
export function formatDeliveryList(page: DeliveriesPage, query: DeliveriesListQuery, prefix: CommandPrefix): string {
  const { deliveries, next } = page;
  const lines =
    deliveries.length === 0 ? ['no delivery matches'] : drawTable(COLUMNS, deliveries, Infinity, PLAIN_STYLE);
  const more = next === null ? [] : [`next page: ${formatNextCommand(prefix, ['list'], { ...query, after: next })}`];
  return [...lines, '', formatTotals(page), ...more].map((line) => `${line}\n`).join('');
}

/** Of all deliveries, whatever is listed. */
function formatTotals({ totals: { counts, bytes, oldestAt } }: DeliveriesPage): string {
  const states = Object.entries(counts).map(([state, count]) => `${count} ${state}`);
  const oldest = oldestAt === null ? '' : `; the oldest open one was accepted at ${oldestAt}`;
  return `in all: ${states.join(', ')}; ${formatBytes(bytes)} of messages${oldest}`;
}

/** What a retry of many would do. */
export function formatMatching(count: number, query: DeliveriesListQuery, prefix: CommandPrefix): string {
  if (count === 0) return 'no delivery matches\n';
  const command = formatNextCommand(prefix, ['retry'], { ...query, confirm: String(count) });
  return `${pluralize(count, 'delivery matches', 'deliveries match')}. To retry ${count === 1 ? 'it' : 'them'}:\n  ${command}\n`;
}
