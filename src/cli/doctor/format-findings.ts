import type { DoctorFinding } from './doctor-finding.ts';
import { isFault } from './doctor-finding.ts';

/** What the findings are about. */
export interface DoctorSubject {
  readonly version: string;
  /** Of Node. */
  readonly node: string;
  readonly user: string;
}

/** For people: problems, then warnings, each with its remedy; then a line for each check without a fault. */
export function formatFindings(findings: readonly DoctorFinding[], { version, node, user }: DoctorSubject): string {
  const faults = ['problem', 'warning'].flatMap((status) =>
    findings.filter((finding) => finding.status === status).filter(isFault),
  );
  const others = findings.filter((finding) => !isFault(finding));
  return [
    `tidegate doctor: ${summarize(findings)} (Tidegate ${version}, Node ${node}, user ${user})`,
    ...faults.flatMap(({ status, check, place, meaning, remedy }) => [
      '',
      `${status.padEnd(COLUMN)}${check}: ${place}`,
      `${INDENT}${meaning}`,
      `${INDENT}To do: ${remedy}`,
    ]),
    '',
    ...others.map(({ status, check, place, meaning }) => `${status.padEnd(COLUMN)}${check}: ${place}: ${meaning}`),
    '',
  ].join('\n');
}

/** For programs, as one line. */
export function findingsAsJson(findings: readonly DoctorFinding[], subject: DoctorSubject): string {
  const { problems, warnings } = count(findings);
  return `${JSON.stringify({ ok: problems === 0, problems, warnings, ...subject, findings })}\n`;
}

export function count(findings: readonly DoctorFinding[]): { readonly problems: number; readonly warnings: number } {
  const of = (status: DoctorFinding['status']): number =>
    findings.filter((finding) => finding.status === status).length;
  return { problems: of('problem'), warnings: of('warning') };
}

const COLUMN = 9;
const INDENT = ' '.repeat(COLUMN);

function summarize(findings: readonly DoctorFinding[]): string {
  const { problems, warnings } = count(findings);
  return `${plural(problems, 'problem')}, ${plural(warnings, 'warning')}`;
}

function plural(number: number, noun: string): string {
  if (number === 0) return `no ${noun}s`;
  return number === 1 ? `1 ${noun}` : `${number} ${noun}s`;
}
