/** What `tidegate top` shows, as lines. Text from what was heard; nothing is printed here. */
import type {
  ClientRow,
  NestedLimitStatus,
  Status,
  TimelineEvent,
  UpstreamStatus,
} from '../../admin/page/api-types.ts';
import type { Mood } from '../../admin/page/labels.js';
import {
  moodOf,
  moodOfNested,
  moodOfState,
  secondsTo,
  writeClock,
  writeCount,
  writeHeadline,
  writeLimitName,
  writeNested,
  writeNotices,
  writePart,
  writeRate,
  writeSpan,
  writeState,
  writeTook,
} from '../../admin/page/labels.js';
import type { Column } from './draw-table.ts';
import { drawTable } from './draw-table.ts';
import type { Paint } from './terminal-style.ts';
import { fit, MARKS, printable } from './terminal-style.ts';

export interface Heard {
  readonly status: Status;
  /** By trouble. */
  readonly clients: { readonly total: number; readonly rows: readonly ClientRow[] };
  /** The newest first. */
  readonly events: readonly TimelineEvent[];
}

export interface FrameOptions {
  readonly width: number;
  /** Lines at most; the frame is as high as it needs to be when undefined. */
  readonly height?: number | undefined;
  readonly paint: Paint;
  /** The server's clock, in milliseconds since 1970. */
  readonly now: number;
  /** Why what is shown is not what is; undefined when it is. */
  readonly lost?: string | undefined;
}

/** Of what happened, where there is little room. */
const FEWEST_EVENTS = 5;
const MOST_CLIENTS = 20;

export function drawFrame({ status, clients, events }: Heard, options: FrameOptions): readonly string[] {
  const { width, height, paint, now, lost } = options;
  const top = [
    heading(status, options),
    ...(lost === undefined ? [] : [paint.mood('trouble', fit(`${MARKS.trouble} ${lost}`, width))]),
    ...writeNotices(status).map(({ mood, text }) => paint.mood(mood, fit(`${MARKS[mood]} ${printable(text)}`, width))),
    totals(status, width),
    '',
    ...status.upstreams.map((upstream) => headline(upstream, width, paint, now)),
    '',
    ...drawTable(upstreamColumns(paint, now), status.upstreams, width, paint),
    ...status.upstreams.flatMap(({ name, nestedLimits }) =>
      nestedLimits.map((limit) => nestedLine(name, limit, width, paint, now)),
    ),
    '',
  ];
  const room = height === undefined ? Number.POSITIVE_INFINITY : Math.max(0, height - top.length);
  const told = Math.min(
    events.length,
    height === undefined ? MOST_CLIENTS : Math.max(FEWEST_EVENTS, Math.floor(room / 3)),
  );
  const below = told === 0 ? 0 : told + 2;
  const shown = clients.rows.slice(
    0,
    Math.max(0, Math.min(height === undefined ? MOST_CLIENTS : room, room - below - 2)),
  );
  const lines = [
    ...top,
    paint.strong(`Clients: ${writeCount(shown.length)} of ${writeCount(clients.total)}, by trouble`),
    ...(shown.length === 0 ? [] : drawTable(clientColumns(paint, now), shown, width, paint)),
    ...(told === 0 ? [] : ['', paint.strong('What happened')]),
    ...events.slice(0, told).map((event) => fit(`${writeClock(event.at)}  ${writeEvent(event)}`, width)),
  ];
  return height === undefined ? lines : lines.slice(0, height);
}

function heading({ phase, version, mode, startedAt, workers, store }: Status, options: FrameOptions): string {
  const { width, paint, now } = options;
  const moods: Readonly<Record<Status['phase'], Mood>> = { starting: 'wary', ready: 'well', draining: 'trouble' };
  const mood = moods[phase];
  const facts = [
    `up ${writeSpan((now - Date.parse(startedAt)) / 1000)}`,
    mode,
    workers === 1 ? '1 worker' : `${workers} workers`,
    `store ${store.kind}`,
  ];
  const name = `Tidegate ${version}`;
  const rest = fit(`  ${facts.join('  ')}`, Math.max(0, width - name.length - phase.length - 4));
  return `${paint.strong(name)}  ${paint.mood(mood, `${MARKS[mood]} ${phase}`)}${paint.quiet(rest)}`;
}

