import { formatSize } from '../config/values/quantities.ts';

/** In the largest unit of which there are at least ten, rounded up: `15MiB`. */
export function formatBytes(bytes: number): string {
  for (const unit of [1024 ** 3, 1024 ** 2, 1024]) {
    if (bytes >= 10 * unit) return formatSize(Math.ceil(bytes / unit) * unit);
  }
  return formatSize(bytes);
}
