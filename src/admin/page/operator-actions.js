/** The operator actions. Each asks for confirmation and states its effects first. */
import { showResult } from './dom/announcements.js';
import { confirmAction } from './dom/confirm-dialog.js';
import { formatAttempts } from './text/delivery-labels.js';
import { formatRateLabel } from './text/labels.js';

/** @import { AdminClient } from './admin-client.js' */
/** @import { Question } from './dom/confirm-dialog.js' */
/** @import { DeliveryRow, KeyRow, UpstreamStatus } from './api-types.ts' */

/** @type {readonly (readonly [value: string, text: string])[]} */
const BLOCK_DURATIONS = [
  ['', 'until unblocked'],
  ['1m', 'for 1 minute'],
  ['5m', 'for 5 minutes'],
  ['15m', 'for 15 minutes'],
  ['1h', 'for 1 hour'],
];

export class OperatorActions {
  #admin;

  /** @param {AdminClient} admin */
  constructor(admin) {
    this.#admin = admin;
  }

  /** @param {UpstreamStatus} upstream */
  pin({ name, rate, pinned, sentPerSecond }) {
    const current = pinned ?? rate;
    const suggestion = current ?? Math.max(1, sentPerSecond);
    const allowed =
      current === null ? 'There is no limit now.' : `The allowed rate is ${formatRateLabel(current)} now.`;
    this.#confirm({
      title: `Pin the rate of ${name}`,
      text: `${allowed} Until you release it, requests are sent at the pinned rate, whatever the upstream responds.\nIf the pinned rate exceeds the real limit, the upstream rejects the excess with 429, and those 429s no longer lower the rate.`,
      confirm: 'Pin rate',
      field: {
        kind: 'text',
        label: 'Requests per second, such as 50/s',
        value: `${roundRate(suggestion)}/s`,
        check: checkRate,
      },
      path: (rate) => `${upstreamActionPath(name)}/pin?rate=${encodeURIComponent(withUnit(rate))}`,
      done: (rate) => `The rate of ${name} is pinned at ${withUnit(rate)}.`,
    });
  }

  /** @param {UpstreamStatus} upstream */
  unpin({ name, pinned, learnedRate }) {
    this.#confirm({
      title: `Release the rate of ${name}`,
      text: `The rate is pinned at ${formatRateLabel(pinned)}. After release, the learned rate applies: ${formatRateLabel(learnedRate)}.`,
      confirm: 'Release rate',
      path: () => `${upstreamActionPath(name)}/unpin`,
      done: () => `The rate of ${name} is released; the learned rate applies.`,
    });
  }

  /** @param {UpstreamStatus} upstream */
  block({ name, queued, inFlight }) {
    this.#confirm({
      title: `Block ${name}`,
      text: `No more requests are sent to ${name}. New requests and the ${queued} in the queue are refused with a Retry-After; the ${inFlight} in flight are not cut off.`,
      confirm: `Block ${name}`,
      danger: true,
      field: { kind: 'choice', label: 'Duration', options: BLOCK_DURATIONS },
      path: (duration) => `${upstreamActionPath(name)}/block${duration === '' ? '' : `?for=${duration}`}`,
      done: (duration) => `${name} is blocked ${BLOCK_DURATIONS.find(([value]) => value === duration)?.[1] ?? ''}.`,
    });
  }

  /** @param {UpstreamStatus} upstream */
  unblock({ name, blockedBy, blockedCause }) {
    const problem = blockedCause === 'errors' ? 'Requests to the upstream fail' : 'The upstream rejects all requests';
    const by = blockedBy === 'operator' ? 'An operator blocked it.' : `${problem}, and may go on doing so.`;
    this.#confirm({
      title: `Unblock ${name}`,
      text: `${by} One request is sent at once as a probe. If the upstream accepts it, the other requests follow.`,
      confirm: `Unblock ${name}`,
      path: () => `${upstreamActionPath(name)}/unblock`,
      done: () => `${name} is unblocked.`,
    });
  }

  /** @param {string} key */
  resetClient(key) {
    this.#confirm({
      title: 'Reset this client',
      text: `Client ${key}: its hold, its reduced allowance and its reserved slot are cleared. It starts over as a new client.`,
      confirm: 'Reset client',
      path: () => `/api/clients/${encodeURIComponent(key)}/reset`,
      done: () => `Client ${key} is reset.`,
    });
  }

  /**
   * @param {KeyRow} key
   * @param {() => void} onForgotten
   */
  forgetKey({ id, upstream, state }, onForgotten) {
    const outcome =
      state === 'unresolved'
        ? 'Its write may have taken effect: look it up at the upstream first.'
        : 'The upstream has answered its write.';
    this.#confirm({
      title: 'Forget this key',
      text: `Key ${id} at ${upstream}: ${outcome}\nA request with a forgotten key is sent as a new write. If the upstream has forgotten the key too, it executes the write again.`,
      confirm: 'Forget key',
      danger: true,
      method: 'DELETE',
      path: () => `/api/keys/${encodeURIComponent(id)}`,
      done: () => {
        onForgotten();
        return `Key ${id} is forgotten.`;
      },
    });
  }

  /**
   * @param {DeliveryRow} delivery
   * @param {() => void} onRetried
   */
  retryDelivery({ id, kind, route, state, attempts }, onRetried) {
    const isUnknown = state === 'unknown';
    const effect = isUnknown
      ? 'It may have taken effect: look it up at the upstream first. If the upstream has forgotten its key, it may take effect twice.'
      : kind === 'write'
        ? 'It is sent with the same idempotency key, by which the upstream recognises a repeat.'
        : 'If the receiver has processed it before, it gets it once more, with the same webhook-id.';
    this.#confirm({
      title: 'Retry this delivery',
      text: `Delivery ${id} of ${route}: ${formatAttempts(attempts)} so far. It is due now, and its schedule starts again.\n${effect}`,
      confirm: 'Retry delivery',
      danger: isUnknown,
      path: () => `${deliveryActionPath(id)}/retry`,
      done: () => {
        onRetried();
        return `Delivery ${id} is retried.`;
      },
    });
  }

  /**
   * @param {DeliveryRow} delivery
   * @param {() => void} onCanceled
   */
  cancelDelivery({ id, route, attempts, orderKey }, onCanceled) {
    const following = orderKey === null ? '' : ' The next delivery with its order key follows.';
    this.#confirm({
      title: 'Cancel this delivery',
      text: `Delivery ${id} of ${route}: ${formatAttempts(attempts)} so far, and no more are made.${following}\nIt can be retried until it is removed (keepFor).`,
      confirm: 'Cancel delivery',
      danger: true,
      path: () => `${deliveryActionPath(id)}/cancel`,
      done: () => {
        onCanceled();
        return `Delivery ${id} is canceled.`;
      },
    });
  }

  drain() {
    this.#confirm({
      title: 'Drain Tidegate',
      text: 'Tidegate reports that it is not ready, stops accepting requests after drain.delay, answers the requests in flight and exits. This page then loses its connection.\nThis cannot be undone here: Tidegate has to be started again.',
      confirm: 'Drain and stop',
      danger: true,
      path: () => '/drain',
      done: () => 'Tidegate is draining.',
    });
  }

  /** @param {Omit<Question, 'act'> & {readonly method?: 'DELETE', readonly path: (value: string) => string, readonly done: (value: string) => string}} question */
  #confirm({ method, path, done, ...question }) {
    confirmAction({
      ...question,
      act: async (value) => {
        const answer = await this.#admin.act(method ?? 'POST', path(value));
        if (!answer.ok) return answer.why;
        showResult(`${done(value)}${formatNotes(answer.data)}`, 'ok');
        return undefined;
      },
    });
  }
}

