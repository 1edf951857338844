import { isIP } from 'node:net';
import type { Checked, Written } from './rule-finding.ts';
import { mistake, warning } from './rule-finding.ts';
import type { DraftUpstream } from '../load/partial-config.ts';
import type { Path } from '../load/mistakes.ts';
import { PRACTICE_URL, socketOf } from '../values/upstream-url.ts';

/** Where an upstream can be reached: in one place or in several that are alike. */
export function* checkEndpoints(path: Path, upstream: DraftUpstream, written: Written): Generator<Checked> {
  const { reached, url, urls, outlierDetection } = upstream;
  if (reached?.length === 0) {
    const why = written([...path, 'provider']) ? ': the preset of its provider has none' : '';
    yield mistake([...path, 'url'], `missing${why}`);
  }
  if (reached?.length === 2) {
    yield { ...mistake([...path, 'urls'], 'there is a url as well: only one of them'), at: 'key' };
  }
  yield* checkList([...path, 'urls'], urls ?? []);
  if (outlierDetection !== undefined && outlierDetection.maxEjectionTime < outlierDetection.baseEjectionTime) {
    const key = written([...path, 'outlierDetection', 'maxEjectionTime']) ? 'maxEjectionTime' : 'baseEjectionTime';
    yield mistake([...path, 'outlierDetection', key], 'maxEjectionTime is below baseEjectionTime');
  }
  const all = urls ?? (url === undefined ? [] : [url]);
  if (all.length === 1 && written([...path, 'outlierDetection'])) {
    yield warning([...path, 'outlierDetection'], 'has no effect: there is one endpoint', 'key');
  }
  if (all.length > 0 && all.every(isAddress) && written([...path, 'dnsRefresh'])) {
    yield warning([...path, 'dnsRefresh'], 'has no effect: there is no name to look up', 'key');
  }
}

function* checkList(path: Path, urls: readonly string[]): Generator<Checked> {
  const [first = ''] = urls;
  for (const [i, url] of urls.entries()) {
    const twin = urls.indexOf(url);
    if (url === PRACTICE_URL) yield mistake([...path, i], 'only one endpoint can be played: url: practice');
    else if (twin < i) yield mistake([...path, i], `the same as urls[${twin}]`);
    else if (schemeOf(url) !== schemeOf(first) && first !== PRACTICE_URL) {
      yield mistake([...path, i], `${schemeOf(url)}, where urls[0] is ${schemeOf(first)}: all have to be the same`);
    }
  }
}

function schemeOf(url: string): string {
  return url.slice(0, url.indexOf(':'));
}

function isAddress(url: string): boolean {
  return (
    url === PRACTICE_URL || socketOf(url) !== undefined || isIP(new URL(url).hostname.replace(/^\[|\]$/g, '')) !== 0
  );
}
