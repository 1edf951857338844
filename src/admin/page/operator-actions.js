/** What an operator can do, each after a question that says what it means. */
import { tellResult } from './announcements.js';
import { ask } from './confirm-dialog.js';
import { writeRate } from './labels.js';

/** @import { Admin } from './admin-client.js' */
/** @import { Question } from './confirm-dialog.js' */
/** @import { UpstreamStatus } from './api-types.ts' */

/** @type {readonly (readonly [value: string, text: string])[]} */
const SPANS = [
  ['', 'until somebody unblocks it'],
  ['1m', 'for 1 minute'],
  ['5m', 'for 5 minutes'],
  ['15m', 'for 15 minutes'],
  ['1h', 'for 1 hour'],
];

export class Actions {
  #admin;

  /** @param {Admin} admin */
  constructor(admin) {
    this.#admin = admin;
  }

  /** @param {UpstreamStatus} upstream */
  pin({ name, rate, pinned, sentPerSecond }) {
    const now = pinned ?? rate;
    const suggestion = now ?? Math.max(1, sentPerSecond);
    const learned = now === null ? 'It has no limit now.' : `It is allowed ${writeRate(now)} now.`;
    this.#ask({
      title: `Pin the rate of ${name}`,
      text: `${learned} Whatever it answers, no more and no less than this rate will be sent, until you release it.\nWhat is above its real limit is answered with 429, and that no longer lowers the rate.`,
      confirm: 'Pin it',
      field: {
        kind: 'text',
        label: 'Requests a second, such as 50/s',
        value: `${round(suggestion)}/s`,
        check: checkRate,
      },
      path: (rate) => `${of(name)}/pin?rate=${encodeURIComponent(writeUnit(rate))}`,
      done: (rate) => `The rate of ${name} is pinned at ${writeUnit(rate)}.`,
    });
  }

  /** @param {UpstreamStatus} upstream */
  unpin({ name, pinned, learnedRate }) {
    this.#ask({
      title: `Release the rate of ${name}`,
      text: `It is pinned at ${writeRate(pinned)}. What was learned meanwhile holds again: ${writeRate(learnedRate)}.`,
      confirm: 'Release it',
      path: () => `${of(name)}/unpin`,
      done: () => `The rate of ${name} is released, and learned again.`,
    });
  }

  /** @param {UpstreamStatus} upstream */
  block({ name, queued, inFlight }) {
    this.#ask({
      title: `Block ${name}`,
      text: `Nothing more will be sent to ${name}. Clients are told to come back later, the ${queued} that wait as well as new ones; the ${inFlight} in flight are not cut.`,
      confirm: `Block ${name}`,
      danger: true,
      field: { kind: 'choice', label: 'For how long', options: SPANS },
      path: (span) => `${of(name)}/block${span === '' ? '' : `?for=${span}`}`,
      done: (span) => `${name} is blocked ${SPANS.find(([value]) => value === span)?.[1] ?? ''}.`,
    });
  }

  /** @param {UpstreamStatus} upstream */
  unblock({ name, blockedBy }) {
    const by =
      blockedBy === 'operator'
        ? 'An operator has blocked it.'
        : 'The upstream itself has blocked us, and may do so again.';
    this.#ask({
      title: `Unblock ${name}`,
      text: `${by} One request is sent at once to see whether it answers; when it does, the others follow.`,
      confirm: `Unblock ${name}`,
      path: () => `${of(name)}/unblock`,
      done: () => `${name} is unblocked.`,
    });
  }

  /** @param {string} key */
  resetClient(key) {
    this.#ask({
      title: 'Reset this client',
      text: `Client ${key}: its hold, its cut and what it was promised are forgotten. It begins anew, as if it had never been here.`,
      confirm: 'Reset it',
      path: () => `/api/clients/${encodeURIComponent(key)}/reset`,
      done: () => `Client ${key} is reset.`,
    });
  }

  drain() {
    this.#ask({
      title: 'Drain this Tidegate',
      text: 'It says that it is not ready, takes no new requests after the delay of its config, answers those it has, and ends. This page ends with it.\nThis cannot be undone from here: whoever runs it has to start it again.',
      confirm: 'Drain and end it',
      danger: true,
      path: () => '/drain',
      done: () => 'It is draining.',
    });
  }

  /** @param {Omit<Question, 'act'> & {readonly path: (value: string) => string, readonly done: (value: string) => string}} question */
  #ask({ path, done, ...question }) {
    ask({
      ...question,
      act: async (value) => {
        const answer = await this.#admin.act(path(value));
        if (!answer.ok) return answer.why;
        tellResult(`${done(value)}${remarkOf(answer.data)}`, 'well');
        return undefined;
      },
    });
  }
}

/** @param {string} name */
function of(name) {
  return `/api/upstreams/${encodeURIComponent(name)}`;
}

/**
 * What the API adds: that it holds for one process only, say.
 * @param {unknown} data
 */
function remarkOf(data) {
  if (!(data instanceof Object && 'notes' in data && Array.isArray(data.notes))) return '';
  return data.notes.map((note) => ` ${note}`).join('');
}

/** @param {string} rate */
function checkRate(rate) {
  const [, number, unit] = /^(\d+(?:\.\d+)?)\s*(?:\/\s*(s|m|h))?$/.exec(rate) ?? [];
  if (number === undefined) return 'Type a rate such as 50/s, 0.5/s or 300/m.';
  return Number(number) > 0 ? undefined : `0/${unit ?? 's'} would send nothing: block it instead.`;
}

/** @param {string} rate */
function writeUnit(rate) {
  const bare = rate.replaceAll(/\s/g, '');
  return /\/\w+$/.test(bare) ? bare : `${bare}/s`;
}

/** @param {number} rate */
function round(rate) {
  return rate >= 10 ? Math.round(rate) : Number(rate.toFixed(1));
}
