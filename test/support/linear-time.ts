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
  quadraticTime ??= Math.min(processorTime(runQuadratic), processorTime(runQuadratic));
  const bound = quadraticTime / 8;
  // Collecting garbage or compiling may delay one run.
  return processorTime(work) <= bound || processorTime(work) <= bound || processorTime(work) <= bound;
}

/** `prefix`, as many of `pump` as fit, `suffix`. */
export function longText(prefix: string, pump: string, suffix: string): string {
  return prefix + pump.repeat(Math.ceil(LENGTH / pump.length)) + suffix;
}

/** In microseconds. */
function processorTime(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}
