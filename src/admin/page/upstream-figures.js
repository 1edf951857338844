/** The figures of an upstream card: its numbers, its nested limits, its accounts and its endpoints. Each function returns one that fills them. */
import { accountSeverity, formatAccount } from './text/account-labels.js';
import { find, setAttribute, setShown, setText } from './dom/dom.js';
import { KeyedRows } from './keyed-rows.js';
import { formatCount, formatLatency, formatPercent, formatRateLabel } from './text/labels.js';
import { formatLimitName, formatNestedLimit, nestedLimitSeverity } from './text/limit-labels.js';
import { describeQuota } from './text/quota-labels.js';
import { endpointSeverity, formatEndpoint } from './text/endpoint-labels.js';

/** @import { UpstreamStatus } from './api-types.ts' */
/** @import { Severity } from './text/labels.js' */

const FIGURES = /** @type {const} */ ([
  ['accepted', 'accepted'],
  ['queued', 'waiting'],
  ['inFlight', 'attempts in flight'],
  ['failed', 'failed'],
  ['refused', 'refused'],
  ['retries', 'retries'],
  ['budget', 'retry budget'],
  ['quota', 'quota left'],
  ['p50', 'p50 of upstream'],
  ['p99', 'p99 of upstream'],
  ['limits', 'limits'],
]);

/** @param {HTMLElement} row */
export function makeFigures(row) {
  /** @type {Map<string, HTMLElement>} */
  const values = new Map();
  for (const [name, label] of FIGURES) {
    const [pair, term, value] = [
      document.createElement('div'),
      document.createElement('dt'),
      document.createElement('dd'),
    ];
    term.textContent = label;
    value.dataset['figure'] = name;
    pair.append(term, value);
    find(row, '[data-figures]', HTMLElement).append(pair);
    values.set(name, value);
  }
  /** @param {(typeof FIGURES)[number][0]} name */
  const figure = (name) => {
    const value = values.get(name);
    if (value === undefined) throw new Error(`there is no figure ${name}`);
    return value;
  };
  const limits = figure('limits').parentElement;
  /**
   * @param {(typeof FIGURES)[number][0]} name
   * @param {string} text
   * @param {Severity | undefined} severity
   */
  const show = (name, text, severity) => {
    setText(figure(name), text);
    setAttribute(figure(name), 'data-severity', severity);
  };
  /** @param {UpstreamStatus} upstream */
  return (upstream) => {
    const { inFlight, places, scope } = upstream;
    setText(figure('accepted'), formatRateLabel(upstream.acceptedPerSecond));
    setText(figure('queued'), formatCount(upstream.queued));
    setText(
      figure('inFlight'),
      places === null ? formatCount(inFlight) : `${formatCount(inFlight)} of ${formatCount(places)}`,
    );
    setText(figure('retries'), formatRateLabel(upstream.retriesPerSecond));
    const { failedPerSecond, refusedPerSecond, budgetSpent } = upstream;
    show('failed', formatRateLabel(failedPerSecond), failedPerSecond > 0 ? 'critical' : undefined);
    show('refused', formatRateLabel(refusedPerSecond), refusedPerSecond > 0 ? 'warning' : undefined);
    show('budget', budgetSpent ? 'spent' : formatPercent(upstream.budgetLeft), budgetSpent ? 'critical' : undefined);
    const { text, severity } = describeQuota(upstream);
    show('quota', text, severity);
    setText(figure('p50'), formatLatency(upstream.p50Seconds));
    setText(figure('p99'), formatLatency(upstream.p99Seconds));
    if (limits !== null) setShown(limits, scope !== 'upstream');
    setText(figure('limits'), `${formatCount(upstream.limits)}, one per ${scope}`);
  };
}

/** @param {HTMLElement} row */
export function makeNestedLimits(row) {
  const list = find(row, '[data-nested]', HTMLElement);
  let now = 0;
  /** @type {KeyedRows<UpstreamStatus['nestedLimits'][number]>} */
  const rows = makeMarkedRows(
    list,
    ({ name }) => name,
    nestedLimitSeverity,
    (limit) => `${formatLimitName(limit)}: ${formatNestedLimit(limit, now)}`,
  );
  /**
   * @param {UpstreamStatus} upstream
   * @param {number} at
   */
  return ({ nestedLimits }, at) => {
    now = at;
    setShown(list, nestedLimits.length > 0);
    rows.show(nestedLimits);
  };
}

/** @param {HTMLElement} row */
export function makeEndpoints(row) {
  const list = find(row, '[data-endpoints]', HTMLElement);
  /** @type {KeyedRows<UpstreamStatus['endpoints'][number]>} */
  const rows = makeMarkedRows(list, ({ endpoint }) => endpoint, endpointSeverity, formatEndpoint);
  /** @param {UpstreamStatus} upstream */
  return (upstream) => rows.show(upstream.endpoints);
}

/** @param {HTMLElement} row */
export function makeAccounts(row) {
  const list = find(row, '[data-accounts]', HTMLElement);
  let now = 0;
  /** @type {KeyedRows<UpstreamStatus['accounts'][number]>} */
  const rows = makeMarkedRows(
    list,
    ({ name }) => name,
    (account) => accountSeverity(account),
    (account) => formatAccount(account, now),
  );
  /**
   * @param {UpstreamStatus} upstream
   * @param {number} at
   */
  return ({ accounts }, at) => {
    now = at;
    setShown(list, accounts.length > 0);
    rows.show(accounts);
  };
}

/**
 * The rows of a list whose items have a severity mark before their text.
 *
 * @template T
 * @param {HTMLElement} list
 * @param {(item: T) => string} keyOf
 * @param {(item: T) => string} severityOf
 * @param {(item: T) => string} format
 * @returns {KeyedRows<T>}
 */
function makeMarkedRows(list, keyOf, severityOf, format) {
  return new KeyedRows(list, keyOf, () => {
    const { item, text } = makeMarkedItem();
    return {
      row: item,
      fill: (each) => {
        setAttribute(item, 'data-severity', severityOf(each));
        setText(text, format(each));
      },
    };
  });
}

/** A list item with a severity mark before its text. */
function makeMarkedItem() {
  const item = document.createElement('li');
  const [mark, text] = [document.createElement('span'), document.createElement('span')];
  item.className = 'state';
  mark.className = 'mark';
  mark.ariaHidden = 'true';
  item.append(mark, text);
  return { item, text };
}
