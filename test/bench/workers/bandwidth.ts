import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Microseconds; short, because a process that has used its quota stops until the next period. */
const PERIOD = 10_000;
const [GROUPS, OLD_GROUPS] = ['/sys/fs/cgroup', '/sys/fs/cgroup/cpu'];
/** Attempts to remove a group, which the kernel releases shortly after its last process. */
const TRIES = 50;
const TRIED_EVERY = 20;

interface Command {
  readonly command: string;
  readonly args: readonly string[];
}

/**
 * A control group that limits a program and its children to the CPU time of a number of processors
 * (Documentation/scheduler/sched-bwc.rst), like the CPU limit of a container. Linux only, as root.
 */
export class Bandwidth {
  readonly #folder: string;

  /** @throws Error if control groups are missing or cannot be created */
  constructor(name: string, processors: number) {
    const quota = Math.round(processors * PERIOD);
    if (existsSync(join(OLD_GROUPS, 'cpu.cfs_quota_us'))) {
      this.#folder = make(join(OLD_GROUPS, name));
      writeFileSync(join(this.#folder, 'cpu.cfs_period_us'), `${PERIOD}`);
      writeFileSync(join(this.#folder, 'cpu.cfs_quota_us'), `${quota}`);
    } else {
      const controllers = readFileSync(join(GROUPS, 'cgroup.controllers'), 'utf8').split(/\s/);
      if (!controllers.includes('cpu')) throw new Error('the cpu controller of cgroups is not available');
      writeFileSync(join(GROUPS, 'cgroup.subtree_control'), '+cpu');
      this.#folder = make(join(GROUPS, name));
      writeFileSync(join(this.#folder, 'cpu.max'), `${quota} ${PERIOD}`);
    }
  }

  /** Returns a command that starts inside the group. The pid stays the same. */
  hold({ command, args }: Command): Command {
    const enter = 'echo $$ > "$0" && exec "$@"';
    return { command: 'sh', args: ['-c', enter, join(this.#folder, 'cgroup.procs'), command, ...args] };
  }

  /** Removes the group, which must be empty. */
  removeNow(): void {
    rmdirSync(this.#folder);
  }

  /** Removes the group when all of its processes have exited. */
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

/** Returns why programs cannot be limited; undefined if they can. */
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
