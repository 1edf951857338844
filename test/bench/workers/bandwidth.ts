import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Microseconds: short, as whoever has had his part stands still until the next one. */
const PERIOD = 10_000;
const [GROUPS, OLD_GROUPS] = ['/sys/fs/cgroup', '/sys/fs/cgroup/cpu'];
/** The kernel lets go of a group a moment after the last of its processes. */
const TRIES = 50;
const TRIED_EVERY = 20;

interface Command {
  readonly command: string;
  readonly args: readonly string[];
}

/**
 * A control group that holds a program, and all that it starts, to the time of so many processors
 * (Documentation/scheduler/sched-bwc.rst), as an orchestrator does that limits a container's CPU. Of Linux alone, for root.
 */
export class Bandwidth {
  readonly #folder: string;

  /** @throws Error where there are no control groups, or none may be made */
  constructor(name: string, processors: number) {
    const quota = Math.round(processors * PERIOD);
    if (existsSync(join(OLD_GROUPS, 'cpu.cfs_quota_us'))) {
      this.#folder = make(join(OLD_GROUPS, name));
      writeFileSync(join(this.#folder, 'cpu.cfs_period_us'), `${PERIOD}`);
      writeFileSync(join(this.#folder, 'cpu.cfs_quota_us'), `${quota}`);
    } else {
      const controllers = readFileSync(join(GROUPS, 'cgroup.controllers'), 'utf8').split(/\s/);
      if (!controllers.includes('cpu')) throw new Error('control groups here know no processor time');
      writeFileSync(join(GROUPS, 'cgroup.subtree_control'), '+cpu');
      this.#folder = make(join(GROUPS, name));
      writeFileSync(join(this.#folder, 'cpu.max'), `${quota} ${PERIOD}`);
    }
  }

  /** The same command, begun inside. Its process keeps its number. */
  hold({ command, args }: Command): Command {
    const enter = 'echo $$ > "$0" && exec "$@"';
    return { command: 'sh', args: ['-c', enter, join(this.#folder, 'cgroup.procs'), command, ...args] };
  }

  /** While nothing is inside. */
  removeNow(): void {
    rmdirSync(this.#folder);
  }

  /** When all inside have ended. */
  async remove(): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        return this.removeNow();
      } catch (error) {
        if (tries === TRIES) throw error;
        await sleep(TRIED_EVERY);
      }
    }
  }
}

/** Undefined where programs can be held. */
export function whyNotHeld(): string | undefined {
  try {
    new Bandwidth(`tidegate-${process.pid}-trial`, 1).removeNow();
    return undefined;
  } catch (error) {
    return `it takes Linux and root (${error instanceof Error ? error.message : String(error)})`;
  }
}

function make(folder: string): string {
  mkdirSync(folder);
  return folder;
}
