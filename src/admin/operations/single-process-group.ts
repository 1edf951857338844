import type { QueryResults, QueryInput, ProcessApi, ProcessQueryName, ProcessGroup } from './process-api.ts';

/** The group of a single process. */
export class SingleProcessGroup implements ProcessGroup {
  readonly #process: ProcessApi;

  constructor(process: ProcessApi) {
    this.#process = process;
  }

  async query<K extends ProcessQueryName>(
    name: K,
    input: (process: number) => QueryInput<K>,
  ): Promise<QueryResults<K>> {
    return new Map([[0, await this.#process[name](input(0))]]);
  }
}
