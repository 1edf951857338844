/** Draws one frame of `tidegate top`: a snapshot in, lines of text out. */
import type {
  ClientRow,
  NestedLimitStatus,
  ProcessStatus,
  TimelineEvent,
  UpstreamStatus,
} from '../../admin/page/api-types.ts';
import type { Severity } from '../../admin/page/text/labels.js';
import {
  secondsUntil,
  formatClock,
  formatCount,
  describeNotices,
  formatPercent,
  formatRateLabel,
  formatTimeSpan,
  formatLatency,
} from '../../admin/page/text/labels.js';
import {
  upstreamSeverity,
  nestedLimitSeverity,
  stateSeverity,
  formatHeadline,
  formatLimitName,
  formatNestedLimit,
  stateLabel,
} from '../../admin/page/text/limit-labels.js';
import { formatClient } from '../../admin/page/text/client-labels.js';
import { printable } from '../../telemetry/format-values.ts';
import type { TableColumn } from './draw-table.ts';
import { drawTable } from './draw-table.ts';
import type { TerminalStyle } from './terminal-style.ts';
import { truncate, wrap, SEVERITY_MARKS } from './terminal-style.ts';

export interface TopSnapshot {
  readonly status: ProcessStatus;
  /** Most restricted first. */
  readonly clients: { readonly total: number; readonly rows: readonly ClientRow[] };
  /** Newest first. */
  readonly events: readonly TimelineEvent[];
}

export interface FrameOptions {
  readonly width: number;
  /** Maximum number of lines; undefined: as many as the frame needs. */
  readonly height?: number | undefined;
  readonly paint: TerminalStyle;
  /** The server's clock, in milliseconds since 1970. */
  readonly now: number;
  /** Why the snapshot is out of date; undefined while it is current. */
  readonly lost?: string | undefined;
}

/** Timeline events that a small terminal still shows. */
const MIN_EVENTS = 5;
const MAX_CLIENTS = 20;
/** Lines of the totals, and of the sentence of an upstream. */
const MAX_WRAPPED_LINES = 2;

export function drawFrame({ status, clients, events }: TopSnapshot, options: FrameOptions): readonly string[] {
  const { width, height, paint, now, lost } = options;
  const top = [
    heading(status, options),
    ...(lost === undefined ? [] : [paint.severity('critical', truncate(`${SEVERITY_MARKS.critical} ${lost}`, width))]),
    ...describeNotices(status).map(({ severity, text }) =>
      paint.severity(severity, truncate(`${SEVERITY_MARKS[severity]} ${printable(text)}`, width)),
    ),
    ...totals(status, width),
    '',
    ...status.upstreams.flatMap((upstream) => headline(upstream, width, paint, now)),
    '',
    ...drawTable(upstreamColumns(paint, now), status.upstreams, width, paint),
    ...status.upstreams.flatMap(({ name, nestedLimits }) =>
      nestedLimits.map((limit) => nestedLine(name, limit, width, paint, now)),
    ),
    '',
  ];
  const linesLeft = height === undefined ? Number.POSITIVE_INFINITY : Math.max(0, height - top.length);
  const eventCount = Math.min(
    events.length,
    height === undefined ? MAX_CLIENTS : Math.max(MIN_EVENTS, Math.floor(linesLeft / 3)),
  );
  const eventLines = eventCount === 0 ? 0 : eventCount + 2;
  const shown = clients.rows.slice(
    0,
    Math.max(0, Math.min(height === undefined ? MAX_CLIENTS : linesLeft, linesLeft - eventLines - 2)),
  );
  const lines = [
    ...top,
    paint.strong(`Clients: ${formatCount(shown.length)} of ${formatCount(clients.total)}, most restricted first`),
    ...(shown.length === 0 ? [] : drawTable(clientColumns(paint, now), shown, width, paint)),
    ...(eventCount === 0 ? [] : ['', paint.strong('Timeline')]),
    ...events.slice(0, eventCount).map((event) => truncate(`${formatClock(event.at)}  ${formatEvent(event)}`, width)),
  ];
  return height === undefined ? lines : lines.slice(0, height);
}

function heading({ phase, version, mode, startedAt, workers, store }: ProcessStatus, options: FrameOptions): string {
  const { width, paint, now, lost } = options;
  const severities: Readonly<Record<ProcessStatus['phase'], Severity>> = {
    starting: 'warning',
    ready: 'ok',
    draining: 'critical',
  };
  // The last known phase would be read as the present one.
  const severity = lost === undefined ? severities[phase] : 'critical';
  const label = lost === undefined ? phase : 'not connected';
  const facts = [
    `up ${formatTimeSpan((now - Date.parse(startedAt)) / 1000)}`,
    mode,
    workers === 1 ? '1 worker' : `${workers} workers`,
    `store ${store.kind}`,
  ];
  const name = `Tidegate ${version}`;
  const rest = truncate(`  ${facts.join('  ')}`, Math.max(0, width - name.length - label.length - 4));
  return `${paint.strong(name)}  ${paint.severity(severity, `${SEVERITY_MARKS[severity]} ${label}`)}${paint.muted(rest)}`;
}

function totals({ requests }: ProcessStatus, width: number): readonly string[] {
  const { outcomes } = requests;
  const parts = [
    `requests ${formatRateLabel(requests.perSecond)}`,
    `5xx to clients ${formatRateLabel(requests.failedPerSecond)}`,
    `refused ${formatCount(outcomes.refused)}`,
    `unknown ${formatCount(outcomes.unknown)}`,
    `recovered ${formatCount(outcomes.recovered)}`,
    `client requests in flight ${formatCount(requests.inFlight)}`,
    `p50 to clients ${formatLatency(requests.p50Seconds)}`,
    `p99 to clients ${formatLatency(requests.p99Seconds)}`,
  ];
  return wrap(parts, '   ', width, MAX_WRAPPED_LINES);
}

