import type { Change } from '../config/load/config-diff.ts';
import { compareConfigs } from '../config/load/config-diff.ts';
import type { Loaded } from '../config/load/load-config.ts';
import { loadConfig } from '../config/load/load-config.ts';
import { formatMistakes } from '../config/load/mistakes.ts';
import { unreadable } from '../config/load/serve-settings.ts';
import type { Surroundings } from '../config/load/substitute.ts';

export interface DiffReport {
  /** Lines, each ended by a newline; or what is wrong with the files. */
  readonly text: string;
  /** As of diff(1): 0 the same, 1 different, 2 trouble. */
  readonly exitCode: 0 | 1 | 2;
}

/** `tidegate diff OLD NEW`: what a running process would make of another configuration. */
export function diff(before: string, after: string, json: boolean, surroundings: Surroundings): DiffReport {
  const [from, to] = [load(before, surroundings), load(after, surroundings)];
  if (from.kind === 'mistakes' || to.kind === 'mistakes') {
    const mistakes = [from, to].flatMap((loaded) => (loaded.kind === 'mistakes' ? loaded.mistakes : []));
    return { text: `${formatMistakes(mistakes)}\n`, exitCode: 2 };
  }
  const changes = compareConfigs(from, to);
  const exitCode = changes.length === 0 ? 0 : 1;
  if (json) return { text: `${JSON.stringify(toJson(changes))}\n`, exitCode };
  return { text: changes.length === 0 ? '' : `${[...describe(changes)].join('\n')}\n`, exitCode };
}

function load(file: string, surroundings: Surroundings): Loaded {
  try {
    return loadConfig(surroundings.readFile(file), file, surroundings);
  } catch (error) {
    return { kind: 'mistakes', mistakes: [unreadable(file, error)] };
  }
}

function* describe(changes: readonly Change[]): Generator<string> {
  const stuck = changes.filter(({ needsRestart }) => needsRestart);
  if (stuck.length > 0) {
    yield 'Needs a restart: a reload of this file is refused as a whole.';
    for (const change of stuck) yield `  ${tell(change)}`;
  }
  const rest = changes.filter(({ needsRestart }) => !needsRestart);
  yield* group('Routes:', rest, 'routes', ({ kind, steps, to, from }) => {
    const [, name = ''] = steps;
    if (kind === 'added' && steps.length === 2) return `${name} is added: ${to ?? ''}`;
    if (kind === 'removed' && steps.length === 2) return `${name} is removed; it was ${from ?? ''}`;
    return undefined;
  });
  yield* group('Upstreams:', rest, 'upstreams', ({ kind, steps }) => {
    const [, name = ''] = steps;
    if (steps.length > 2 || kind === 'changed') return undefined;
    return kind === 'added' ? `${name} is added: ${ADDED}` : `${name} is removed: ${REMOVED}`;
  });
  const others = rest.filter(({ steps }) => steps[0] !== 'routes' && steps[0] !== 'upstreams');
  if (others.length > 0) yield 'Settings:';
  for (const change of others) yield `  ${tell(change)}`;
  if (stuck.length === 0) {
    yield 'What was learned of upstreams that stay is kept, but for what is told above; requests under way end by the settings they began with.';
  }
}

function* group(
  title: string,
  changes: readonly Change[],
  part: string,
  tellWhole: (change: Change) => string | undefined,
): Generator<string> {
  const own = changes.filter(({ steps }) => steps[0] === part);
  if (own.length > 0) yield title;
  for (const change of own) yield `  ${tellWhole(change) ?? tell(change)}`;
}

function tell(change: Change): string {
  const { path, from = 'absent', to = 'absent' } = change;
  const meaning = meaningOf(change);
  return `${path}: ${from} → ${to}${meaning === undefined ? '' : ` (${meaning})`}`;
}

/** What it does to what was learned, and to connections. */
function meaningOf({ steps }: Change): string | undefined {
  const [part, , key, setting] = steps;
  if (part === 'clients' && steps[1] === 'key') return 'clients are told apart anew: what was learned of each is lost';
  if (part !== 'upstreams') return undefined;
  if (key === 'url' || key === 'urls') {
    return 'new connections for new requests; the learned limit is kept: give it another name to begin anew';
  }
  if (RECONNECTS.has(String(key))) return 'new connections for new requests; those there are end with theirs';
  if (key !== 'rateLimit') return undefined;
  if (setting === 'scope' || setting === 'credentialHeader') return 'limits begin anew';
  if (setting === 'maxRate' || setting === 'minRate') return 'holds at once for what was learned';
  if (setting === 'initialRate') return 'used where no limit was felt yet; one that was felt is kept';
  return undefined;
}

const ADDED = 'its limit is learned from the first request on';
const REMOVED = 'its requests are finished, then its connections end and what was learned of it is lost';

const RECONNECTS: ReadonlySet<string> = new Set([
  'tls',
  'http2',
  'connections',
  'connectTimeout',
  'outlierDetection',
  'dnsRefresh',
]);

function toJson(changes: readonly Change[]): object {
  return {
    same: changes.length === 0,
    needsRestart: changes.some(({ needsRestart }) => needsRestart),
    changes: changes.map((change) => ({
      kind: change.kind,
      path: change.path,
      from: change.from ?? null,
      to: change.to ?? null,
      needsRestart: change.needsRestart,
      meaning: meaningOf(change) ?? null,
    })),
  };
}
