/** Returns, for each call, whether it belongs to this share of all calls, spread evenly. @param share current share: 0 to 1 */
export function evenShare(share: () => number): () => boolean {
  let credit = 0;
  return () => {
    const current = share();
    if (current >= 1) return true;
    credit += current;
    if (credit < 1) return false;
    credit -= 1;
    return true;
  };
}
