/** What a change of state says to those who listen: the few that matter, not the figures that move all the time. */
import { writeHeadline } from './labels.js';

/** @import { Status, UpstreamStatus } from './api-types.ts' */

/**
 * @param {Status | undefined} before
 * @param {Status} after
 * @param {number} now
 * @returns {string[]}
 */
export function writeChanges(before, after, now) {
  /** @param {UpstreamStatus} upstream */
  const write = (upstream) => `${upstream.name}: ${writeHeadline(upstream, now)}.`;
  if (before === undefined) return after.upstreams.map(write);
  /** @type {string[]} */
  const changes = [];
  if (before.phase !== after.phase) changes.push(`Tidegate is ${after.phase}.`);
  if (before.store.degraded !== after.store.degraded) {
    changes.push(after.store.degraded ? 'The store does not answer.' : 'The store answers again.');
  }
  const reload = after.config.lastReload;
  if (reload !== null && reload.at !== before.config.lastReload?.at) {
    changes.push(reload.ok ? 'The config was reloaded.' : 'A reload of the config failed.');
  }
  const known = new Map(before.upstreams.map((upstream) => [upstream.name, upstream]));
  for (const upstream of after.upstreams) {
    const was = known.get(upstream.name);
    if (was === undefined || isNews(was, upstream)) changes.push(write(upstream));
  }
  return changes;
}

/**
 * Between backoff, cooldown and restoring it goes to and fro as long as a limit is felt: that is its work, and no news.
 * @param {UpstreamStatus} was
 * @param {UpstreamStatus} is
 */
function isNews(was, is) {
  return kindOf(was) !== kindOf(is) || was.pinned !== is.pinned || was.blockedBy !== is.blockedBy;
}

/** @param {UpstreamStatus} upstream */
function kindOf({ state }) {
  return state === 'open' || state === 'blocked' ? state : 'limited';
}
