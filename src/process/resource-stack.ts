/** What has been opened, to be closed in the other order. */
export class Opened {
  readonly #closes: (() => Promise<void>)[] = [];

  push(close: () => Promise<void>): void {
    this.#closes.push(close);
  }

  /** Each once, the last first. */
  readonly close = async (): Promise<void> => {
    for (const close of this.#closes.splice(0).toReversed()) await close();
  };
}

/** @throws what `open` throws, when what it had opened by then is closed */
export async function openWhole<T>(open: (opened: Opened) => Promise<T>): Promise<T> {
  const opened = new Opened();
  try {
    return await open(opened);
  } catch (error) {
    await opened.close();
    throw error;
  }
}
