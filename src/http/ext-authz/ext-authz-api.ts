import { addressOf, clientAddress } from '../request/client-address.ts';
import type { ProxyContext } from '../request/exchange-context.ts';
import { isUsableRequestId } from '../headers/forward-headers.ts';
import { preflightMethod } from '../headers/cors-headers.ts';
import type { Inbound } from '../server/server-request.ts';
import { findFault, findRepeated } from '../server/server-request.ts';
import type { Outbound } from '../server/server-response.ts';
import type { CheckPoint, Snapshot } from '../request/snapshot-types.ts';
import { fault } from '../response/problem-details.ts';
import type { Refusals } from '../response/rejections.ts';
import { endAnswer, writeEmpty } from '../server/write-response.ts';
import type { Upgrade } from '../server/upgrade.ts';
import { CheckLife } from './check-handler.ts';
import { wrapAs } from './ingress-dialect.ts';
import { readOptions } from './check-options.ts';
import { UNCOUNTED_PERMIT } from './check-permit.ts';
import { Reports } from './report-endpoint.ts';
import { assume, findSubject } from './checked-request.ts';

export interface ChecksParts {
  readonly context: ProxyContext;
  readonly refusals: Refusals;
  /** Of requests: unique. */
  readonly nextId: () => string;
  readonly begin: (life: CheckLife) => void;
  readonly onOver: (life: CheckLife) => void;
}

export interface Come {
  readonly request: Inbound;
  readonly response: Outbound;
  readonly snapshot: Snapshot;
  readonly upgrade: Upgrade | undefined;
}

/** Answers those who ask whether a request may pass, and those who report what came of it. */
export class Checks {
  readonly #parts: ChecksParts;
  readonly #reports: Reports;

  constructor(parts: ChecksParts) {
    this.#parts = parts;
    this.#reports = new Reports(parts);
  }

  /** Returns whether it is one of these. What is sound of its framing has been looked at. */
  take(point: CheckPoint, come: Come): boolean {
    const { path } = come.request;
    if (path === point.path || path.startsWith(`${point.path}/`)) this.#check(point, come);
    else if (path === point.reportPath) this.#reports.take(point, come);
    else return false;
    return true;
  }

  #check(point: CheckPoint, { request, response, snapshot, upgrade }: Come): void {
    const { context, refusals, nextId, begin, onOver } = this.#parts;
    upgrade?.decline();
    const options = readOptions(request, point.path);
    if (options === undefined) return refusals.refuse(request, response, AMBIGUOUS);
    if (typeof options === 'string') return refusals.refuse(request, response, badCheck(options));
    const wrap = wrapAs(options.dialect);
    const peer = addressOf(request.socket.remoteAddress);
    if (!snapshot.trusts(peer)) {
      return refusals.refuse(request, response, { ...NOT_TRUSTED, cause: `from ${peer}` }, false, wrap);
    }
    const subject = findSubject(request, options.dialect, point.path);
    if (typeof subject === 'string') return refusals.refuse(request, response, badCheck(subject), false, wrap);
    assume(request, subject);
    // What is wrong with it is wrong with another: on this connection all is well.
    const found = findFault(request);
    if (found !== undefined) return refusals.refuse(request, response, found.problem, false, wrap);
    const asked = preflightMethod(request);
    const find = (method: string) => point.router.find(method, request.headers.host, request.path);
    const route = find(request.verb) ?? (asked === undefined ? undefined : find(asked));
    if (route === 'ambiguous') return refusals.refuse(request, response, TWO_READINGS, false, wrap);
    if (route === undefined) {
      if (point.passesUnrouted) return this.#passUncounted(request, response, 'Tidegate-Unrouted');
      return refusals.refuse(request, response, UNROUTED, false, wrap);
    }
    if (asked !== undefined) return this.#passUncounted(request, response, 'Tidegate-Preflight');
    const repeated = findRepeated(request, route.target.identities);
    if (repeated !== undefined) {
      const detail = `The request has more than one ${repeated}: whose it is would be a matter of opinion.`;
      return refusals.refuse(request, response, fault(400, 'Bad request', detail, 'bad_request'), false, wrap);
    }
    const client = snapshot.identify(request, clientAddress(request, peer, snapshot.trusts));
    const requestId = nextId();
    const given = request.headers['x-request-id'];
    const xRequestId = typeof given === 'string' && isUsableRequestId(given) ? given : requestId;
    const key = undefined; // who sends it minds its key
    const arrival = { request, response, upgrade, route, snapshot, client, key, peer, requestId, xRequestId };
    begin(new CheckLife(context, arrival, options, onOver));
  }

  /**
   * What no route leads to has no upstream of ours, and an ingress serves much besides; and no limit concerns a preflight.
   * @param why the name of the header that says so
   */
  #passUncounted(request: Inbound, response: Outbound, why: string): void {
    const { context, nextId } = this.#parts;
    const headers = [
      'Via',
      context.via,
      'Tidegate-Request-Id',
      nextId(),
      why,
      'true',
      'Tidegate-Permit',
      UNCOUNTED_PERMIT,
    ];
    writeEmpty(response, 200, [...headers, 'Cache-Control', 'no-store']);
    endAnswer(response, request);
  }
}

/** An ingress may pass it on to its clients, who are not to learn its address: the log has it. */
const NOT_TRUSTED = fault(
  403,
  'Forbidden',
  'Who asks on behalf of clients has to be one of clients.trustedProxies; who this was, the log says.',
  'not_trusted',
);

const UNROUTED = fault(404, 'Not found', 'No route leads there.', 'no_route');

const TWO_READINGS = fault(
  400,
  'Bad request',
  'The request has a path that some read as that of another route.',
  'bad_request',
);

/** A client may have brought it about: a 403 is a no in every dialect. */
const AMBIGUOUS = fault(
  403,
  'Forbidden',
  'It cannot be told whose the query is: have the ingress ask with one of its own, such as ?dialect=http.',
  'bad_check',
);

function badCheck(detail: string): ReturnType<typeof fault> {
  return fault(400, 'Bad check', detail, 'bad_check');
}