/** @param {string} name */
function upstreamActionPath(name) {
  return `/api/upstreams/${encodeURIComponent(name)}`;
}

/** @param {string} id */
function deliveryActionPath(id) {
  return `/api/deliveries/${encodeURIComponent(id)}`;
}

/**
 * The notes of the API, for instance that an action affects one process only.
 * @param {unknown} data
 */
function formatNotes(data) {
  if (!(data instanceof Object && 'notes' in data && Array.isArray(data.notes))) return '';
  return data.notes.map((note) => ` ${note}`).join('');
}

/** @param {string} rate */
function checkRate(rate) {
  const [, number, unit] = /^(\d+(?:\.\d+)?)\s*(?:\/\s*(s|m|h))?$/.exec(rate) ?? [];
  if (number === undefined) return 'Enter a rate such as 50/s, 0.5/s or 300/m.';
  return Number(number) > 0 ? undefined : `0/${unit ?? 's'} would send nothing: block the upstream instead.`;
}

/** @param {string} rate */
function withUnit(rate) {
  const bare = rate.replaceAll(/\s/g, '');
  return /\/\w+$/.test(bare) ? bare : `${bare}/s`;
}

/** @param {number} rate */
function roundRate(rate) {
  return rate >= 10 ? Math.round(rate) : Number(rate.toFixed(1));
}
