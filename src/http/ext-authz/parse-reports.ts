import { z } from 'zod';
import { suggest } from '../../config/values/suggest.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import type { CheckPoint } from '../request/snapshot-types.ts';
import { Answer } from './reported-response.ts';
import type { Permit } from './check-permit.ts';
import { readPermit, UNCOUNTED_PERMIT } from './check-permit.ts';

const MOST_REPORTS = 1000;

const Written = Answer.extend({
  permit: z.string().max(4096).optional(),
  upstream: z.string().optional(),
  client: z
    .string()
    .regex(/^[0-9a-f]{16}$/, 'not a Tidegate-Client that a check was answered with')
    .optional(),
});
const Body = z.union([Written.transform((one) => [one]), z.array(Written).min(1).max(MOST_REPORTS)]);

type Written = z.output<typeof Written>;
type Targets = CheckPoint['targets'];

/** One that can be learned from. */
export interface Report {
  readonly permit: Permit;
  readonly answer: Answer;
}

/** What a body tells; a sentence where something is wrong with any of it: then nothing of it is to be learned from. */
export function readReports(text: string, targets: Targets): readonly Report[] | string {
  const written = parse(text);
  if (typeof written === 'string') return written;
  const reports: Report[] = [];
  for (const each of written) {
    if (each.permit === UNCOUNTED_PERMIT) continue;
    const report = readReport(each, targets);
    if (typeof report === 'string') return report;
    reports.push(report);
  }
  return reports;
}

function parse(text: string): readonly Written[] | string {
  let written: unknown;
  try {
    written = JSON.parse(text);
  } catch {
    return 'A report is JSON: {"permit": "…", "status": 429, "retryAfter": 2}, or a list of such.';
  }
  const read = Body.safeParse(written);
  if (read.success) return read.data;
  const list = z.array(Written).max(MOST_REPORTS);
  const [issue] = (Array.isArray(written) ? list : Written).safeParse(written).error?.issues ?? [];
  const where = issue === undefined || issue.path.length === 0 ? '' : `${issue.path.join('.')}: `;
  return `${where}${issue?.message ?? 'This is no report.'}`;
}

function readReport(written: Written, targets: Targets): Report | string {
  const permit = written.permit === undefined ? findMeant(written, targets) : readGiven(written, written.permit);
  if (typeof permit === 'string') return permit;
  const target = targets.get(permit.upstream);
  if (target === undefined) return `There is no upstream of this name.${hint(permit.upstream, [...targets.keys()])}`;
  const mistake = mistakeOfLimit(
    written.limit,
    permit,
    target.nested.map(({ name }) => name),
  );
  return mistake ?? { permit, answer: written };
}

/** What stands beside a permit says the same, or somebody is mistaken. */
function readGiven({ upstream, client }: Written, text: string): Permit | string {
  const permit = readPermit(text);
  if (permit === undefined) return 'permit: not one that a check was answered with, as Tidegate-Permit.';
  if (upstream !== undefined && upstream !== permit.upstream) return 'upstream: the permit is of another.';
  if (client !== undefined && client !== permit.client) return 'client: the permit is of another.';
  return permit;
}

const NO_CLIENT = 'client: needed, because limits of this upstream are of clients.';

/** Without a permit the request is taken for one that was sent just now, under the upstream's own limit or its client's. */
function findMeant({ upstream, client }: Written, targets: Targets): Permit | string {
  if (upstream === undefined) return 'Say what it is about: its permit, or its upstream and client.';
  const scope = targets.get(upstream)?.scope ?? 'upstream';
  if (scope === 'credential') return 'permit: needed, because limits of this upstream are of credentials.';
  if (scope === 'client' && client === undefined) return NO_CLIENT;
  const limit: LimitRef = { upstream, nested: '', scope, key: scope === 'client' ? (client ?? '') : '' };
  return { upstream, client: client ?? '', at: Date.now(), limits: [limit] };
}

/** @param known names of the upstream's nested limits */
function mistakeOfLimit(limit: string | undefined, { limits }: Permit, known: readonly string[]): string | undefined {
  if (limit === undefined || limits.some(({ nested }) => nested === limit)) return undefined;
  if (known.includes(limit)) return 'limit: this request did not stand under it, or its permit is needed to tell.';
  return `limit: the upstream has none of this name.${hint(limit, known)}`;
}

function hint(text: string, known: readonly string[]): string {
  const nearest = suggest(text, known);
  return nearest === undefined ? '' : ` Did you mean ${nearest}?`;
}
