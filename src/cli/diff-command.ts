import type { ConfigChange } from '../config/load/config-diff.ts';
import { diffConfigs } from '../config/load/config-diff.ts';
import type { LoadResult } from '../config/load/load-config.ts';
import { loadConfig } from '../config/load/load-config.ts';
import { formatMistakes } from '../config/load/mistakes.ts';
import { unreadableFile } from '../config/load/serve-settings.ts';
import type { ConfigEnvironment } from '../config/load/substitute.ts';

export interface DiffReport {
  /** Lines, each with a newline: the changes, or the errors of the files. */
  readonly text: string;
  /** As in diff(1): 0 equal, 1 different, 2 an error. */
  readonly exitCode: 0 | 1 | 2;
}

/** `tidegate diff OLD NEW`: what a reload would change in a running process. */
export function runDiff(before: string, after: string, json: boolean, environment: ConfigEnvironment): DiffReport {
  const [from, to] = [load(before, environment), load(after, environment)];
  if (from.kind === 'mistakes' || to.kind === 'mistakes') {
    const mistakes = [from, to].flatMap((loaded) => (loaded.kind === 'mistakes' ? loaded.mistakes : []));
    return { text: `${formatMistakes(mistakes)}\n`, exitCode: 2 };
  }
  const changes = diffConfigs(from, to);
  const exitCode = changes.length === 0 ? 0 : 1;
  if (json) return { text: `${JSON.stringify(toJson(changes))}\n`, exitCode };
  return { text: changes.length === 0 ? 'no differences\n' : `${[...formatChanges(changes)].join('\n')}\n`, exitCode };
}

function load(file: string, environment: ConfigEnvironment): LoadResult {
  try {
    return loadConfig(environment.readFile(file), file, environment);
  } catch (error) {
    return { kind: 'mistakes', mistakes: [unreadableFile(file, error)] };
  }
}

function* formatChanges(changes: readonly ConfigChange[]): Generator<string> {
  const needingRestart = changes.filter(({ needsRestart }) => needsRestart);
  if (needingRestart.length > 0) {
    yield 'Needs a restart: a reload of this file is refused as a whole.';
    for (const change of needingRestart) yield `  ${formatChange(change)}`;
  }
  const rest = changes.filter(({ needsRestart }) => !needsRestart);
  yield* formatGroup('Routes:', rest, 'routes', ({ kind, steps, to, from }) => {
    const [, name = ''] = steps;
    if (kind === 'added' && steps.length === 2) return `${name} is added: ${to ?? ''}`;
    if (kind === 'removed' && steps.length === 2) return `${name} is removed; it was ${from ?? ''}`;
    return undefined;
  });
  yield* formatGroup('Upstreams:', rest, 'upstreams', ({ kind, steps }) => {
    const [, name = ''] = steps;
    if (steps.length > 2 || kind === 'changed') return undefined;
    return kind === 'added' ? `${name} is added: ${ADDED_EFFECT}` : `${name} is removed: ${REMOVED_EFFECT}`;
  });
  const others = rest.filter(({ steps }) => steps[0] !== 'routes' && steps[0] !== 'upstreams');
  if (others.length > 0) yield 'Settings:';
  for (const change of others) yield `  ${formatChange(change)}`;
  if (needingRestart.length === 0) {
    yield 'Learned limits of the remaining upstreams are kept, except as noted above; requests in flight keep the settings of their arrival.';
  }
}

function* formatGroup(
  title: string,
  changes: readonly ConfigChange[],
  part: string,
  formatWhole: (change: ConfigChange) => string | undefined,
): Generator<string> {
  const own = changes.filter(({ steps }) => steps[0] === part);
  if (own.length > 0) yield title;
  for (const change of own) yield `  ${formatWhole(change) ?? formatChange(change)}`;
}

function formatChange(change: ConfigChange): string {
  const { path, from = 'absent', to = 'absent' } = change;
  const meaning = describeEffect(change);
  return `${path}: ${from} → ${to}${meaning === undefined ? '' : ` (${meaning})`}`;
}

/** The effect of a change on learned limits, on connections and on writes with keys. */
function describeEffect({ steps, changesWriteIdentity }: ConfigChange): string | undefined {
  if (changesWriteIdentity) return 'a repeat of an earlier write may be a new write from then on';
  const [part, , key, setting] = steps;
  if (part === 'clients' && steps[1] === 'key') {
    return 'clients are identified anew: what was learned about each is lost';
  }
  if (part !== 'upstreams') return undefined;
  if (key === 'url' || key === 'urls') {
    return 'new requests use new connections; the learned limit is kept: rename the upstream to discard it';
  }
  if (RECONNECTING_KEYS.has(String(key)) || (key === 'rateLimit' && setting === 'of')) {
    return 'new requests use new connections; existing ones close after their requests';
  }
  if (key !== 'rateLimit') return undefined;
  if (setting === 'scope' || setting === 'credentialHeader') return 'limits are learned anew';
  if (setting === 'maxRate' || setting === 'minRate') return 'applies at once to learned rates';
  if (setting === 'initialRate') return 'applies where no limit was detected yet; learned limits are kept';
  return undefined;
}

const ADDED_EFFECT = 'its limit is learned from the first request';
const REMOVED_EFFECT = 'its requests are finished, then its connections close and its learned limit is lost';

const RECONNECTING_KEYS: ReadonlySet<string> = new Set([
  'tls',
  'http2',
  'connections',
  'connectTimeout',
  'outlierDetection',
  'healthCheck',
  'dnsRefresh',
]);

function toJson(changes: readonly ConfigChange[]): object {
  return {
    same: changes.length === 0,
    needsRestart: changes.some(({ needsRestart }) => needsRestart),
    changes: changes.map((change) => ({
      kind: change.kind,
      path: change.path,
      from: change.from ?? null,
      to: change.to ?? null,
      needsRestart: change.needsRestart,
      meaning: describeEffect(change) ?? null,
    })),
  };
}
