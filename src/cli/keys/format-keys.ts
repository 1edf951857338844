/** Texts about idempotency keys for a terminal. */
import type { KeyRow, KeysPage } from '../../admin/page/api-types.ts';

const GAP = '  ';
const NONE = '–';

const COLUMNS: readonly (readonly [title: string, text: (row: KeyRow) => string])[] = [
  ['id', ({ id }) => id],
  ['state', ({ state }) => state],
  ['upstream', ({ upstream }) => upstream],
  ['first sent', ({ firstSentAt }) => firstSentAt ?? NONE],
  ['endpoint', ({ endpoint }) => endpoint ?? NONE],
  ['requests', ({ requests }) => String(requests)],
  ['responses', ({ responses }) => String(responses)],
  ['final for', ({ finalFor }) => String(finalFor)],
];

const TRUNCATED = 'Redis has more keys than one request searches: others may match\n';

/** A line for each, under a heading. */
export function formatKeyList({ keys, matching, truncated }: KeysPage): string {
  const note = truncated ? TRUNCATED : '';
  if (keys.length === 0) return `no key matches\n${note}`;
  const cells = [COLUMNS.map(([title]) => title), ...keys.map((row) => COLUMNS.map(([, text]) => text(row)))];
  const widths = COLUMNS.map((_, i) => Math.max(...cells.map((line) => line[i]?.length ?? 0)));
  const lines = cells.map((line) =>
    line
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join(GAP)
      .trimEnd(),
  );
  const more = matching - keys.length;
  return `${[...lines, ...(more > 0 ? [`and ${more} more`] : [])].join('\n')}\n${note}`;
}

/** All about each. */
export function formatKeys({ keys, truncated }: KeysPage): string {
  return `${keys.map(formatKey).join('\n')}${truncated ? TRUNCATED : ''}`;
}

/** All about one. */
export function formatKey({
  id,
  state,
  upstream,
  firstSentAt,
  endpoint,
  upstreamKey,
  requests,
  responses,
  finalFor,
}: KeyRow): string {
  const facts = [
    ['upstream', upstream],
    ['first sent', firstSentAt ?? 'not so far'],
    ['endpoint', endpoint ?? 'not known'],
    ...(typeof upstreamKey === 'string' ? [['sent key', upstreamKey]] : []), // absent from a proxy of an earlier version
    ['requests', `${requests} in progress`],
    ['responses', `${responses} being sent`],
    ['final for', finalFor === 1 ? '1 credential' : `${finalFor} credentials`],
  ];
  return `${[`${id}: ${state}`, ...facts.map(([name = '', text]) => `  ${name.padEnd(11)}${text}`)].join('\n')}\n`;
}