function totals({ requests }: Status, width: number): string {
  const { outcomes } = requests;
  const parts = [
    `requests ${writeRate(requests.perSecond)}`,
    `in flight ${writeCount(requests.inFlight)}`,
    `p50 ${writeTook(requests.p50Seconds)}`,
    `p99 ${writeTook(requests.p99Seconds)}`,
    `refused ${writeCount(outcomes.refused)}`,
    `recovered ${writeCount(outcomes.recovered)}`,
    `unknown ${writeCount(outcomes.unknown)}`,
  ];
  return fit(parts.join('   '), width);
}

function headline(upstream: UpstreamStatus, width: number, paint: Paint, now: number): string {
  const mood = moodOf(upstream);
  const text = fit(`${printable(upstream.name)}: ${writeHeadline(upstream, now)}`, width - 2);
  return paint.mood(mood, `${MARKS[mood]} ${text}`);
}

function nestedLine(upstream: string, limit: NestedLimitStatus, width: number, paint: Paint, now: number): string {
  const mood = moodOfNested(limit);
  const text = `${printable(upstream)}, ${writeLimitName(limit)}: ${printable(writeNested(limit, now))}`;
  return paint.mood(mood, `${MARKS[mood]} ${fit(text, width - 2)}`);
}

function upstreamColumns(paint: Paint, now: number): readonly Column<UpstreamStatus>[] {
  return [
    { title: 'upstream', text: ({ name }) => printable(name), align: 'left' },
    {
      title: 'state',
      text: (upstream) => `${MARKS[moodOfState(upstream)]} ${writeState(upstream)}`,
      align: 'left',
      paint: (upstream, text) => paint.mood(moodOfState(upstream), text),
    },
    { title: 'allowed', text: ({ state, pinned, rate }) => writeRate(state === 'blocked' ? 0 : (pinned ?? rate)) },
    { title: 'sent', text: ({ sentPerSecond }) => writeRate(sentPerSecond) },
    { title: 'refused by it', text: ({ throttledPerSecond }) => writeRate(throttledPerSecond) },
    { title: 'waiting', text: ({ queued }) => writeCount(queued) },
    { title: 'in flight', text: ({ inFlight }) => writeCount(inFlight) },
    { title: 'until', text: ({ until }) => writeUntil(until, now) },
    { title: 'p99', text: ({ p99Seconds }) => writeTook(p99Seconds) },
    { title: 'retries', text: ({ retriesPerSecond }) => writeRate(retriesPerSecond) },
    { title: 'budget', text: ({ budgetLeft }) => writePart(budgetLeft) },
    { title: 'quota left', text: ({ quotaLeft }) => writePart(quotaLeft) },
    { title: 'ceiling', text: ({ ceiling }) => (ceiling === null ? '–' : writeRate(ceiling)) },
    { title: 'p50', text: ({ p50Seconds }) => writeTook(p50Seconds) },
  ];
}

const CLIENT_MOODS: Readonly<Record<ClientRow['state'], Mood>> = {
  held: 'trouble',
  backoff: 'wary',
  cooldown: 'wary',
  restoring: 'wary',
  normal: 'well',
};

function clientColumns(paint: Paint, now: number): readonly Column<ClientRow>[] {
  return [
    { title: 'client', text: ({ key }) => printable(key), align: 'left', most: 20 },
    {
      title: 'state',
      text: ({ state }) => `${MARKS[CLIENT_MOODS[state]]} ${state}`,
      align: 'left',
      paint: ({ state }, text) => paint.mood(CLIENT_MOODS[state], text),
    },
    { title: 'for', text: ({ heldUntil, calmAt }) => writeUntil(heldUntil ?? calmAt, now) },
    { title: 'standing', text: ({ allowance }) => writePart(allowance) },
    { title: 'wants', text: ({ demandPerSecond }) => writeRate(demandPerSecond) },
    { title: 'share', text: ({ sharePerSecond }) => writeRate(sharePerSecond) },
    { title: 'waiting', text: ({ queued }) => writeCount(queued) },
    { title: 'told to come', text: ({ nextSlot }) => writeUntil(nextSlot, now) },
    { title: 'upstream', text: ({ upstream }) => printable(upstream), align: 'left' },
    { title: 'last seen', text: ({ lastSeen }) => (lastSeen === null ? '–' : writeClock(lastSeen)) },
  ];
}

function writeUntil(time: string | null, now: number): string {
  const left = secondsTo(time, now);
  return left === undefined ? '–' : writeSpan(left);
}

function writeEvent({ kind, upstream, text }: TimelineEvent): string {
  return printable(`${kind.padEnd(9)}  ${upstream === null ? '' : `${upstream}: `}${text}`);
}
