/** `tidegate top`: what the live page shows, in a terminal. */
import { Feed } from '../../admin/page/sse-client.js';
import type { FeedState } from '../../admin/page/sse-client.js';
import type { Events, TimelineEvent } from '../../admin/page/api-types.ts';
import { writeSpan } from '../../admin/page/labels.js';
import type { Random } from '../../core/exchange/attempt-outcome.ts';
import type { Heard } from './draw-frame.ts';
import { drawFrame } from './draw-frame.ts';
import type { Source } from './fetch-snapshot.ts';
import { explainDenial, look } from './fetch-snapshot.ts';
import type { Paint } from './terminal-style.ts';
import { COLOURED, PLAIN } from './terminal-style.ts';
import { openScreen } from './alternate-screen.ts';

export interface TopOptions extends Source {
  /** One frame, and the end; so it is where the output is no terminal. */
  readonly once: boolean;
  readonly colour: boolean;
  readonly output: NodeJS.WriteStream;
  readonly input: NodeJS.ReadStream;
  readonly random: Random;
}

export type TopEnd = { readonly kind: 'done' } | { readonly kind: 'failed'; readonly message: string };

const WIDTH = 120;
const TICK = 500;
const KEPT_EVENTS = 50;

/** Resolves when it was left, or could not begin. */
export async function top(options: TopOptions): Promise<TopEnd> {
  const paint = options.colour ? COLOURED : PLAIN;
  const first = await look(options);
  if (first.kind === 'failed') return first;
  if (options.once || !options.output.isTTY) {
    const width = options.output.isTTY ? options.output.columns : WIDTH;
    const now = Date.parse(first.heard.status.at);
    const lines = drawFrame(first.heard, { width, paint: options.output.isTTY ? paint : PLAIN, now });
    options.output.write(`${lines.join('\n')}\n`);
    return { kind: 'done' };
  }
  return follow(options, first.heard, paint);
}

function follow(options: TopOptions, first: Heard, paint: Paint): Promise<TopEnd> {
  const { promise, resolve } = Promise.withResolvers<TopEnd>();
  let heard = first;
  let offset = Date.parse(first.status.at) - Date.now();
  let heardAt = Date.now();
  let state: FeedState = { kind: 'connecting' };
  let retryAt = 0;

  const draw = (): void => {
    const { width, height } = screen;
    const lost = writeLoss(state, heardAt, retryAt, options);
    screen.show(drawFrame(heard, { width, height, paint, now: Date.now() + offset, lost }));
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
  const feed = new Feed({
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
        heard = { ...heard, ...data };
        heardAt = Date.now();
        offset = Date.parse(data.status.at) - heardAt;
      } else if (isTimeline(name, data)) {
        heard = { ...heard, events: addEvent(heard.events, data) };
      } else {
        return;
      }
      draw();
    },
  });
  const timer = setInterval(draw, TICK);
  draw();
  return promise;
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

function isStatus(name: string, data: unknown): data is Events['status'] {
  return name === 'status' && data instanceof Object && 'status' in data && 'clients' in data;
}

function isTimeline(name: string, data: unknown): data is TimelineEvent {
  return name === 'timeline' && data instanceof Object && 'id' in data && 'text' in data;
}

/** One that goes on takes the place of what was told of it before. */
function addEvent(events: readonly TimelineEvent[], event: TimelineEvent): readonly TimelineEvent[] {
  return [event, ...events.filter(({ id }) => id !== event.id)].slice(0, KEPT_EVENTS);
}

/** Why what is shown is old; undefined while it is not. */
function writeLoss(state: FeedState, heardAt: number, retryAt: number, { url, token }: Source): string | undefined {
  const age = `what is shown is ${writeSpan((Date.now() - heardAt) / 1000)} old`;
  switch (state.kind) {
    case 'lost':
      return `Connection lost (${state.why}): ${age}; trying again in ${writeSpan((retryAt - Date.now()) / 1000)}`;
    case 'denied':
      return `${explainDenial(state.status, state.why, url, token !== undefined)}; ${age}`;
    case 'connecting':
    case 'live':
      return Date.now() - heardAt > STALE ? `Nothing has come lately: ${age}` : undefined;
  }
}

/** Milliseconds: a status comes each second. */
const STALE = 4000;
