import type { DescriptorField } from '../../../config/values/descriptor-field.ts';
import type { ExtAuthzSettings } from '../../request/snapshot-types.ts';
import { chooseRoute, type DescribedCheck } from './describe-check.ts';
import type { RateLimitRequest } from './envoy-messages.ts';

/** More would let one call hold the process for long. */
export const MAX_HITS = 100;

/** A check that admits one request after another. */
export interface DescribedHits extends DescribedCheck {
  /** 0 to `MAX_HITS`. */
  readonly hits: number;
}

/**
 * Reads a RateLimitRequest. Its descriptors describe one request together: the limits that apply to it follow from the
 * configuration, and a token of each is taken, or none. Returns a sentence if they contradict each other.
 * @param settings the meaning of the keys, and the upstreams
 */
export function describeDescriptors(
  { domain = '', descriptors = [], hitsAddend = 0 }: RateLimitRequest,
  { descriptors: fields, targets }: ExtAuthzSettings,
): DescribedHits | string {
  if (descriptors.length === 0) return 'descriptors: at least one is needed.';
  const values = new Map<DescriptorField, string>();
  for (const { key = '', value = '' } of descriptors.flatMap(({ entries = [] }) => entries)) {
    const field = fields.get(key) ?? `header:${key.toLowerCase()}`;
    if (field === 'ignore') continue;
    const earlier = values.get(field);
    if (earlier !== undefined && earlier !== value) {
      return `descriptors: ${key} has two values, but the descriptors of a call describe one request. See check.descriptors.`;
    }
    values.set(field, value);
  }
  const own = descriptors.map((each) => each.hitsAddend?.value ?? (hitsAddend || 1));
  const hits = Math.max(...own);
  if (hits > MAX_HITS) return `hits_addend: at most ${MAX_HITS}.`;
  const headers = [...values].flatMap(([field, value]) => (field.startsWith('header:') ? [field.slice(7), value] : []));
  const path = values.get('path');
  // Without a path, no route can be found by what the request is.
  const named = values.get('upstream') ?? (path === undefined && targets.has(domain) ? domain : undefined);
  return {
    request: {
      method: values.get('method') ?? 'GET',
      target: path ?? '/',
      host: values.get('host') ?? '',
      headers,
      address: values.get('address'),
    },
    choice: chooseRoute(values.get('route'), named),
    maxWait: Number.POSITIVE_INFINITY,
    hits,
  };
}
