/** The story of one delivery, with its actions, and its message on demand. */
import { find, setAttribute, setDisabled, setShown, setText } from '../dom/dom.js';
import { fillDefinitionList } from '../dom/definition-list.js';
import { describeDelivery, formatLastResult } from '../text/delivery-labels.js';
import { formatCount, formatLatency, formatMoment } from '../text/labels.js';
import { DeliveryMessage } from './delivery-message.js';

/** @import { AdminClient, Answer } from '../admin-client.js' */
/** @import { OperatorActions } from '../operator-actions.js' */
/** @import { PageModel } from '../page-model.js' */
/** @import { DeliveryDetails, DeliveryRow } from '../api-types.ts' */

const REFRESH_INTERVAL_MS = 5000;

const GONE = 'The delivery is no longer stored.';

/** @type {Readonly<Record<DeliveryRow['state'], string | null>>} why it cannot be retried */
const NO_RETRY = {
  waiting: null,
  sending: 'An attempt is in progress.',
  delivered: 'It is delivered.',
  dead: null,
  canceled: null,
  unknown: null,
};

/** @type {Readonly<Record<DeliveryRow['state'], string | null>>} why it cannot be canceled */
const NO_CANCEL = {
  waiting: null,
  sending: 'An attempt is in progress.',
  delivered: 'It is delivered.',
  dead: 'It is dead: no more attempts are made.',
  canceled: 'It is canceled.',
  unknown: 'No more attempts are made: its outcome is unknown.',
};

export class DeliveryDialog {
  #model;
  #admin;
  #dialog = find(document, '#delivery', HTMLDialogElement);
  #verdict = find(this.#dialog, '[data-verdict]', HTMLElement);
  #facts = find(this.#dialog, '[data-facts]', HTMLElement);
  #problem = find(this.#dialog, '[data-problem]', HTMLElement);
  #retry = find(this.#dialog, '[data-retry]', HTMLButtonElement);
  #cancel = find(this.#dialog, '[data-cancel]', HTMLButtonElement);
  #show = find(this.#dialog, '[data-show]', HTMLButtonElement);
  #message = new DeliveryMessage(find(this.#dialog, '[data-message]', HTMLElement));
  /** @type {DeliveryRow | undefined} */
  #delivery;
  #isGone = false;
  /** @type {string | undefined} why the delivery could not be read */
  #loadProblem;
  /** @type {string | undefined} why its message could not be */
  #messageProblem;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /**
   * @param {PageModel} model
   * @param {AdminClient} admin
   * @param {OperatorActions} actions
   * @param {() => void} onChanged an action has changed the delivery
   */
  constructor(model, admin, actions, onChanged) {
    this.#model = model;
    this.#admin = admin;
    const reload = () => {
      onChanged();
      void this.#load();
    };
    this.#retry.addEventListener('click', () => this.#delivery && actions.retryDelivery(this.#delivery, reload));
    this.#cancel.addEventListener('click', () => this.#delivery && actions.cancelDelivery(this.#delivery, reload));
    this.#show.addEventListener('click', () => void this.#toggleMessage());
    this.#dialog.addEventListener('close', () => {
      clearTimeout(this.#timer);
      this.#delivery = undefined;
      this.#message.clear();
    });
  }

  /** @param {DeliveryRow} delivery */
  open(delivery) {
    this.#delivery = delivery;
    this.#isGone = false;
    this.#loadProblem = this.#messageProblem = undefined;
    setText(find(this.#dialog, 'h2', HTMLElement), `Delivery ${delivery.id}`);
    this.#message.clear();
    this.draw();
    this.#dialog.showModal();
    void this.#load();
  }

  draw() {
    const delivery = this.#delivery;
    if (delivery === undefined) return;
    const { now, status } = this.#model;
    setText(this.#verdict, describeDelivery(delivery, now));
    fillDefinitionList(this.#facts, factsOf(delivery, now));
    const reason = this.#isGone ? GONE : (status?.actions.reason ?? null);
    setDisabled(this.#retry, reason ?? NO_RETRY[delivery.state]);
    setDisabled(this.#cancel, reason ?? NO_CANCEL[delivery.state]);
    setDisabled(this.#show, this.#message.isShown ? null : reason);
    setText(this.#show, this.#message.isShown ? 'Hide message' : 'Show message');
    setAttribute(this.#show, 'aria-expanded', String(this.#message.isShown));
    const problem = this.#loadProblem ?? this.#messageProblem;
    setText(this.#problem, problem ?? '');
    setShown(this.#problem, problem !== undefined);
  }

  /** Reads the delivery now, and again while the dialog is open. */
  async #load() {
    clearTimeout(this.#timer);
    const id = this.#delivery?.id;
    if (id === undefined) return;
    /** @type {Answer<DeliveryDetails> | undefined} */
    const answer = document.hidden ? undefined : await this.#admin.get(deliveryPath(id));
    if (this.#delivery?.id !== id) return;
    if (answer?.ok === true) this.#delivery = answer.data;
    this.#isGone = answer?.ok === false && answer.status === 404;
    this.#loadProblem = this.#isGone ? GONE : answer?.ok === false ? answer.why : undefined;
    this.draw();
    clearTimeout(this.#timer);
    if (!this.#isGone) this.#timer = setTimeout(() => void this.#load(), REFRESH_INTERVAL_MS);
  }

  async #toggleMessage() {
    if (this.#message.isShown) this.#message.clear();
    else await this.#loadMessage();
    this.draw();
  }

  async #loadMessage() {
    const id = this.#delivery?.id;
    if (id === undefined) return;
    /** @type {Answer<DeliveryDetails>} */
    const answer = await this.#admin.getWithToken(`${deliveryPath(id)}?message=true`);
    if (this.#delivery?.id !== id) return;
    this.#messageProblem = answer.ok ? undefined : answer.why;
    if (answer.ok) this.#message.show(answer.data.message ?? null);
  }
}

/** @param {string} id */
function deliveryPath(id) {
  return `/api/deliveries/${encodeURIComponent(id)}`;
}

/**
 * @param {DeliveryRow} delivery
 * @param {number} now
 * @returns {readonly (readonly [name: string, value: string])[]}
 */
function factsOf(delivery, now) {
  const { route, upstream, acceptedAt, attempts, lastAttempt, nextAttemptAt, endedAt, client } = delivery;
  return [
    ...(delivery.kind === 'write' ? [/** @type {const} */ (['kind', 'async write'])] : []),
    ['event id', delivery.eventId ?? '–'],
    ['route', route],
    ['upstream', upstream],
    ['accepted', formatMoment(acceptedAt, now)],
    ['attempts', formatCount(attempts)],
    [
      'last attempt',
      lastAttempt === null
        ? '–'
        : `${formatMoment(lastAttempt.at, now)}, took ${formatLatency(lastAttempt.tookSeconds)}`,
    ],
    ['last status', formatLastResult(delivery)],
    endedAt === null
      ? ['next attempt', nextAttemptAt === null ? '–' : formatMoment(nextAttemptAt, now)]
      : ['ended', formatMoment(endedAt, now)],
    ['order key', delivery.orderKey ?? '–'],
    ['client', client],
  ];
}
