/** Puts the page together: what is heard goes into the model, and what has changed is drawn once a frame. */
import { Actions } from './operator-actions.js';
import { Admin, checkToken } from './admin-client.js';
import { speak } from './announcements.js';
import { writeChanges } from './status-changes.js';
import { ClientSheet } from './client-dialog.js';
import { Clients } from './clients-table.js';
import { Connection } from './connection-banner.js';
import { find } from './dom.js';
import { ExplanationSheet } from './explanation-dialog.js';
import { Feed } from './sse-client.js';
import { Model } from './page-model.js';
import { Process } from './process-panel.js';
import { Requests } from './requests-table.js';
import { switchTheme } from './theme-switch.js';
import { Timeline } from './timeline-list.js';
import { TokenKeeper } from './token-dialog.js';
import { Upstreams } from './upstream-cards.js';
import { moodOf } from './labels.js';

/** @import { FeedState } from './sse-client.js' */
/** @import { Events } from './api-types.ts' */

/** Of countdowns, in milliseconds. */
const TICK = 500;

const model = new Model();
const tokens = new TokenKeeper(checkToken, () => feed.restart());
const admin = new Admin(tokens);
const actions = new Actions(admin);
const explanations = new ExplanationSheet(admin);
/** @param {string} key */
const reset = (key) => actions.resetClient(key);
/** @param {string} id */
const explain = (id) => void explanations.open(id);
const clientSheet = new ClientSheet(model, admin, { reset, explain });
const clients = new Clients(model, admin, { reset, open: (client) => clientSheet.open(client) });
const requests = new Requests(admin, explain);
const timeline = new Timeline(admin);
const upstreams = new Upstreams(model, actions);
const connection = new Connection(model, () => feed.retryNow());
const views = [new Process(model), upstreams, clients, clientSheet, requests, timeline, connection];

let isDrawing = false;

/** Nothing is drawn twice in a frame, and nothing while nobody can see it. */
function draw() {
  if (isDrawing || document.hidden) return;
  isDrawing = true;
  requestAnimationFrame(() => {
    isDrawing = false;
    for (const view of views) view.draw();
    document.title = writeTitle();
  });
}

function writeTitle() {
  const moods = model.status?.upstreams.map((upstream) => /** @type {const} */ ([moodOf(upstream), upstream]));
  const [, worst] = moods?.find(([mood]) => mood === 'trouble') ?? [];
  return worst === undefined ? 'Tidegate' : `■ ${worst.name} ${worst.state} – Tidegate`;
}

/**
 * @param {string} name
 * @param {unknown} data
 */
function hear(name, data) {
  switch (name) {
    case 'status': {
      const heard = /** @type {Events['status']} */ (data);
      const before = model.status;
      model.take(heard);
      for (const change of writeChanges(before, heard.status, model.now)) speak(change);
      break;
    }
    case 'timeline':
      timeline.add(/** @type {Events['timeline']} */ (data));
      break;
    case 'requests':
      requests.add(/** @type {Events['requests']} */ (data));
      break;
  }
  draw();
}

/** @param {FeedState} state */
function turn(state) {
  connection.take(state);
  if (state.kind === 'live') {
    void requests.load();
    void timeline.load();
  }
  if (state.kind !== 'denied' || state.status !== 401) return;
  const had = tokens.token !== undefined;
  void tokens.ask(
    had ? 'The token that is kept here is not accepted (any more).' : 'This Tidegate asks for its admin token.',
  );
}

const feed = new Feed({
  url: '/api/events',
  token: () => tokens.token,
  onEvent: hear,
  onState: turn,
  random: Math.random,
});

find(document, '#token', HTMLButtonElement).addEventListener('click', () => {
  void tokens.ask('Reading needs it where the admin port is open to others; actions always do.');
});
find(document, '#drain', HTMLButtonElement).addEventListener('click', () => actions.drain());
switchTheme(() => upstreams.recolour());
setInterval(draw, TICK);
document.addEventListener('visibilitychange', () => {
  if (document.hidden) return;
  feed.retryNow();
  draw();
});
addEventListener('online', () => feed.retryNow());
