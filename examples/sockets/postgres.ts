/** pg over sockets, by its option `stream`. The far end is scripted-postgres.ts. */
import pg from 'pg';
import { connect } from 'rdma-rpc/socket';
import { scriptedPostgres } from './scripted-postgres.ts';
import { alone, serve, stop } from './serve.ts';

/**
 * A socket as pg wants it: it calls `connect(port, host)` itself, when the connection is being made already.
 */
export function streamTo(address: string): () => never {
  return () => Object.assign(connect(address), { connect: () => undefined }) as never;
}

export async function run(): Promise<Record<string, unknown>> {
  const { server, address } = await serve(scriptedPostgres);
  const client = new pg.Client({ user: 'example', database: 'example', stream: streamTo(address) });
  await client.connect();
  const { rows } = await client.query('SELECT something');
  await client.end();
  await stop(server);
  return { rows };
}

await alone(import.meta.url, run);
