/** Open resources, closed in the reverse order. */
export class ResourceStack {
  readonly #closes: (() => Promise<void>)[] = [];

  push(close: () => Promise<void>): void {
    this.#closes.push(close);
  }

  /** Closes each once, the last one first. */
  readonly close = async (): Promise<void> => {
    for (const close of this.#closes.splice(0).toReversed()) await close();
  };
}

/** @throws the error of `open`, after closing what it had opened */
export async function withRollback<T>(open: (resources: ResourceStack) => Promise<T>): Promise<T> {
  const resources = new ResourceStack();
  try {
    return await open(resources);
  } catch (error) {
    await resources.close();
    throw error;
  }
}
