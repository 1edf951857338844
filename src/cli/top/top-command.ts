/** `tidegate top`: what the live page shows, in a terminal. */
import { SseClient } from '../../admin/page/sse-client.js';
import type { FeedState } from '../../admin/page/sse-client.js';
import type { StreamEvents, TimelineEvent } from '../../admin/page/api-types.ts';
import { formatTimeSpan } from '../../admin/page/text/labels.js';
import type { Random } from '../../core/scalars.ts';
import type { TopSnapshot } from './draw-frame.ts';
import { drawFrame } from './draw-frame.ts';
import type { AdminAccess } from './fetch-snapshot.ts';
import { describeDenial, fetchSnapshot } from './fetch-snapshot.ts';
import type { TerminalStyle } from './terminal-style.ts';
import { COLOURED_STYLE, PLAIN_STYLE } from './terminal-style.ts';
import { openScreen } from './alternate-screen.ts';

export interface TopOptions extends AdminAccess {
  /** Prints one frame and ends. Always so if the output is not a terminal. */
  readonly once: boolean;
  readonly colour: boolean;
  readonly output: NodeJS.WriteStream;
  readonly input: NodeJS.ReadStream;
  readonly random: Random;
}

export type TopEnd = { readonly kind: 'done' } | { readonly kind: 'failed'; readonly message: string };

const REDRAW_INTERVAL = 500;
const MAX_EVENTS = 50;

/** Resolves when the user quits, or if the first frame fails. */
export async function top(options: TopOptions): Promise<TopEnd> {
  const paint = options.colour ? COLOURED_STYLE : PLAIN_STYLE;
  const first = await fetchSnapshot(options);
  if (first.kind === 'failed') return first;
  if (options.once || !options.output.isTTY) {
    const width = options.output.isTTY ? options.output.columns : Number.POSITIVE_INFINITY;
    const now = Date.parse(first.snapshot.status.at);
    const lines = drawFrame(first.snapshot, { width, paint: options.output.isTTY ? paint : PLAIN_STYLE, now });
    options.output.write(`${lines.join('\n')}\n`);
    return { kind: 'done' };
  }
  return runLive(options, first.snapshot, paint);
}

function runLive(options: TopOptions, first: TopSnapshot, paint: TerminalStyle): Promise<TopEnd> {
  const { promise, resolve } = Promise.withResolvers<TopEnd>();
  let snapshot = first;
  let offset = Date.parse(first.status.at) - Date.now();
  let receivedAt = Date.now();
  let state: FeedState = { kind: 'connecting' };
  let retryAt = 0;

  const draw = (): void => {
    const { width, height } = screen;
    const lost = describeStaleness(state, receivedAt, retryAt, options);
    screen.show(
      drawFrame(snapshot, { width, height, paint, now: (lost === undefined ? Date.now() : receivedAt) + offset, lost }),
    );
  };
  const stop = (end: TopEnd): void => {
    clearInterval(timer);
    feed.close();
    screen.close();
    for (const signal of SIGNALS) process.off(signal, quit);
    resolve(end);
  };
  const quit = (): void => stop({ kind: 'done' });
  const screen = openScreen({ output: options.output, input: options.input, onQuit: quit, onRedraw: draw });
  for (const signal of SIGNALS) process.on(signal, quit);
  const feed = new SseClient({
    url: `${options.url}/api/events`,
    token: () => options.token,
    random: options.random,
    onState: (next) => {
      state = next;
      if (next.kind === 'lost') retryAt = Date.now() + next.retryIn;
      draw();
    },
    onEvent: (name, data) => {
      if (isStatus(name, data)) {
        snapshot = { ...snapshot, ...data };
        receivedAt = Date.now();
        offset = Date.parse(data.status.at) - receivedAt;
      } else if (isTimeline(name, data)) {
        snapshot = { ...snapshot, events: addEvent(snapshot.events, data) };
      } else {
        return;
      }
      draw();
    },
  });
  const timer = setInterval(draw, REDRAW_INTERVAL);
  draw();
  return promise;
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

function isStatus(name: string, data: unknown): data is StreamEvents['status'] {
  return name === 'status' && data instanceof Object && 'status' in data && 'clients' in data;
}

function isTimeline(name: string, data: unknown): data is TimelineEvent {
  return name === 'timeline' && data instanceof Object && 'id' in data && 'text' in data;
}

/** A later report of the same event replaces the earlier one. */
function addEvent(events: readonly TimelineEvent[], event: TimelineEvent): readonly TimelineEvent[] {
  return [event, ...events.filter(({ id }) => id !== event.id)].slice(0, MAX_EVENTS);
}

/** Why the frame is out of date; undefined while it is current. */
function describeStaleness(
  state: FeedState,
  receivedAt: number,
  retryAt: number,
  { url, token }: AdminAccess,
): string | undefined {
  const age = `data is ${formatTimeSpan((Date.now() - receivedAt) / 1000)} old`;
  switch (state.kind) {
    case 'lost':
      return `Connection lost (${state.why}): ${age}; retrying in ${formatTimeSpan((retryAt - Date.now()) / 1000)}`;
    case 'denied':
      return `${describeDenial(state.status, state.why, url, token !== undefined)}; ${age}`;
    case 'connecting':
    case 'live':
      return Date.now() - receivedAt > STALE_AFTER ? `No data received: ${age}` : undefined;
  }
}

/** Milliseconds. A status arrives every second. */
const STALE_AFTER = 4000;
