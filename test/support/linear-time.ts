/** Long enough for quadratic time to show, short enough for a header. */
const LENGTH = 16 * 1024;

/** Takes quadratic time on purpose: each space starts a search for the end of the run. */
function runQuadratic(): void {
  / +$/.test(`${' '.repeat(LENGTH)}x`);
}

let quadraticTime: number | undefined;

/**
 * Whether work on a text of `LENGTH` characters takes far less time than quadratic work on it. The two are compared on one
 * machine by processor time, so the speed of the machine and other programs do not matter.
 */
export function isFarFromQuadratic(work: () => void): boolean {
  const bound = timeBound();
  // Collecting garbage or compiling may delay one run.
  return processorTime(work) <= bound || processorTime(work) <= bound || processorTime(work) <= bound;
}

/** As `isFarFromQuadratic`, for a request to a proxy in this process. */
export async function isRequestFarFromQuadratic(request: () => Promise<unknown>): Promise<boolean> {
  const bound = timeBound();
  for (let tries = 0; tries < 3; tries += 1) {
    const before = process.cpuUsage();
    await request();
    if (microsecondsSince(before) <= bound) return true;
  }
  return false;
}

/** In microseconds. */
function timeBound(): number {
  quadraticTime ??= Math.min(processorTime(runQuadratic), processorTime(runQuadratic));
  return quadraticTime / 8;
}

/** `prefix`, as many of `pump` as fit, `suffix`. */
export function longText(prefix: string, pump: string, suffix: string): string {
  return prefix + pump.repeat(Math.ceil(LENGTH / pump.length)) + suffix;
}

/** In microseconds. */
function processorTime(work: () => void): number {
  const before = process.cpuUsage();
  work();
  return microsecondsSince(before);
}

function microsecondsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return user + system;
}
