/** What is left once no client has a request: no claim, no request, no more open files than before. */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { Millis } from '../../src/core/scalars.ts';
import type { Deployment } from './deployment.ts';
import type { GateProcess } from './gate-process.ts';

/** Longer than any lease, on any machine. */
const IDLE_WITHIN: Millis = 120_000;
const POLL: Millis = 250;
/** Files that a process opens only when it is used. */
const MORE_FILES = 20;
const MAX_RSS_MB = 900;

const keysPage = z.object({ matching: z.number(), truncated: z.literal(false) });

export interface EndState {
  readonly summary: string;
  readonly violations: readonly string[];
}

/** Resolves when nothing is left, or with what is left after two minutes. @param files open files of a process at the start */
export async function findLeft(deployment: Deployment, files: number, closeIdle: () => void): Promise<EndState> {
  const until = performance.now() + IDLE_WITHIN;
  for (;;) {
    closeIdle();
    const state = await measure(deployment, files).catch((error: unknown): EndState => {
      const why = `a process does not respond: ${String(error)}`;
      return { summary: why, violations: [why] };
    });
    if (state.violations.length === 0 || performance.now() > until) return state;
    await sleep(POLL);
  }
}

async function measure({ gates }: Deployment, files: number): Promise<EndState> {
  const violations: string[] = [];
  let claims = 0;
  for (const gate of gates) {
    const inFlight = await sumOf(gate, 'tidegate_requests_in_flight');
    if (inFlight !== 0) violations.push(`${inFlight} requests are in flight at ${gate.url}`);
    // Each replica lists the keys of all. A claim of a process that has ended is in progress until its lease has ended.
    claims = Math.max(claims, await keysInProgress(gate));
  }
  if (claims !== 0) violations.push(`keys in progress: ${claims}`);
  const pids = gates.flatMap((gate) => gate.pids);
  const open = Math.max(...pids.map(openFiles));
  if (open > files + MORE_FILES) violations.push(`${open} files are open in a process, ${files} before the load`);
  const rss = Math.max(...pids.map(residentMegabytes));
  if (rss > MAX_RSS_MB) violations.push(`a process has ${rss} MB`);
  return {
    summary: `keys in progress: ${claims}; open files: ${files} before, ${open} after; memory: ${rss} MB`,
    violations,
  };
}

async function keysInProgress({ adminUrl }: GateProcess): Promise<number> {
  const page: unknown = await (await fetch(`${adminUrl}/api/keys?state=in_progress&limit=1`)).json();
  return keysPage.parse(page).matching;
}

function sumOf(gate: GateProcess, series: string): Promise<number> {
  return seriesOf(gate, (line) => line.startsWith(`${series}{`) || line.startsWith(`${series} `));
}

/** The sum of the series that match. @throws if the process does not respond */
export async function seriesOf(
  { adminUrl }: GateProcess,
  matches: (line: string) => boolean,
  timeout: Millis = IDLE_WITHIN,
): Promise<number> {
  const exposition = await (await fetch(`${adminUrl}/metrics`, { signal: AbortSignal.timeout(timeout) })).text();
  const lines = exposition.split('\n').filter(matches);
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}

export function openFiles(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

function residentMegabytes(pid: number): number {
  const [, kilobytes] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Math.round(Number(kilobytes) / 1024);
}
