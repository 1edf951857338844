/** Announcements for screen readers: the few changes of state that matter, not the figures that move every second. */
import { shortExpiry } from './labels.js';
import { formatHeadline, upstreamSeverity } from './limit-labels.js';

/** @import { ProcessStatus, UpstreamStatus } from '../api-types.ts' */

/**
 * @param {ProcessStatus | undefined} before
 * @param {ProcessStatus} after
 * @param {number} now
 * @returns {string[]}
 */
export function describeChanges(before, after, now) {
  /** @param {UpstreamStatus} upstream */
  const describe = (upstream) => `${upstream.name}: ${formatHeadline(upstream, now)}.`;
  if (before === undefined) return after.upstreams.map(describe);
  /** @type {string[]} */
  const changes = [];
  if (before.phase !== after.phase) changes.push(`Tidegate is ${after.phase}.`);
  if (before.store.degraded !== after.store.degraded) {
    changes.push(after.store.degraded ? 'The store is not responding.' : 'The store responds again.');
  }
  for (const state of /** @type {const} */ (['dead', 'unknown'])) {
    const [countBefore, countAfter] = [before, after].map(({ deliveries }) => deliveries?.counts[state] ?? 0);
    if (countBefore === 0 && countAfter !== 0) changes.push(`Stored deliveries are ${state}.`);
  }
  const expired = shortExpiry(after);
  if (expired !== shortExpiry(before)) {
    changes.push(expired === undefined ? 'The expired certificate was replaced.' : `The ${expired}.`);
  }
  const reload = after.config.lastReload;
  if (reload !== null && reload.at !== before.config.lastReload?.at) {
    changes.push(reload.ok ? 'The config was reloaded.' : 'The config reload failed.');
  }
  const known = new Map(before.upstreams.map((upstream) => [upstream.name, upstream]));
  for (const upstream of after.upstreams) {
    const was = known.get(upstream.name);
    if (was === undefined || isNotableChange(was, upstream)) changes.push(describe(upstream));
  }
  return changes;
}

/**
 * A limit at work moves between backoff, cooldown and restoring all the time, so those transitions are not announced.
 * @param {UpstreamStatus} before
 * @param {UpstreamStatus} after
 */
function isNotableChange(before, after) {
  return (
    stateGroup(before) !== stateGroup(after) ||
    before.pinned !== after.pinned ||
    before.blockedBy !== after.blockedBy ||
    (upstreamSeverity(before) === 'critical') !== (upstreamSeverity(after) === 'critical')
  );
}

/** @param {UpstreamStatus} upstream */
function stateGroup({ state }) {
  return state === 'open' || state === 'blocked' ? state : 'limited';
}
