/**
 * Configuration of an nginx with one worker, in the foreground and within its folder.
 * @param http the content of its `http` block without the access log: `off`, or a file
 */
export function nginxFrame(folder: string, accessLog: string, http: string): string {
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `  ${name}_temp_path ${folder}/${name};`,
  );
  return `daemon off;
worker_processes 1;
error_log stderr crit;
pid ${folder}/nginx.pid;
events { worker_connections 4096; }
http {
  access_log ${accessLog};
${paths.join('\n')}
  keepalive_requests 100000000;
${http}}
`;
}
