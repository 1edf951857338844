import type { Program } from '../program.ts';
import { Bandwidth } from './bandwidth.ts';

/** The processes of a measurement, which end with it. */
export class BenchProcesses {
  /** Folder for the programs' files. */
  readonly folder: string;
  readonly #programs: Program[] = [];
  readonly #groups: Bandwidth[] = [];

  constructor(folder: string) {
    this.folder = folder;
  }

  start(program: Program): Program {
    this.#programs.push(program);
    return program;
  }

  /** @throws Error if programs cannot be limited */
  group(name: string, processors: number): Bandwidth {
    const group = new Bandwidth(`tidegate-${process.pid}-${name}`, processors);
    this.#groups.push(group);
    return group;
  }

  async end(): Promise<void> {
    await Promise.all(this.#programs.map((program) => program.stop()));
    await Promise.all(this.#groups.map((group) => group.remove()));
  }
}