function headline(upstream: UpstreamStatus, width: number, paint: TerminalStyle, now: number): readonly string[] {
  const severity = upstreamSeverity(upstream);
  const words = printable(`${upstream.name}: ${formatHeadline(upstream, now)}`).split(' ');
  return wrap(words, ' ', width - 2, MAX_WRAPPED_LINES).map((line, index) =>
    paint.severity(severity, `${index === 0 ? SEVERITY_MARKS[severity] : ' '} ${line}`),
  );
}

function nestedLine(
  upstream: string,
  limit: NestedLimitStatus,
  width: number,
  paint: TerminalStyle,
  now: number,
): string {
  const severity = nestedLimitSeverity(limit);
  const text = `${printable(upstream)}, ${formatLimitName(limit)}: ${printable(formatNestedLimit(limit, now))}`;
  return paint.severity(severity, `${SEVERITY_MARKS[severity]} ${truncate(text, width - 2)}`);
}

function upstreamColumns(paint: TerminalStyle, now: number): readonly TableColumn<UpstreamStatus>[] {
  return [
    { title: 'upstream', text: ({ name }) => printable(name), align: 'left' },
    {
      title: 'state',
      text: (upstream) => `${SEVERITY_MARKS[stateSeverity(upstream)]} ${stateLabel(upstream)}`,
      align: 'left',
      paint: (upstream, text) => paint.severity(stateSeverity(upstream), text),
    },
    {
      title: 'allowed',
      text: ({ state, pinned, rate }) => formatRateLabel(state === 'blocked' ? 0 : (pinned ?? rate)),
    },
    { title: 'sent', text: ({ sentPerSecond }) => formatRateLabel(sentPerSecond) },
    { title: '429s', text: ({ throttledPerSecond }) => formatRateLabel(throttledPerSecond) },
    {
      title: 'failed',
      text: ({ failedPerSecond }) => formatRateLabel(failedPerSecond),
      paint: ({ failedPerSecond }, text) => (failedPerSecond > 0 ? paint.severity('critical', text) : text),
    },
    {
      title: 'refused',
      text: ({ refusedPerSecond }) => formatRateLabel(refusedPerSecond),
      paint: ({ refusedPerSecond }, text) => (refusedPerSecond > 0 ? paint.severity('warning', text) : text),
    },
    { title: 'waiting', text: ({ queued }) => formatCount(queued) },
    { title: 'attempts in flight', text: ({ inFlight }) => formatCount(inFlight) },
    { title: 'until', text: ({ until }) => formatUntil(until, now) },
    { title: 'upstream p99', text: ({ p99Seconds }) => formatLatency(p99Seconds) },
    { title: 'retries', text: ({ retriesPerSecond }) => formatRateLabel(retriesPerSecond) },
    {
      title: 'budget',
      text: ({ budgetLeft, budgetSpent }) => (budgetSpent ? 'spent' : formatPercent(budgetLeft)),
      paint: ({ budgetSpent }, text) => (budgetSpent ? paint.severity('critical', text) : text),
    },
    { title: 'quota left', text: ({ quotaLeft }) => formatPercent(quotaLeft) },
    { title: 'ceiling', text: ({ ceiling }) => (ceiling === null ? '–' : formatRateLabel(ceiling)) },
    { title: 'upstream p50', text: ({ p50Seconds }) => formatLatency(p50Seconds) },
  ];
}

const CLIENT_SEVERITIES: Readonly<Record<ClientRow['state'], Severity>> = {
  held: 'critical',
  backoff: 'warning',
  cooldown: 'warning',
  restoring: 'warning',
  normal: 'ok',
};

function clientColumns(paint: TerminalStyle, now: number): readonly TableColumn<ClientRow>[] {
  return [
    { title: 'client', text: (client) => printable(formatClient(client)), align: 'left', maxWidth: 20 },
    {
      title: 'state',
      text: ({ state }) => `${SEVERITY_MARKS[CLIENT_SEVERITIES[state]]} ${state}`,
      align: 'left',
      paint: ({ state }, text) => paint.severity(CLIENT_SEVERITIES[state], text),
    },
    { title: 'for', text: ({ heldUntil, calmAt }) => formatUntil(heldUntil ?? calmAt, now) },
    { title: 'allowance', text: ({ allowance }) => formatPercent(allowance) },
    { title: 'demand', text: ({ demandPerSecond }) => formatRateLabel(demandPerSecond) },
    { title: 'share', text: ({ sharePerSecond }) => formatRateLabel(sharePerSecond) },
    { title: 'waiting', text: ({ queued }) => formatCount(queued) },
    { title: 'retry at', text: ({ nextSlot }) => formatUntil(nextSlot, now) },
    { title: 'upstream', text: ({ upstream }) => printable(upstream), align: 'left' },
    { title: 'last seen', text: ({ lastSeen }) => (lastSeen === null ? '–' : formatClock(lastSeen)) },
  ];
}

function formatUntil(time: string | null, now: number): string {
  const left = secondsUntil(time, now);
  return left === undefined ? '–' : formatTimeSpan(left);
}

function formatEvent({ kind, upstream, text }: TimelineEvent): string {
  return printable(`${kind.padEnd(9)}  ${upstream === null ? '' : `${upstream}: `}${text}`);
}
