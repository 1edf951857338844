/** Resolves after this many milliseconds, never before. */
export async function pause(ms: number): Promise<void> {
  const until = performance.now() + ms;
  for (let left = ms; left > 0; left = until - performance.now()) {
    await new Promise((resolve) => {
      setTimeout(resolve, Math.ceil(left));
    });
  }
}
