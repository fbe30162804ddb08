/**
 * pg over sockets, by its option `stream`. scripted-postgres.ts is the other end.
 */
import pg from 'pg';
import { connect } from 'rdma-rpc/socket';
import { scriptedPostgres } from './scripted-postgres.ts';
import { alone, serve, stop } from './serve.ts';

/**
 * Returns a function that makes a socket as pg wants it. pg calls `connect(port, host)` itself, when the
 * connection is already being made.
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
