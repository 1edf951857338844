/** What states and modes mean, for those who do not know their names. */

/** @import { ApiClientState, ProcessStatus, UpstreamStatus } from '../api-types.ts' */

/** @type {Readonly<Record<ProcessStatus['mode'], string>>} */
const MODE_MEANINGS = { enforce: 'limits apply', observe: 'measures only' };

/** @param {ProcessStatus['mode']} mode */
export function formatMode(mode) {
  return `${mode} (${MODE_MEANINGS[mode]})`;
}

/** @type {Readonly<Record<ApiClientState, string>>} */
export const CLIENT_STATE_MEANINGS = {
  held: 'must wait until a time that it was told',
  backoff: 'refused because it sends far more than its share; none of its requests was admitted since',
  cooldown: 'a request was admitted again; the allowance does not grow yet',
  restoring: 'the allowance grows back to 100 %',
  normal: 'has its whole allowance',
};

/** @type {Readonly<Record<UpstreamStatus['state'] | 'pinned', string>>} */
export const LIMIT_STATE_MEANINGS = {
  open: 'no limit is in force',
  backoff: 'the rate was cut, and no request sent since has been accepted yet',
  cooldown: 'requests are accepted after a cut; the rate does not grow yet',
  restoring: 'the rate grows until the limit is found again',
  blocked: 'nothing is sent, except single probes',
  pinned: 'an operator has fixed the rate',
};
