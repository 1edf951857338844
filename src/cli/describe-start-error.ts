/** Why the proxy could not start, without a stack trace. */
export function describeStartError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code, syscall, address, port } = error as NodeJS.ErrnoException & { address?: string; port?: number };
  if (syscall !== 'listen') return error.message;
  // For a Unix socket, the port is −1 and the address is its path.
  const isUnixSocket = port === undefined || port < 0;
  const where = isUnixSocket ? address : `${address ?? ''}:${port}`;
  if (code === 'EADDRINUSE') {
    return `${where} is in use by another process: choose another address for listen, admin or telemetry`;
  }
  // libuv reports a missing folder of a socket as EACCES too (uv_pipe_bind).
  if (isUnixSocket && (code === 'EACCES' || code === 'ENOTDIR')) {
    return `${where} cannot be created: its folder must exist and be writable by this user`;
  }
  if (code === 'EACCES') return `${where}: permission denied; ports below 1024 need a privilege`;
  if (code === 'EADDRNOTAVAIL') return `${where} is not an address of this machine`;
  return error.message;
}

export function isAddressInUse(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
}
