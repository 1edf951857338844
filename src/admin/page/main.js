/** Entry point of the page: events go into the model, and the views draw at most once per frame. */
import { OperatorActions } from './operator-actions.js';
import { AdminClient, checkToken } from './admin-client.js';
import { announce } from './dom/announcements.js';
import { describeChanges } from './text/status-changes.js';
import { ClientDialog } from './client-dialog.js';
import { ClientsTable } from './clients-table.js';
import { ConnectionBanner } from './connection-banner.js';
import { DeliveriesTable } from './deliveries/deliveries-table.js';
import { DeliveryDialog } from './deliveries/delivery-dialog.js';
import { find, setText } from './dom/dom.js';
import { ExplanationDialog } from './explanation-dialog.js';
import { KeysTable } from './keys-table.js';
import { SseClient } from './sse-client.js';
import { CHART_SPANS, PageModel } from './page-model.js';
import { ProcessPanel } from './process-panel.js';
import { RequestsTable } from './requests-table.js';
import { initThemeSwitch } from './theme-switch.js';
import { TimelineList } from './timeline-list.js';
import { TokenDialog } from './token-dialog.js';
import { formatSpan, UpstreamCards } from './upstream-cards.js';
import { shortExpiry } from './text/labels.js';
import { isRefusingMany, shortProblem, upstreamSeverity } from './text/limit-labels.js';

/** @import { FeedState } from './sse-client.js' */
/** @import { History, StreamEvents } from './api-types.ts' */
/** @import { Answer } from './admin-client.js' */

/** Countdowns move between two status events. */
const REDRAW_INTERVAL_MS = 500;

const model = new PageModel();
const tokens = new TokenDialog(checkToken, () => feed.restart());
const admin = new AdminClient(tokens);
const actions = new OperatorActions(admin);
const explanations = new ExplanationDialog(admin);
/** @param {string} key */
const resetClient = (key) => actions.resetClient(key);
/** @param {string} id */
const explain = (id) => void explanations.open(id);
const clientDialog = new ClientDialog(model, admin, { reset: resetClient, explain });
const clients = new ClientsTable(model, admin, { reset: resetClient, open: (client) => clientDialog.open(client) });
const requests = new RequestsTable(admin, explain);
const timeline = new TimelineList(admin);
const keys = new KeysTable(model, admin, actions);
const deliveryDialog = new DeliveryDialog(model, admin, actions, () => deliveries.load());
const deliveries = new DeliveriesTable(model, admin, (delivery) => deliveryDialog.open(delivery));
const upstreams = new UpstreamCards(model, actions);
const connection = new ConnectionBanner(model, () => feed.retryNow());
const lists = [clients, clientDialog, requests, timeline, deliveries, deliveryDialog, keys];
const views = [new ProcessPanel(model), upstreams, ...lists, connection];

let isDrawing = false;

/** Draws at most once per frame, and not at all while the page is hidden. */
function draw() {
  if (isDrawing || document.hidden) return;
  isDrawing = true;
  requestAnimationFrame(() => {
    isDrawing = false;
    for (const view of views) view.draw();
    document.title = formatTitle();
  });
}

function formatTitle() {
  if (model.isStale) return '■ not connected – Tidegate';
  const expired = model.status && shortExpiry(model.status);
  if (expired !== undefined) return `■ ${expired} – Tidegate`;
  const worst = model.status?.upstreams.find((upstream) => upstreamSeverity(upstream) === 'critical');
  if (worst !== undefined) return `■ ${worst.name} ${shortProblem(worst)} – Tidegate`;
  const store = model.status?.store;
  if (store?.degraded === true) return `■ ${store.kind} not responding – Tidegate`;
  const refusing = model.status?.upstreams.find(isRefusingMany);
  return refusing === undefined ? 'Tidegate' : `▲ requests to ${refusing.name} refused – Tidegate`;
}

/**
 * @param {string} name
 * @param {unknown} data
 */
function handleEvent(name, data) {
  switch (name) {
    case 'status': {
      const statusEvent = /** @type {StreamEvents['status']} */ (data);
      const before = model.status;
      model.update(statusEvent);
      for (const change of describeChanges(before, statusEvent.status, model.now)) announce(change);
      break;
    }
    case 'timeline':
      timeline.add(/** @type {StreamEvents['timeline']} */ (data));
      break;
    case 'requests':
      requests.add(/** @type {StreamEvents['requests']} */ (data));
      break;
  }
  draw();
}

/** What happened before the page was opened, or while it was not connected. */
async function loadHistory() {
  /** @type {Answer<History>} */
  const answer = await admin.get('/api/history');
  if (answer.ok) model.load(answer.data);
  upstreams.recolour();
  draw();
}

const spanButton = find(document, '#span', HTMLButtonElement);
spanButton.addEventListener('click', () => {
  const [first, second] = CHART_SPANS;
  model.chartSeconds = model.chartSeconds === first ? second : first;
  setText(spanButton, `Charts: ${formatSpan(model.chartSeconds)}`);
  draw();
});

/** @param {FeedState} state */
function handleConnectionState(state) {
  connection.setState(state);
  draw();
  if (state.kind === 'live') {
    void loadHistory();
    void requests.load();
    void timeline.load();
    deliveries.load();
    keys.load();
  }
  if (state.kind !== 'denied' || state.status !== 401) return;
  const hasToken = tokens.token !== undefined;
  void tokens.ask(hasToken ? 'The stored token was not accepted.' : 'The admin port requires a token.');
}

const feed = new SseClient({
  url: '/api/events',
  token: () => tokens.token,
  onEvent: handleEvent,
  onState: handleConnectionState,
  random: Math.random,
});

find(document, '#token', HTMLButtonElement).addEventListener('click', () => {
  void tokens.ask(
    'Actions always require the token. Reading requires it unless the admin port is on a loopback address.',
  );
});
find(document, '#drain', HTMLButtonElement).addEventListener('click', () => actions.drain());
initThemeSwitch(() => upstreams.recolour());
setInterval(draw, REDRAW_INTERVAL_MS);
document.addEventListener('visibilitychange', () => {
  if (document.hidden) return;
  feed.retryNow();
  draw();
});
addEventListener('online', () => feed.retryNow());
