/** What to try first, for a user who starts the practice upstream on a terminal. */
export function formatGreeting(url: string, adminUrl: string | undefined): string {
  // A new id for each run, in any shell: $RANDOM is unknown to dash, and %N to the date of macOS.
  const retry = `curl -i ${url}/ -H 'X-Practice-Script: 503, 503, 200' -H "X-Practice-Id: $(mktemp -u)"`;
  const burst = `curl --no-progress-meter -Z -o /dev/null -w '%{http_code} after %{time_total} s, Retry-After: %header{retry-after}\\n' '${url}/?[1-60]'`;
  return `
In another terminal, send requests to the practice API, which has a hidden limit:

  one request:  curl -i ${url}/
  a retry (Tidegate-Attempts: 3):
    ${retry}
  a burst, of which some requests are paced and others are refused with a Retry-After:
    ${burst}
${adminUrl === undefined ? '' : `\nThe live page is on ${adminUrl}/\n`}
Ctrl-C stops the server.

`;
}
